//! A home folder of its own, and programs that have it.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use cloudkeel_testkit::cluster::eventually;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A home with the local clouds of a test in it. They end with it.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    /// The program, at home here.
    pub(crate) fn cloudkeel(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        command
            .args(words)
            .env("XDG_STATE_HOME", self.0.path())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.cloudkeel(words).output().expect("the program runs")
    }

    /// What `status` says of all clouds.
    pub(crate) fn status(&self) -> Vec<Value> {
        let output = self.run(&["local-cloud", "status", "--output", "json"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        serde_json::from_slice(&output.stdout).expect("a list")
    }

    /// The one cloud that runs.
    pub(crate) async fn running(&self) -> Value {
        eventually("a running cloud", DEADLINE, || async {
            let mut all = self.status().into_iter();
            all.find(|cloud| cloud["is"] == "running")
        })
        .await
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for cloud in self.status() {
            let state = cloud.get("state").and_then(Value::as_str);
            let state = state.unwrap_or_default();
            let output = self.run(&["local-cloud", "stop", "--state", state]);
            if !output.status.success() {
                eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }
}

/// A process that is killed when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Sends a signal by name, as `kill` does.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.0.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success(), "{name} was sent");
    }

    /// The exit code, once it has ended.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status = eventually("the end of a process", DEADLINE, || {
            let status = self.0.try_wait().expect("the process can be asked");
            async move { status }
        })
        .await;
        status.code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
