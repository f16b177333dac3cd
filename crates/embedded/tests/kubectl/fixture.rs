//! An API that listens, and `kubectl` with its kubeconfig.

use std::path::PathBuf;
use std::process::Stdio;

use cloudkeel_embedded::{EmbeddedApi, Identity, Served};
use cloudkeel_testkit::control_plane::{Tool, provide};
use kube::Client;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

pub(crate) struct Fixture {
    pub(crate) api: EmbeddedApi,
    served: Served,
    kubectl: PathBuf,
    /// Holds the kubeconfig and what `kubectl` caches.
    home: TempDir,
}

/// What a run of `kubectl` came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) success: bool,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let api = EmbeddedApi::new();
        let served = api.serve(0).await.expect("the API listens");
        let home = TempDir::new().expect("a directory");
        let kubeconfig = served.kubeconfig(Identity::admin("admin"));
        std::fs::write(home.path().join("kubeconfig"), kubeconfig).expect("a kubeconfig");
        let kubectl = provide(Tool::Kubectl).await.expect("kubectl").path;
        Self {
            api,
            served,
            kubectl,
            home,
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.api.client("test")
    }

    /// Stops listening and waits for the connections to close.
    pub(crate) async fn close(self) {
        self.served.stop().await;
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("kubeconfig"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("kubectl starts")
    }

    /// Runs `kubectl` with this on its standard input.
    pub(crate) async fn run_with(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = self.spawn(arguments);
        let mut stdin = child.stdin.take().expect("a standard input");
        stdin.write_all(input.as_bytes()).await.expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().await.expect("it ends");
        Run {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            success: output.status.success(),
        }
    }

    /// Runs `kubectl`, which must succeed, and gives what it printed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let run = self.run_with(arguments, "").await;
        assert!(run.success, "kubectl {arguments:?}: {run:?}");
        run.stdout
    }

    /// Applies a manifest, which must succeed, and gives what was printed.
    pub(crate) async fn apply(&self, manifest: &str) -> String {
        let run = self.run_with(&["apply", "-f", "-"], manifest).await;
        assert!(run.success, "kubectl apply: {run:?}");
        run.stdout
    }
}

/// The words of a line of a table.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
