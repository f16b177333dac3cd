//! Why a control plane did not start, or could not be used.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::tools::ToolError;

/// Why a control plane did not start, or could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlPlaneError {
    /// A program is missing or could not be built.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The run directory or a supervisor could not be made.
    #[error("could not {action}: {source}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A key or certificate could not be made.
    #[error("could not make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// More groups than one certificate can carry.
    #[error(
        "the certificate of {user} cannot carry the groups {groups}: at most two are supported"
    )]
    TooManyGroups {
        /// The user.
        user: String,
        /// The groups, separated by commas.
        groups: String,
    },
    /// A server ended during start-up.
    #[error("{server} ended during start-up with {status}; logs: {}; the last lines:\n{log}", run_dir.display())]
    Died {
        /// Which server.
        server: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// Where its logs are.
        run_dir: PathBuf,
        /// The end of its log.
        log: String,
    },
    /// The servers run, but did not get ready in time.
    #[error(
        "the control plane was not ready within {deadline:?} ({reason}); logs: {}; the last lines:\n{log}",
        run_dir.display()
    )]
    Late {
        /// How long was waited.
        deadline: Duration,
        /// What was still missing.
        reason: String,
        /// Where the logs are.
        run_dir: PathBuf,
        /// The end of the log of each server.
        log: String,
    },
    /// The control plane belongs to another process.
    #[error("another process started this control plane, so this one cannot restart it")]
    NotOurs,
    /// A client could not be made, or its request failed.
    #[error("the API server at {url} could not be used: {source}")]
    Client {
        /// The server's address.
        url: String,
        /// What the client said.
        source: Box<kube::Error>,
    },
}

impl ControlPlaneError {
    /// Names the action of an I/O error.
    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}
