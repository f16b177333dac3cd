//! Why a program of the control plane could not be had.

use std::io;
use std::path::PathBuf;

use super::Tool;
use super::lookup::ASSETS;

/// Why a program of the control plane could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The program is nowhere, and there is no Go to build it with.
    #[error(
        "{name} was not found: it is not in {ASSETS} ({assets}), not on PATH and not in the cache, and there is no `go` on PATH \
         to build it. Either set {ASSETS} to a directory with etcd and kube-apiserver, or install Go 1.25 or newer",
        name = tool.name(),
        assets = assets.as_ref().map_or("not set".into(), |dir| dir.display().to_string()),
    )]
    Missing {
        /// What was looked for.
        tool: Tool,
        /// The value of `KUBEBUILDER_ASSETS`.
        assets: Option<PathBuf>,
    },
    /// The program could be built, but there is no place to keep it.
    #[error(
        "there is no cache directory to build {} into: set CLOUDKEEL_CACHE, XDG_CACHE_HOME or HOME to an absolute path",
        tool.name()
    )]
    NoCache {
        /// What was to be built.
        tool: Tool,
    },
    /// Go could not build the program.
    #[error(
        "`{command}` failed with {status} (Go 1.25 or newer and its module proxy are needed; or set {ASSETS} to a directory with etcd and \
         kube-apiserver):\n{output}"
    )]
    Build {
        /// The command line.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        output: String,
    },
    /// A file or process of the build could not be used.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ToolError {
    /// Names the action and the file of an I/O error.
    pub(super) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
