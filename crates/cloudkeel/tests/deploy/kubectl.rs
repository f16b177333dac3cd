//! kubectl, as used for an installation.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

use cloudkeel_testkit::cluster::unique_name;
use cloudkeel_testkit::control_plane::{ControlPlane, Tool, provide};

/// What it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// Its output, if it succeeded.
    pub(crate) fn ok(self) -> Self {
        assert!(self.success, "{self:#?}");
        self
    }
}

/// kubectl as an administrator.
pub(crate) struct Kubectl {
    program: std::path::PathBuf,
    kubeconfig: std::path::PathBuf,
    cache: tempfile::TempDir,
}

impl Kubectl {
    pub(crate) async fn new() -> Self {
        let program = provide(Tool::Kubectl).await.expect("kubectl").path;
        let plane = ControlPlane::shared().await;
        Self {
            program,
            kubeconfig: plane.kubeconfig_for(&unique_name("installer"), &["system:masters"]),
            cache: tempfile::TempDir::new().expect("a temporary folder"),
        }
    }

    /// Runs it.
    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Said {
        said(&self.command(arguments).output().expect("kubectl runs"))
    }

    /// Runs it with this on its standard input.
    pub(crate) fn feed(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        text: &str,
    ) -> Said {
        use std::io::Write as _;
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("kubectl reads");
        drop(stdin);
        said(&child.wait_with_output().expect("kubectl ends"))
    }

    fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(self.cache.path())
            .args(arguments);
        command
    }
}

pub(crate) fn said(output: &Output) -> Said {
    Said {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
