//! Child processes that do not outlive the demo, however it ends.
//!
//! A child's standard input is a pipe whose other end only the demo holds. The system closes it when the demo ends,
//! even if it is killed; the child then removes the demo's folder and exits.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The hidden subcommands of `cloudkeel demo`.
pub(crate) const MANAGER: &str = "as-manager";
pub(crate) const SERVER: &str = "as-server";

/// The prefix of the demo's folder.
pub(crate) const FOLDER: &str = "cloudkeel-demo-";

/// Runs the manager as a child of the demo: `as-manager FOLDER FLAGS…`.
pub(crate) fn manager(words: &[String], run: fn(Vec<OsString>) -> ExitCode) -> ExitCode {
    let Some((folder, flags)) = words.split_first() else {
        return ExitCode::FAILURE;
    };
    let folder = PathBuf::from(folder);
    std::thread::spawn(move || {
        wait_for_parent_exit();
        exit_after_parent(&folder);
    });
    let name = OsString::from("cloudkeel");
    run(std::iter::once(name)
        .chain(flags.iter().map(OsString::from))
        .collect())
}

/// Runs another program as a child of the demo: `as-server FOLDER PROGRAM ARGUMENTS…`.
pub(crate) fn server(words: &[String]) -> ExitCode {
    let [folder, program, arguments @ ..] = words else {
        return ExitCode::FAILURE;
    };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot start {program}: {error}");
            return ExitCode::FAILURE;
        }
    };
    wait_for_parent_exit();
    // One that has exited needs no killing.
    let _ = child.kill();
    let _ = child.wait();
    remove(Path::new(folder));
    ExitCode::SUCCESS
}

fn wait_for_parent_exit() {
    // End of file and an error both mean that the demo has ended.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
}

#[expect(
    clippy::disallowed_methods,
    reason = "the demo is gone, so no shutdown is waited for"
)]
fn exit_after_parent(folder: &Path) {
    remove(folder);
    std::process::exit(0);
}

/// Removes the folder of a demo, and no other path given on the command line.
fn remove(folder: &Path) {
    let name = folder.file_name().and_then(|name| name.to_str());
    if name.is_some_and(|name| name.starts_with(FOLDER)) {
        // The demo has removed it, unless it was killed.
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_of_a_demo_is_removed() {
        let home = tempfile::tempdir().unwrap();
        for (name, stays) in [("cloudkeel-demo-x", false), ("mine", true)] {
            let folder = home.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            remove(&folder);
            assert_eq!(folder.exists(), stays, "{name}");
        }
    }
}
