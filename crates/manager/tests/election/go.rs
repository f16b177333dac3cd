//! A candidate that runs Go's client library, as a process.

use std::process::Stdio;
use std::time::Duration;

use cloudkeel_manager::election::ElectionConfig;
use cloudkeel_testkit::control_plane::{ControlPlane, Tool, provide};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::candidate::DEADLINE;

/// One line of its output.
#[derive(Debug, Deserialize)]
struct Line {
    event: String,
    identity: String,
}

/// A running Go candidate. It ends with its standard input, so with this value at the latest.
pub(crate) struct GoCandidate {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl GoCandidate {
    /// On the real API server: Go's clients speak protobuf, which the embedded one does not.
    pub(crate) async fn start(config: &ElectionConfig) -> Self {
        let program = provide(Tool::LeaseCandidate).await.unwrap().path;
        let kubeconfig = ControlPlane::shared()
            .await
            .kubeconfig_for("go-candidate", &["system:masters"]);
        let millis = |duration: Duration| format!("{}ms", duration.as_millis());
        let mut process = Command::new(program)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--namespace", &config.namespace, "--name", &config.name])
            .args(["--identity", &config.identity])
            .args(["--lease-duration", &millis(config.lease_duration)])
            .args(["--renew-deadline", &millis(config.renew_deadline)])
            .args(["--retry-period", &millis(config.retry_period)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdout = process.stdout.take().expect("it is piped");
        let mut candidate = Self {
            process,
            output: BufReader::new(stdout).lines(),
        };
        candidate.wait_for("started", &config.identity).await;
        candidate
    }

    pub(crate) async fn leads(&mut self, identity: &str) {
        self.wait_for("leading", identity).await;
    }

    pub(crate) async fn waits_for(&mut self, holder: &str) {
        self.wait_for("observed", holder).await;
    }

    /// Ends as on a planned shutdown: the lease is released.
    pub(crate) async fn stop(mut self) {
        drop(self.process.stdin.take());
        let status = tokio::time::timeout(DEADLINE, self.process.wait()).await;
        assert!(status.expect("it ends").unwrap().success());
    }

    /// Ends by SIGKILL.
    pub(crate) async fn crash(mut self) {
        self.process.kill().await.unwrap();
    }

    /// Reads until it says so.
    async fn wait_for(&mut self, event: &str, identity: &str) {
        let seen = async {
            while let Some(text) = self.output.next_line().await.unwrap() {
                let line: Line = serde_json::from_str(&text).unwrap();
                if line.event == event && line.identity == identity {
                    return;
                }
            }
            panic!("the Go candidate ended before it said {event:?} {identity:?}");
        };
        tokio::time::timeout(DEADLINE, seen)
            .await
            .unwrap_or_else(|_| panic!("the Go candidate does not say {event:?} {identity:?}"));
    }
}
