//! A real Kubernetes control plane, etcd and kube-apiserver, for tests.
//!
//! ```no_run
//! # async fn example() {
//! use cloudkeel_testkit::control_plane::ControlPlane;
//!
//! let plane = ControlPlane::shared().await;
//! let admin = plane.client();
//! let jane = plane.client_for("jane", &["developers"]);
//! # }
//! ```
//!
//! It listens on the loopback interface only, trusts a certificate authority made for the run, and ends
//! with the process that started it, however that ends. No controller runs besides those inside
//! kube-apiserver: nothing schedules Pods, collects garbage or empties a deleted Namespace.
//!
//! | variable | effect |
//! |---|---|
//! | `KUBEBUILDER_ASSETS` | a directory with ready-made etcd and kube-apiserver |
//! | `CLOUDKEEL_CACHE` | where programs are kept once they are built |
//! | `CLOUDKEEL_KEEP_LOGS=1` | the run directory with the logs stays after the run |
//! | `CLOUDKEEL_CONTROL_PLANE` | the run directory of a control plane that [`ControlPlane::shared`] attaches to |

mod accounts;
mod attach;
mod audit;
mod clients;
mod error;
mod flags;
mod notice;
mod outage;
mod pki;
mod port;
mod readiness;
mod run_dir;
mod start;
mod supervisor;
mod tail;
#[cfg(test)]
mod tests;
mod tools;
mod unmet;

use std::path::Path;

pub use audit::Write;
use clients::Clients;
pub use error::ControlPlaneError;
use notice::notice;
pub use port::free_port;
use run_dir::RunDir;
use start::Launch;
use supervisor::{Leftovers, Server, Supervised};
use tokio::sync::OnceCell;
pub use tools::{KUBERNETES_VERSION, Located, Origin, Tool, ToolError, locate, provide};

/// A running etcd and kube-apiserver.
///
/// Both stop when this value is dropped and when this process ends, whichever comes first.
#[derive(Debug)]
pub struct ControlPlane {
    run: RunDir,
    clients: Clients,
    version: String,
    servers: Vec<Supervised>,
    /// How to start that one again; `None` if another process has started it.
    api_server: Option<Server>,
}

impl ControlPlane {
    /// Starts a control plane of its own for one test.
    ///
    /// A test that does not need one alone should take [`ControlPlane::shared`].
    pub async fn start() -> Result<Self, ControlPlaneError> {
        Launch::prepare().await?.start(free_port).await
    }

    /// The same with a log of all that is written, for [`ControlPlane::writes_of`].
    pub async fn start_audited() -> Result<Self, ControlPlaneError> {
        let launch = Launch {
            audited: true,
            ..Launch::prepare().await?
        };
        launch.start(free_port).await
    }

    /// The same with more flags for the API server. The last one of a name counts.
    pub async fn start_with(flags: &[&str]) -> Result<Self, ControlPlaneError> {
        let launch = Launch {
            flags: flags.iter().map(ToString::to_string).collect(),
            ..Launch::prepare().await?
        };
        launch.start(free_port).await
    }

    /// The control plane that all tests of this process share; they keep apart by the names of their objects.
    /// It is the one that `CLOUDKEEL_CONTROL_PLANE` names, or else one of this process.
    ///
    /// # Panics
    /// If it cannot be started, with the reason, in every test that asks for it.
    #[expect(clippy::panic, reason = "a test without its control plane fails")]
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Result<ControlPlane, ControlPlaneError>> = OnceCell::const_new();
        match SHARED.get_or_init(Self::attach_or_start).await {
            Ok(plane) => plane,
            Err(error) => {
                unmet::print_if_missing(error);
                panic!("no control plane: {error}")
            }
        }
    }

    /// The version that the API server reports, such as `v1.35.4`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The directory with the logs of both servers, as long as it runs.
    pub fn run_dir(&self) -> &Path {
        self.run.path()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if self.servers.is_empty() {
            return;
        }
        let failed = std::thread::panicking();
        let leftovers = if failed {
            Leftovers::Keep
        } else {
            kept_by_request()
        };
        if leftovers == Leftovers::Keep {
            notice(&format!("logs are kept in {}", self.run.path().display()));
        }
        stop_all(&mut self.servers, leftovers);
    }
}

/// Stops the servers side by side and waits until all of them are gone.
fn stop_all(servers: &mut [Supervised], leftovers: Leftovers) {
    for server in servers.iter_mut() {
        server.stop(leftovers);
    }
    for server in servers {
        server.wait();
    }
}

/// Whether the logs of every run are to be kept.
fn kept_by_request() -> Leftovers {
    match std::env::var("CLOUDKEEL_KEEP_LOGS") {
        Ok(value) if value == "1" => Leftovers::Keep,
        _ => Leftovers::Remove,
    }
}
