//! The manager, from start to end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use cloudkeel_api::{Clock, Problems, Registry, RegistryError, SystemClock};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{Brief, EventRecorder};
use cloudkeel_controllers::{ControllerSelection, SelectionError};
use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::balancing::Balancing;
use super::clouds::{CloudBuilder, CloudParts};
use super::configz::configz;
use super::controllers::wanted;
use super::elect::elect_and_lead;
use super::invocation::Start;
use super::leading::{Identity, LeaderParts};
use super::serve::{ServeParts, serve_endpoints, serve_webhooks};
use super::signals::stop_on_signal;
use crate::background;
use crate::client::{AccountError, ClientFactory, ConnectError};
use crate::health::Health;
use crate::logging::LogControl;
use crate::metrics::{BuildInfo, Metrics};
use crate::options::Options;
use crate::serving::ServingError;

/// How the manager ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to.
    Stopped,
    /// Somebody else may write now.
    LeaseLost(String),
}

/// Why the manager could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No way to the API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The API server does not answer.
    #[error("the API server does not answer: {}", Brief(.0))]
    ApiServer(kube::Error),
    /// A cloud could not be built.
    #[error(transparent)]
    Cloud(#[from] RegistryError),
    /// The ports could not be opened.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// A controller has no account.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The election is not set up right.
    #[error("leader election: {0}")]
    Election(Problems),
    /// A controller is not set up right.
    #[error("{0}")]
    Controller(Problems),
    /// Controllers that do not exist.
    #[error("--controllers: {}", join(.0))]
    Selection(Vec<SelectionError>),
    /// Webhooks that do not exist.
    #[error("--webhooks: {}", join(.0))]
    Webhooks(Vec<SelectionError>),
    /// The system does not let us.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// Controllers that write without a fence to stop them are not started.
    #[error("the election ended before it began: {0}")]
    NotElected(String),
}

fn join(errors: &[SelectionError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Runs until it is asked to end, or until the lease is lost.
pub(super) async fn run(
    start: Start,
    registry: &Registry,
    log: LogControl,
) -> Result<Ending, RunError> {
    let (options, setup) = (&start.options, &start.setup);
    for note in &start.notes {
        warn!("{note}");
    }
    let version = env!("CARGO_PKG_VERSION");
    info!(version, "cloudkeel starts");
    let stop = stop_on_signal()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = Metrics::new(&BuildInfo::of_version(version), clock.now());
    let factory = ClientFactory::new(&options.api_server, metrics.clone()).await?;
    let (events, reports) = EventRecorder::channel();
    let parts = CloudParts {
        options,
        client: factory.unfenced("start")?,
        metrics: &metrics,
        events: &events,
        clock: Arc::clone(&clock),
        env: environment(),
    };
    let builder = CloudBuilder::new(registry, parts).await;
    let reloadable = builder.build_all(setup).await?;
    let clouds: Vec<_> = reloadable.iter().map(|it| Arc::clone(&it.cloud)).collect();
    let balancing = Balancing::of(setup, builder.cluster.clone());
    let selection = select(options, &clouds)?;
    let wanted = wanted(&selection, options, &clouds, registry);
    let health = Arc::new(Health::new(clock.now()));
    let ports = CancellationToken::new();
    let close_ports = ports.clone().drop_guard();
    let serve_parts = ServeParts {
        options,
        metrics: &metrics,
        health: &health,
        clock: Arc::clone(&clock),
        configz: configz(options, setup),
        log,
    };
    let served = open_ports(serve_parts, &clouds, &ports).await?;
    let replica = Identity::of_this_process();
    let leader = LeaderParts {
        options,
        factory: &factory,
        clouds: &clouds,
        balancing: &balancing,
        wanted,
        provided: background::selected(&selection, &clouds),
        metrics: &metrics,
        health: &health,
        events: &events,
        clock,
        replica: &replica,
    };
    let ending = tokio::select! {
        biased;
        ending = Box::pin(elect_and_lead(leader, reports, stop)) => ending,
        never = Box::pin(builder.keep_current(reloadable, &start)) => match never {},
    };
    join_all(clouds.iter().map(|cloud| cloud.provider.close())).await;
    drop(close_ports);
    // A port that does not close in time closes with the process.
    let _ = join_all(served).await;
    ending
}

/// Opens the secure port and the webhook port, if they are asked for.
async fn open_ports(
    parts: ServeParts<'_>,
    clouds: &[Arc<Cloud>],
    stop: &CancellationToken,
) -> Result<Vec<JoinHandle<()>>, RunError> {
    let (options, metrics, clock) = (parts.options, parts.metrics, Arc::clone(&parts.clock));
    let endpoints = serve_endpoints(parts, stop).await?;
    let webhooks = clouds.iter().flat_map(|cloud| cloud.provider.webhooks());
    let webhooks = serve_webhooks(options, webhooks.collect(), metrics, clock, stop).await?;
    Ok([endpoints, webhooks].into_iter().flatten().collect())
}

/// The environment, as far as it is text: a variable that is not is none of ours.
fn environment() -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

pub(super) fn select(
    options: &Options,
    clouds: &[Arc<Cloud>],
) -> Result<ControllerSelection, RunError> {
    let provided: Vec<_> = clouds
        .iter()
        .flat_map(|cloud| cloud.provider.background_controllers())
        .map(|controller| controller.name())
        .collect();
    ControllerSelection::new(&options.generic.controllers, &provided).map_err(RunError::Selection)
}
