//! The manager, from start to end.

use std::sync::Arc;

use cloudkeel_api::{Clock, Problems, Registry, RegistryError, SystemClock};
use cloudkeel_controllers::runtime::EventRecorder;
use cloudkeel_controllers::{ControllerSelection, SelectionError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::clouds::{CloudParts, build_clouds};
use super::configz::configz;
use super::controllers::wanted;
use super::elect::elect_and_lead;
use super::invocation::Start;
use super::leading::LeaderParts;
use super::serve::{ServeParts, serve_endpoints, serve_webhooks};
use super::signals::stop_on_signal;
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
    #[error("the API server does not answer: {0}")]
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
    let Start {
        options,
        setup,
        notes,
    } = start;
    for note in &notes {
        warn!("{note}");
    }
    info!(version = env!("CARGO_PKG_VERSION"), "cloudkeel starts");
    let stop = stop_on_signal()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = Metrics::new(
        &BuildInfo::of_version(env!("CARGO_PKG_VERSION")),
        clock.now(),
    );
    let factory = ClientFactory::new(&options.api_server, metrics.clone()).await?;
    let (events, reports) = EventRecorder::channel();
    let parts = CloudParts {
        options: &options,
        client: factory.unfenced("start")?,
        metrics: &metrics,
        events: &events,
        clock: Arc::clone(&clock),
        env: std::env::vars().collect(),
    };
    let clouds = build_clouds(&setup, registry, &parts).await?;
    let selection = select(&options, &clouds)?;
    let wanted = wanted(&selection, &options, &clouds, registry);
    let health = Arc::new(Health::new(clock.now()));
    let ports = CancellationToken::new();
    let close_ports = ports.clone().drop_guard();
    let serve_parts = ServeParts {
        options: &options,
        metrics: &metrics,
        health: &health,
        clock: Arc::clone(&clock),
        configz: configz(&options, &setup),
        log,
    };
    let served = serve_endpoints(serve_parts, &ports).await?;
    let webhooks = clouds
        .iter()
        .flat_map(|cloud| cloud.provider.webhooks())
        .collect();
    let served_webhooks =
        serve_webhooks(&options, webhooks, &metrics, Arc::clone(&clock), &ports).await?;
    let leader = LeaderParts {
        options: &options,
        factory: &factory,
        clouds: &clouds,
        wanted,
        metrics: &metrics,
        health: &health,
        events: &events,
        clock,
    };
    let ending = Box::pin(elect_and_lead(leader, reports, stop)).await;
    for cloud in &clouds {
        cloud.provider.close().await;
    }
    drop(close_ports);
    for served in [served, served_webhooks].into_iter().flatten() {
        // A port that does not close in time closes with the process.
        let _ = served.await;
    }
    ending
}

fn select(
    options: &Options,
    clouds: &[Arc<cloudkeel_controllers::clouds::Cloud>],
) -> Result<ControllerSelection, RunError> {
    let provided: Vec<_> = clouds
        .iter()
        .flat_map(|cloud| cloud.provider.background_controllers())
        .map(|controller| controller.name())
        .collect();
    ControllerSelection::new(&options.generic.controllers, &provided).map_err(RunError::Selection)
}
