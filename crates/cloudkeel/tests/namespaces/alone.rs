//! Runs the test in namespaces of its own. Whatever it makes there, processes, links and routes, the
//! kernel takes away with them, however it ends.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use cloudkeel_testkit::control_plane::{Tool, provide};

use crate::ROLE;

const NAME: &str = "one_command_gives_the_services_of_a_cluster_addresses_that_answer";

/// A network, mounts and processes that nobody else sees, and that end with their first process.
const OF_ITS_OWN: [&str; 6] = [
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Whether the test runs, and how it ended, in the words of every other test.
pub(crate) async fn run() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let filter = words.iter().find(|word| !word.starts_with('-'));
    let is_meant = filter.is_none_or(|filter| NAME.contains(filter.as_str()));
    if !is_meant || words.iter().any(|word| word == "--ignored") {
        println!("\nrunning 0 tests\n");
        return end(0, 0, 0);
    }
    println!("\nrunning 1 test");
    if let Err(why) = possible() {
        println!("test {NAME} ... ignored, {why}\n");
        return end(0, 0, 1);
    }
    if passes().await {
        println!("test {NAME} ... ok\n");
        return end(1, 0, 0);
    }
    println!("test {NAME} ... FAILED\n");
    end(0, 1, 0)
}

fn end(passed: u8, failed: u8, ignored: u8) -> ExitCode {
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         0 filtered out; finished in 0.00s\n"
    );
    ExitCode::from(failed)
}

fn possible() -> Result<(), String> {
    let unshare = [&OF_ITS_OWN[..], &["true"]].concat();
    for (program, arguments) in [
        ("unshare", &unshare[..]),
        // Of the package iproute2.
        ("ip", &["-V"]),
        ("mount", &["--version"]),
        ("curl", &["--version"]),
    ] {
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|error| format!("needs `{program}`: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.trim();
            return Err(format!("needs root and namespaces: {program}: {why}"));
        }
    }
    Ok(())
}

async fn passes() -> bool {
    // There is no way to the outside from within.
    let servers = control_plane().await;
    // All processes there count from 1, and name their files by that.
    let files = tempfile::tempdir().expect("a folder");
    let status = Command::new("unshare")
        .args(OF_ITS_OWN)
        .arg("--")
        .arg(std::env::current_exe().expect("this program"))
        .env(ROLE, "inside")
        .env("KUBEBUILDER_ASSETS", servers)
        .env("TMPDIR", files.path())
        .status();
    status.expect("unshare starts").success()
}

/// The folder with etcd and kube-apiserver.
async fn control_plane() -> PathBuf {
    let etcd = provide(Tool::Etcd).await.expect("etcd").path;
    let apiserver = provide(Tool::KubeApiserver).await.expect("kube-apiserver");
    let folder = etcd.parent().expect("a folder").to_owned();
    assert_eq!(apiserver.path.parent(), Some(folder.as_path()));
    folder
}
