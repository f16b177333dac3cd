//! A command line as a user types it, with the program of this build.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use cloudkeel_testkit::cluster::eventually;

pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// How the README runs the program from its source.
const FROM_SOURCE: &str = "cargo run --release --";

/// The folder of the repository. Read at run time: a target folder that several clones share keeps what
/// was compiled in another one.
pub(crate) fn workspace() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR");
    let folder = PathBuf::from(folder.expect("tests run under cargo"));
    folder.join("../..")
}

/// The command for a shell at home there. `cargo run` builds for minutes what is built here already.
pub(crate) fn shell(line: &str, home: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_cloudkeel"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let line = match line.strip_prefix(FROM_SOURCE) {
        Some(words) => format!("cloudkeel{words}"),
        None => line.to_owned(),
    };
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("exec {line}")])
        .env("PATH", format!("{folder}:{path}"))
        .env("HOME", home)
        .env("XDG_STATE_HOME", home)
        .env_remove("KUBECONFIG")
        .current_dir(home)
        .stdin(Stdio::null());
    shell
}

/// What it prints, when it has ended well.
pub(crate) fn printed(mut command: Command) -> String {
    let output: Output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What is at an address.
pub(crate) fn curl(words: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "10"]);
    curl.args(words);
    printed(curl)
}

/// A program that runs until it is stopped. It is killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Running {
    /// Starts it, to be read line by line.
    pub(crate) fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        Self { child, lines }
    }

    /// Starts it, with a file for what it prints.
    pub(crate) fn start_with_log(mut command: Command, log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a log file");
        command.stdout(log.try_clone().expect("a second handle"));
        let child = command.stderr(log).spawn().expect("it starts");
        Self { child, lines: None }
    }

    /// The next lines, up to the first that is like this.
    pub(crate) fn lines_until(&mut self, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let lines = self.lines.as_mut().expect("its output is read");
        let mut read = Vec::new();
        for line in lines {
            read.push(line.expect("it prints text"));
            if read.last().is_some_and(|line| is_last(line)) {
                return read;
            }
        }
        panic!("it ended after {read:#?}")
    }

    /// Sends a signal by name, and waits for the exit code.
    pub(crate) async fn end(&mut self, signal: &str) -> Option<i32> {
        let sent = Command::new("kill")
            .args([format!("-{signal}"), self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success(), "{signal} was sent");
        let status = eventually("the end of a program", DEADLINE, || {
            let status = self.child.try_wait().expect("it can be asked");
            async move { status }
        });
        status.await.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
