//! The manager, from start to end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use cloudkeel_api::{Clock, Problems, Registry, RegistryError, SystemClock};
use cloudkeel_controllers::SelectionError;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{Brief, EventRecorder};
use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::configz::configz;
use super::elect::elect_and_lead;
use super::invocation::Start;
use super::leading::Identity;
use super::prepare::{self, Means, Prepared};
use super::serve::{ServeParts, serve_endpoints, serve_webhooks};
use super::signals::stop_on_signal;
use crate::client::{AccountError, ClientFactory, ConnectError};
use crate::logging::LogControl;
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
    for note in &start.notes {
        warn!("{note}");
    }
    info!(version = prepare::VERSION, "cloudkeel starts");
    let stop = stop_on_signal()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = prepare::metrics(clock.as_ref());
    let factory = ClientFactory::new(&start.options.api_server, metrics.clone()).await?;
    let (events, reports) = EventRecorder::channel();
    let means = Means {
        registry,
        start: &start,
        factory: &factory,
        metrics: &metrics,
        events: &events,
        clock: Arc::clone(&clock),
    };
    let mut prepared = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(Ending::Stopped),
        prepared = Prepared::with(&means, environment()) => prepared?,
    };
    let ports = CancellationToken::new();
    let close_ports = ports.clone().drop_guard();
    let serve_parts = ServeParts {
        options: &start.options,
        metrics: &metrics,
        health: prepared.health(),
        clock,
        configz: configz(&start.options, &start.setup),
        log,
    };
    let served = open_ports(serve_parts, &prepared.clouds, &ports).await?;
    let replica = Identity::of_this_process();
    let reloadable = std::mem::take(&mut prepared.reloadable);
    let leader = prepared.leader(&replica);
    let ending = tokio::select! {
        biased;
        ending = Box::pin(elect_and_lead(leader, reports, stop)) => ending,
        never = Box::pin(prepared.builder.keep_current(reloadable, &start)) => match never {},
    };
    prepared.close().await;
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
