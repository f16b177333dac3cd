//! The local cloud: the simulated one, made real on this machine.

mod api;
mod args;
mod command;
mod elsewhere;
mod keeper;
mod launch;
mod lock;
mod machines;
mod options;
mod state_file;
mod token;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::keeper::{Keeper, KeeperHandle};
use self::lock::Lock;
use self::machines::{Source, replace_all};
use self::state_file::StateFile;
use crate::plane::Plane;
use crate::routes::RouteKeeper;
use crate::simulated_cloud::{Permission, SimulatedCloud};

pub use self::api::{STATS_PATH, STOP_PATH};
pub use self::command::main;
pub use self::keeper::CloudStats;
pub use self::launch::BackgroundCloud;
pub use self::lock::{Contact, Files, Running};
pub use self::machines::{MachinesFileError, NodesError};
pub use self::options::{Addresses, Options, StartError};
pub use self::state_file::StateError;

/// How long callers of the API may finish when the cloud ends.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Others look at the lock for a moment; that is no reason to give up.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// A cloud that is running in this process.
#[derive(Debug)]
pub struct LocalCloud {
    cloud: SimulatedCloud,
    keeper: KeeperHandle,
    contact: Contact,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _lock: Lock,
}

impl LocalCloud {
    /// Takes up the state where it was left, opens all doors, and serves the API.
    pub async fn start(options: &Options) -> Result<Self, StartError> {
        let files = &options.files;
        let mut lock = take_lock(files).await?;
        let token_file = options.token_file.clone().unwrap_or_else(|| files.token());
        let token = token::read_or_make(&token_file).map_err(|source| StartError::Token {
            path: token_file.clone(),
            source,
        })?;
        let file = StateFile::at(files.state.clone());
        let cloud = begin(options, &file)?;
        cloud.revoke(SimulatedCloud::TOKEN);
        cloud.grant(&token, SimulatedCloud::PROJECT, Permission::ReadWrite);
        if let Some(path) = &options.machines {
            let machines = machines::read_file(path)?;
            replace_all(&cloud, Source::File, machines).map_err(StartError::Machines)?;
        }
        let keeper = Keeper {
            cloud: cloud.clone(),
            file: Some(file),
            plane: Plane::new(options.plane).map_err(StartError::Tls)?,
            routes: RouteKeeper::new(options.routes).map_err(|why| StartError::Routes {
                why: why.to_string(),
            })?,
        };
        let keeper = keeper.start();
        cloud.settle().await.map_err(StartError::State)?;
        let listener = listen(options, lock.before.as_ref()).await?;
        let address = listener.local_addr().map_err(StartError::Lock)?;
        let stop = CancellationToken::new();
        let router = api::router(&cloud, &keeper, &stop, options.control);
        let stopped = stop.clone().cancelled_owned();
        let serving = axum::serve(listener, router).with_graceful_shutdown(stopped);
        let contact = Contact {
            pid: std::process::id(),
            url: format!("http://{address}"),
            token_file,
        };
        let local = Self {
            serving: tokio::spawn(async move {
                // A connection that fails is not the cloud's concern.
                let _ = serving.await;
            }),
            cloud,
            keeper,
            stop,
            _lock: {
                lock.tell(&contact).map_err(StartError::Lock)?;
                lock
            },
            contact,
        };
        if options.machines_from_nodes {
            let kubeconfig = options.kubeconfig.as_deref();
            machines::follow(local.cloud.clone(), kubeconfig).await?;
        }
        Ok(local)
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
        self.keeper.stats().await.unwrap_or_default()
    }

    /// Ends it when cancelled; cancelled when somebody asked for an end by the API.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Ends it: the API first, then connections within the drain time.
    pub async fn close(self) {
        self.stop.cancel();
        // Whoever is still asking by then gets no answer.
        let _ = timeout(LAST_ANSWERS, self.serving).await;
        self.keeper.close().await;
    }
}

async fn take_lock(files: &Files) -> Result<Lock, StartError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
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
        sleep(LOCK_PATIENCE / 20).await;
    }
}

/// The cloud as it was left, or a new one.
fn begin(options: &Options, file: &StateFile) -> Result<SimulatedCloud, StartError> {
    let (settings, region) = (options.settings(), &options.region);
    match file.read()? {
        None => Ok(SimulatedCloud::in_region(settings, region)),
        Some(snapshot) => {
            let cloud = SimulatedCloud::restore(settings, region, snapshot);
            Ok(cloud.map_err(|why| file.broken(why))?)
        }
    }
}

/// Where it was asked to listen; else where it was before, so that those who knew it find it; else
/// anywhere.
async fn listen(options: &Options, before: Option<&Contact>) -> Result<TcpListener, StartError> {
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address).await;
        return listener.map_err(|source| StartError::Listen { address, source });
    }
    let before = before.and_then(|contact| contact.url.strip_prefix("http://")?.parse().ok());
    if let Some(address) = before {
        let address: SocketAddr = address;
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => warn!(%address, %error, "the port of before is taken; using another"),
        }
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| StartError::Listen { address, source })
}
