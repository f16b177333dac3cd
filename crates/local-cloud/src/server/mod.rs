//! The local cloud: the simulated one, made real on this machine.

mod api;
mod args;
mod command;
mod committer;
mod launch;
mod lock;
mod machines;
mod options;
mod running;
mod state_file;
mod token;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::committer::{Committer, CommitterHandle};
use self::lock::Lock;
use self::machines::{Reported, Source, replace_all};
use self::state_file::StateFile;
use crate::plane::Plane;
use crate::routes::RouteKeeper;
use crate::serving::{Limits, serve};
use crate::simulated_cloud::{Permission, SimulatedCloud};

pub use self::api::{STATS_PATH, STOP_PATH};
pub use self::command::{command, main};
pub use self::committer::CloudStats;
pub use self::launch::BackgroundCloud;
pub use self::lock::{Contact, Files, Running};
pub use self::machines::{MachinesFileError, NodesError};
pub use self::options::{Addresses, Options, StartError};
pub use self::state_file::StateError;

/// How long callers of the API may finish when the cloud ends.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Others look at the lock for a moment; that is no reason to give up.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// A cloud that is running in this process.
#[derive(Debug)]
pub struct LocalCloud {
    cloud: SimulatedCloud,
    committer: CommitterHandle,
    contact: Contact,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _lock: Lock,
}

impl LocalCloud {
    /// Takes up the state where it was left, opens all frontends, and serves the API. Whatever can go
    /// wrong by what was asked for goes wrong before a frontend is opened.
    pub async fn start(options: &Options) -> Result<Self, StartError> {
        let files = &options.files;
        let mut lock = take_lock(files).await?;
        let file = StateFile::at(files.state.clone());
        let cloud = begin(options, &file)?;
        let token_file = options.token_file.clone().unwrap_or_else(|| files.token());
        let_in(&cloud, &token_file)?;
        let nodes = if options.machines_from_nodes {
            Some(machines::connect(options.kubeconfig.as_deref()).await?)
        } else {
            None
        };
        let committer = Committer {
            cloud: cloud.clone(),
            file: Some(file),
            plane: Plane::new(options.plane).map_err(StartError::Tls)?,
            routes: RouteKeeper::new(options.routes).map_err(|why| StartError::Routes {
                why: why.to_string(),
            })?,
        };
        let (listener, url) = listen(options, lock.before.as_ref()).await?;
        let contact = Contact {
            pid: std::process::id(),
            url,
            token_file,
        };
        let committer = committer.start();
        let settled = cloud.settle().await.map_err(StartError::State);
        let reported = settled.and_then(|()| lock.publish(&contact).map_err(StartError::Lock));
        if let Err(error) = reported {
            committer.close().await;
            return Err(error);
        }
        let stop = CancellationToken::new();
        let router = api::router(&cloud, &committer, &stop, options.control);
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(serve(listener, router, Limits::default(), stopped));
        if let Some(nodes) = nodes {
            let following = machines::follow(cloud.clone(), nodes);
            tokio::spawn(stop.clone().run_until_cancelled_owned(following));
        }
        Ok(Self {
            cloud,
            committer,
            contact,
            stop,
            serving,
            _lock: lock,
        })
    }

    /// The world behind the API.
    pub const fn cloud(&self) -> &SimulatedCloud {
        &self.cloud
    }

    /// How others find it.
    pub const fn contact(&self) -> &Contact {
        &self.contact
    }

    /// What it is doing.
    pub async fn stats(&self) -> CloudStats {
        self.committer.stats().await.unwrap_or_default()
    }

    /// Ends it when cancelled; cancelled by `POST /v1/stop`.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Ends it: the API first, then connections within the drain time.
    pub async fn close(self) {
        self.stop.cancel();
        // Requests that are still open by then get no answer.
        let _ = timeout(LAST_ANSWERS, self.serving).await;
        self.committer.close().await;
    }
}

async fn take_lock(files: &Files) -> Result<Lock, StartError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = Lock::take(&files.lock()).map_err(StartError::Lock)? {
            return Ok(lock);
        }
        if Instant::now() >= deadline {
            let contact = match files.running() {
                Ok(Running::Yes(contact)) => Some(contact),
                Ok(Running::No | Running::Starting) | Err(_) => None,
            };
            return Err(StartError::running(files, contact.as_ref()));
        }
        sleep(LOCK_TIMEOUT / 20).await;
    }
}

/// The cloud as it was left, or a new one, with the machines of the file.
fn begin(options: &Options, file: &StateFile) -> Result<SimulatedCloud, StartError> {
    let (settings, region) = (options.settings(), &options.region);
    let cloud = match file.read()? {
        None => SimulatedCloud::in_region(settings, region),
        Some(snapshot) => {
            let cloud = SimulatedCloud::restore(settings, region, snapshot);
            cloud.map_err(|why| file.broken(why))?
        }
    };
    if let Some(path) = &options.machines {
        let machines = machines::read_file(path)?;
        let machines = machines.into_iter().map(Reported::from).collect();
        replace_all(&cloud, Source::File, machines).map_err(StartError::Machines)?;
    }
    Ok(cloud)
}

/// Rejects requests without the token.
fn let_in(cloud: &SimulatedCloud, token_file: &Path) -> Result<(), StartError> {
    let token = token::read_or_make(token_file).map_err(|source| StartError::Token {
        path: token_file.to_owned(),
        source,
    })?;
    cloud.revoke(SimulatedCloud::TOKEN);
    cloud.grant(&token, SimulatedCloud::PROJECT, Permission::ReadWrite);
    Ok(())
}

/// Where it was asked to listen; else where it was before, so that those who knew it find it; else
/// anywhere.
async fn listen(
    options: &Options,
    before: Option<&Contact>,
) -> Result<(TcpListener, String), StartError> {
    let before = before.and_then(|contact| contact.url.strip_prefix("http://")?.parse().ok());
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let address = options.listen.or(before).unwrap_or(anywhere);
    let mut bound = TcpListener::bind(address).await;
    if let Err(error) = &bound
        && options.listen.is_none()
    {
        warn!(%address, err = %error, "previous port is in use, choosing another");
        bound = TcpListener::bind(anywhere).await;
    }
    let failed = |source| StartError::Listen { address, source };
    let listener = bound.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, format!("http://{address}")))
}
