//! A stack that runs: started until it is ready, stopped with everything that it has started.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::Site;

/// How long a stack may take to get ready, on a machine that does other things too.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// How long it may take to end by itself.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the processes of a killed group may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// So much of the log explains why it did not start.
const LINES_OF_LOG: usize = 30;

/// A stack that is ready. It is stopped when this is dropped.
pub(super) struct Running {
    child: Child,
    /// What it prints until it is ready. The channel ends with the last process that has its stdout.
    output: Receiver<String>,
    variables: Vec<(String, String)>,
}

impl Running {
    pub(super) fn start(site: &Site<'_>, command: Command) -> Result<Self> {
        Self::start_within(site, command, START_TIMEOUT)
    }

    pub(super) fn start_within(
        site: &Site<'_>,
        mut command: Command,
        timeout: Duration,
    ) -> Result<Self> {
        let path = site.log();
        let log = File::create(&path)
            .with_context(|| format!("cannot create the log {}", path.display()))?;
        let mut child = command
            .current_dir(site.state())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // All that it starts is in this group, and ends with it.
            .process_group(0)
            .spawn()
            .context("cannot run the program of the stack")?;
        let output = follow(child.stdout.take().context("it has no stdout")?);
        let mut running = Self {
            child,
            output,
            variables: Vec::new(),
        };
        running.wait_until_ready(timeout, &path)?;
        Ok(running)
    }

    /// What tests have to know.
    pub(super) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Ends it now rather than at the end of a scope.
    pub(super) fn stop(self) {
        drop(self);
    }

    fn wait_until_ready(&mut self, timeout: Duration, log: &PathBuf) -> Result<()> {
        loop {
            match self.output.recv_timeout(timeout) {
                Ok(line) if line.is_empty() => return Ok(()),
                Ok(line) => {
                    let Some((name, value)) = line.split_once('=') else {
                        bail!("it printed `{line}` instead of NAME=value");
                    };
                    self.variables.push((name.to_owned(), value.to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "it was not ready within {timeout:?}; its log:\n{}",
                        tail(log)
                    );
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("it ended before it was ready; its log:\n{}", tail(log));
                }
            }
        }
    }

    /// A signal only asks; a process that is gone has closed its end of the pipe.
    fn wait_until_gone(&self) {
        while self.output.recv_timeout(KILL_TIMEOUT).is_ok() {}
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let group = format!("-{}", self.child.id());
        let watchdog = Watchdog::start(STOP_TIMEOUT, group.clone());
        // The only failure is that it was reaped before.
        let _ = self.child.wait();
        watchdog.dismiss();
        // Whatever it left behind; there is usually nothing, which is no failure.
        kill(&group);
        self.wait_until_gone();
    }
}

/// Reads to the end, so that the stack never waits for a reader.
fn follow(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut is_ready = false;
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if !is_ready {
                is_ready = line.is_empty();
                // The receiver is gone once the stack is stopped.
                let _ = sender.send(line);
            }
        }
    });
    receiver
}

/// Kills a process group unless it is dismissed in time.
struct Watchdog(mpsc::Sender<()>);

impl Watchdog {
    fn start(timeout: Duration, group: String) -> Self {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            if receiver.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                kill(&group);
            }
        });
        Self(sender)
    }

    fn dismiss(self) {
        // It may have acted already.
        let _ = self.0.send(());
    }
}

fn kill(group: &str) {
    let _ = Command::new("kill")
        .args(["-s", "KILL", "--", group])
        .stderr(Stdio::null())
        .status();
}

fn tail(log: &PathBuf) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LINES_OF_LOG);
    lines
        .into_iter()
        .skip(skipped)
        .collect::<Vec<_>>()
        .join("\n")
}
