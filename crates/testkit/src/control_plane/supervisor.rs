//! A server process that never outlives the process that started it.
//!
//! Rust statics are not dropped and a killed process runs no code at all, so neither can stop a server.
//! The server is therefore the child of a small shell script that waits for the end of a pipe we hold: the
//! system closes our end of it whenever and however we end.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use super::tail::last_lines;

const SCRIPT: &str = include_str!("supervisor.sh");

/// What becomes of a server's directory once it has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftovers {
    Remove,
    Keep,
}

/// What to run, and where.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    /// Its working directory, which also holds its log.
    pub(super) dir: PathBuf,
}

/// A running server. It stops when this value, or this process, goes away.
#[derive(Debug)]
pub(super) struct Supervised {
    name: &'static str,
    log: PathBuf,
    supervisor: Child,
    lifeline: Option<ChildStdin>,
}

impl Supervised {
    pub(super) fn start(server: Server, on_exit: Leftovers) -> io::Result<Self> {
        let log = server.dir.join(format!("{}.log", server.name));
        let mut supervisor = Command::new("sh")
            .args(["-c", SCRIPT, "supervisor.sh", on_exit.word()])
            .args([&server.dir, &log])
            .arg(server.program)
            .args(server.arguments)
            .current_dir(&server.dir)
            // A variable of the machine, such as ETCD_NAME, must not configure our server.
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            // A key press or a harness that signals our process group must not reach it before the pipe closes.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let lifeline = supervisor.stdin.take();
        Ok(Self {
            name: server.name,
            log,
            supervisor,
            lifeline,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// How the server ended, if it has ended by itself.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.supervisor.try_wait()
    }

    /// The end of the server's log.
    pub(super) fn log_tail(&self, lines: usize) -> String {
        match std::fs::read(&self.log) {
            Ok(log) => last_lines(&String::from_utf8_lossy(&log), lines),
            Err(error) => format!("({} cannot be read: {error})", self.log.display()),
        }
    }

    /// Makes the supervisor stop the server; [`Supervised::wait`] then returns soon.
    pub(super) fn stop(&mut self, leftovers: Leftovers) {
        if let Some(mut lifeline) = self.lifeline.take()
            && leftovers == Leftovers::Keep
        {
            // A supervisor that has ended has nothing left to stop.
            let _ = writeln!(lifeline, "{}", leftovers.word());
        }
    }

    /// Waits until the server is gone and its supervisor reaped.
    pub(super) fn wait(&mut self) {
        // The only failure is that it was reaped before.
        let _ = self.supervisor.wait();
    }
}

impl Leftovers {
    fn word(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Keep => "keep",
        }
    }
}

#[cfg(test)]
mod tests;
