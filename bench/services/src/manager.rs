//! The program under measurement, as a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::town::Town;

/// A process that has not ended by then will not.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the program is started.
pub(crate) struct Start<'a> {
    binary: &'a Path,
    flags: Vec<String>,
    folder: TempDir,
}

impl<'a> Start<'a> {
    pub(crate) fn new(binary: &'a Path, more: &[String], town: &Town) -> Result<Self> {
        let folder = TempDir::new()?;
        let config = folder.path().join("clouds.yaml");
        std::fs::write(&config, town.configuration())?;
        let mut flags = vec![
            format!("--kubeconfig={}", town.kubeconfig().display()),
            format!("--cloud-config={}", config.display()),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
            "--controllers=service".to_owned(),
        ];
        flags.extend_from_slice(more);
        Ok(Self {
            binary,
            flags,
            folder,
        })
    }

    pub(crate) fn run(&self, more: &[&str]) -> Result<Running> {
        let log = self.folder.path().join("log");
        let child = Command::new(self.binary)
            .args(&self.flags)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("{} does not start", self.binary.display()))?;
        Ok(Running { child, log })
    }
}

/// The process is ended when the run is over, however that is.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let asked = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        asked.context("kill does not run")?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > PATIENCE {
                bail!("the program did not end; its log:\n{}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
