//! The manager, from start to end.

use std::sync::Arc;

use cloudkeel_api::{Clock, Problems, Registry, RegistryError, SystemClock};
use cloudkeel_controllers::SelectionError;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::EventRecorder;
use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::check::Surroundings;
use super::configz::configz;
use super::elect::elect_and_lead;
use super::invocation::Start;
use super::leading::Identity;
use super::prepare::{self, ManagerDeps, Prepared};
use super::serve::{SecurePort, ServeParts, serve_webhooks};
use super::shutdown;
use super::signals::stop_on_signal;
use crate::client::{AccountError, ClientFactory, ConnectError};
use crate::health::{Health, Scope};
use crate::logging::LogControl;
use crate::serving::{ServingError, webhooks_of};

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
    ApiServer(String),
    /// Clouds could not be built: which, and why.
    #[error("{}", of_clouds(.0))]
    Clouds(Vec<(String, RegistryError)>),
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

fn of_clouds(errors: &[(String, RegistryError)]) -> String {
    let errors = errors.iter();
    let texts: Vec<_> = errors
        .map(|(cloud, error)| format!("cloud {cloud}: {error}"))
        .collect();
    texts.join("\n")
}

fn join(errors: &[SelectionError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Runs until it is asked to end, or until the lease is lost. Once it is asked, it ends in bounded time.
pub(super) async fn run(
    start: Start,
    registry: &Registry,
    surroundings: Surroundings,
    log: LogControl,
) -> Result<Ending, RunError> {
    let stop = stop_on_signal()?;
    let limit = shutdown::longest(start.options.generic.shutdown_grace_period);
    tokio::select! {
        biased;
        ending = Box::pin(run_until(start, registry, surroundings, log, stop.clone())) => ending,
        () = shutdown::overdue(&stop, limit) => Ok(Ending::Stopped),
    }
}

async fn run_until(
    start: Start,
    registry: &Registry,
    surroundings: Surroundings,
    log: LogControl,
    stop: CancellationToken,
) -> Result<Ending, RunError> {
    for note in &start.notes {
        warn!("{note}");
    }
    info!(version = prepare::VERSION, "cloudkeel starts");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = prepare::metrics(clock.as_ref());
    let Surroundings { env, kubeconfig } = surroundings;
    let api_server = &start.options.api_server;
    let factory = ClientFactory::new(api_server, kubeconfig.as_deref(), metrics.clone()).await?;
    let health = Arc::new(Health::new(clock.now()));
    let (events, reports) = EventRecorder::channel();
    let deps = ManagerDeps {
        registry,
        start: &start,
        factory: &factory,
        metrics: &metrics,
        events: &events,
        health: &health,
        clock: Arc::clone(&clock),
    };
    let ports = CancellationToken::new();
    let close_ports = ports.clone().drop_guard();
    set_started(&health, false);
    // A manager that waits for the API server is alive, and a probe has to be told.
    let port = SecurePort::open(ServeParts {
        options: &start.options,
        metrics: &metrics,
        health: &health,
        clock,
        configz: configz(&start.options, &start.setup),
        log,
        stop: ports,
    })
    .await?;
    // Nothing is held yet, so nothing has to be finished.
    let preparing = Box::pin(Prepared::with(&deps, env));
    let Some(prepared) = stop.run_until_cancelled(preparing).await else {
        return Ok(Ending::Stopped);
    };
    let mut prepared = prepared?;
    let opening = Box::pin(open_ports(port, &prepared.clouds));
    let Some(served) = stop.run_until_cancelled(opening).await else {
        prepared.close().await;
        return Ok(Ending::Stopped);
    };
    let served = served?;
    set_started(&health, true);
    let replica = Identity::of_this_process();
    let reloadable = std::mem::take(&mut prepared.reloadable);
    let leader = prepared.leader(&replica);
    let ending = tokio::select! {
        biased;
        ending = Box::pin(elect_and_lead(leader, reports, stop)) => ending,
        never = Box::pin(prepared.builder.keep_current(reloadable, &start)) => match never {},
    };
    drop(close_ports);
    // A port that does not close in time closes with the process.
    futures::join!(prepared.close(), join_all(served));
    ending
}

/// Says in `/readyz` whether the API server has answered and all clouds are built.
fn set_started(health: &Health, started: bool) {
    health.register("startup", Scope::Readiness, move || {
        if started {
            Ok(())
        } else {
            Err("waiting for the API server and the clouds".to_owned())
        }
    });
}

/// Opens the secure port for all callers, and the webhook port, if they are asked for.
async fn open_ports(
    port: SecurePort<'_>,
    clouds: &[Arc<Cloud>],
) -> Result<Vec<JoinHandle<()>>, RunError> {
    let webhooks = clouds.iter().flat_map(|cloud| webhooks_of(cloud));
    let webhooks = serve_webhooks(&port.parts, webhooks.collect()).await?;
    let endpoints = port.admit_callers().await?;
    Ok([endpoints, webhooks].into_iter().flatten().collect())
}
