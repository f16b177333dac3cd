//! A contestant as a process.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// A process that has not ended by then will not.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The process is killed when it is dropped.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log)?);
        let child = command
            .spawn()
            .with_context(|| format!("{command:?} does not start"))?;
        Ok(Self { child, log })
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to end, and waits for that.
    pub async fn stop(mut self) -> Result<()> {
        let asked = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        asked.context("kill does not run")?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > STOP_TIMEOUT {
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
