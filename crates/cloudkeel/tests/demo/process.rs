//! A demo as a process, read line by line.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::control_plane::{Tool, provide};
use serde_json::Value;

pub(crate) const DEADLINE: Duration = Duration::from_mins(2);

/// A demo that was started with `--output json`. It is killed when dropped.
pub(crate) struct Demo {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said of itself when it had started.
    pub(crate) started: Value,
}

impl Demo {
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::start_with(words, |_| {})
    }

    pub(crate) fn start_with(words: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_cloudkeel")), words, change)
    }

    /// Starts it under an umask that keeps nothing private.
    pub(crate) fn start_without_umask(words: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut shell = Command::new("sh");
        let line = "umask 000 && exec \"$0\" \"$@\"";
        shell.args(["-c", line, env!("CARGO_BIN_EXE_cloudkeel")]);
        Self::start_as(shell, words, change)
    }

    fn start_as(mut command: Command, words: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        command.args(["demo", "--output", "json"]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().expect("the demo starts");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let mut demo = Self {
            child,
            out,
            started: Value::Null,
        };
        let first = demo.line().expect("it says that it has started");
        demo.started = first["started"].clone();
        assert!(demo.started.is_object(), "{first}");
        demo
    }

    /// The next line; `None` when there are no more.
    pub(crate) fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.out.read_line(&mut line).expect("its output is text");
        let parse = || serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        (read > 0).then(parse)
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        let value = self.started[key].as_str();
        value.unwrap_or_else(|| panic!("no {key} in {}", self.started))
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.text("folder").into()
    }

    /// The processes of its managers at the start.
    pub(crate) fn managers(&self) -> Vec<u64> {
        let managers = self.started["managers"].as_array().expect("managers");
        let pids = managers
            .iter()
            .filter_map(|manager| manager["pid"].as_u64());
        pids.collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success(), "{name} was sent");
    }

    /// The exit code, once it has ended.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status = eventually("the end of the demo", DEADLINE, || {
            let status = self.child.try_wait().expect("the process can be asked");
            async move { status }
        });
        status.await.code()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Its children notice by themselves.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with etcd and kube-apiserver, for `KUBEBUILDER_ASSETS`.
pub(crate) async fn control_plane_assets() -> PathBuf {
    let etcd = provide(Tool::Etcd).await.expect("etcd").path;
    let apiserver = provide(Tool::KubeApiserver).await;
    let apiserver = apiserver.expect("kube-apiserver").path;
    let folder = etcd.parent().expect("a folder").to_owned();
    assert_eq!(apiserver.parent(), Some(folder.as_path()));
    folder
}

/// Waits until these processes and this folder are gone.
pub(crate) async fn all_gone(pids: &[u64], folder: &Path) {
    for pid in pids {
        eventually(&format!("the end of process {pid}"), DEADLINE, || async {
            !lives(*pid)
        })
        .await;
    }
    eventually("the end of the folder", DEADLINE, || async {
        !folder.exists()
    })
    .await;
}

/// A process that ended and was not yet waited for has no command line.
pub(crate) fn lives(pid: u64) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}
