//! The manager, from start to end.

use std::sync::Arc;

use cloudkeel_api::{Problems, Registry};
use cloudkeel_controllers::SelectionError;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::panic_text;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::configz::configz;
use super::elections::elect_and_lead;
use super::invocation::Start;
use super::leader::ReplicaIdentity;
use super::ports::{SecurePort, ServeParts, serve_webhooks};
use super::preflight::Environment;
use super::prepare::{self, ManagerDeps, Prepared, Writes};
use super::process::{max_shutdown_time, shutdown_timed_out, stop_on_signal};
use crate::client::{AccountError, ClientFactory, ConnectError};
use crate::health::{Health, Scope};
use crate::log_messages::{FLAG_IGNORED, STARTING};
use crate::logging::LogControl;
use crate::serving::{ServingError, webhooks_of};
use crate::volume_labels::VolumeLabels;

/// How the manager ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to stop.
    Stopped,
    /// The lease was lost: another replica may write now.
    LeaseLost(String),
}

/// Why the manager could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The API server cannot be reached with these settings.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The API server does not answer.
    #[error("the API server does not answer: {0}")]
    ApiServer(String),
    /// The settings of clouds are wrong: of which, and what.
    #[error("{}", of_clouds(.0))]
    Clouds(Vec<(String, String)>),
    /// The ports could not be opened.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// A controller has no ServiceAccount.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The settings of the election are wrong.
    #[error("leader election: {0}")]
    Election(Problems),
    /// The settings of a controller are wrong.
    #[error("{0}")]
    Controller(Problems),
    /// Unknown controllers.
    #[error("--controllers: {}", join(.0))]
    Selection(Vec<SelectionError>),
    /// Unknown webhooks.
    #[error("--webhooks: {}", join(.0))]
    Webhooks(Vec<SelectionError>),
    /// The operating system refused something.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// A bug: what panicked cannot be retried.
    #[error("a panic outside of the work queues: {0}")]
    Panicked(String),
    /// Controllers are not started without a fence that can stop their writes.
    #[error("leader election ended before it started: {0}")]
    NotElected(String),
}

fn of_clouds(errors: &[(String, String)]) -> String {
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

/// Runs until it is asked to stop, or until the lease is lost. A shutdown takes bounded time.
pub(super) async fn run(
    start: Start,
    registry: &Registry,
    environment: Environment,
    log: LogControl,
) -> Result<Ending, RunError> {
    let stop = stop_on_signal()?;
    let limit = max_shutdown_time(start.options.generic.shutdown_grace_period);
    tokio::select! {
        biased;
        ending = Box::pin(run_until(start, registry, environment, log, stop.clone())) => ending,
        () = shutdown_timed_out(&stop, limit) => Ok(Ending::Stopped),
    }
}

async fn run_until(
    start: Start,
    registry: &Registry,
    environment: Environment,
    log: LogControl,
    stop: CancellationToken,
) -> Result<Ending, RunError> {
    for note in &start.notes {
        warn!(note, "{FLAG_IGNORED}");
    }
    info!(version = prepare::VERSION, "{STARTING}");
    let Environment { env, kubeconfig } = environment;
    let kubeconfig = kubeconfig.as_deref();
    let connecting = ManagerDeps::of_process(registry, &start, kubeconfig, Writes::AsConfigured);
    let (deps, reports) = connecting.await?;
    let health = &deps.health;
    let ports = CancellationToken::new();
    let close_ports = ports.clone().drop_guard();
    set_started(health, false);
    // A manager that waits for the API server is alive, and probes have to see that.
    let port = SecurePort::open(ServeParts {
        options: &start.options,
        metrics: &deps.metrics,
        health,
        clock: Arc::clone(&deps.clock),
        configz: configz(&start.options, &start.setup),
        log,
        stop: ports,
    })
    .await?;
    // Nothing has started yet, so there is nothing to finish.
    let preparing = Box::pin(Prepared::with(&deps, env));
    let Some(prepared) = stop.run_until_cancelled(preparing).await else {
        return Ok(Ending::Stopped);
    };
    let mut prepared = prepared?;
    let opening = Box::pin(open_ports(port, &prepared.clouds, &deps.factory));
    let Some(served) = stop.run_until_cancelled(opening).await else {
        prepared.close().await;
        return Ok(Ending::Stopped);
    };
    let mut served: FuturesUnordered<_> = served?.into_iter().collect();
    set_started(health, true);
    check_clouds(health, &prepared.clouds);
    let replica = ReplicaIdentity::current();
    let reloadable = std::mem::take(&mut prepared.reloadable);
    let leader = prepared.leader(&replica);
    let load = || start.load(registry);
    let keep_current = prepared
        .builder
        .keep_current(reloadable, &start.options, &load);
    let work = Box::pin(elect_and_lead(leader, reports, stop.clone()));
    let ending = tokio::select! {
        biased;
        ending = while_ports_are_open(work, &mut served, &stop) => ending,
        never = Box::pin(keep_current) => match never {},
    };
    drop(close_ports);
    // A port that does not close in time is closed with the process.
    futures::join!(prepared.close(), served.count());
    ending
}

/// Runs until the work ends. A port that closes before has panicked: without it, probes and webhooks are not answered,
/// and no client can ask what is wrong. So the work ends in order, and the next process opens it again.
async fn while_ports_are_open(
    work: impl Future<Output = Result<Ending, RunError>> + Unpin,
    ports: &mut FuturesUnordered<JoinHandle<()>>,
    stop: &CancellationToken,
) -> Result<Ending, RunError> {
    let mut work = work;
    let closed = tokio::select! {
        biased;
        ending = &mut work => return ending,
        Some(closed) = ports.next() => closed,
    };
    stop.cancel();
    // The lease is released.
    work.await?;
    let why = match closed.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => panic_text(panic.as_ref()).to_owned(),
        Ok(()) | Err(Err(_)) => "a port was closed".to_owned(),
    };
    Err(RunError::Panicked(why))
}

/// Reports in `/readyz` whether the API server has answered and all clouds are built.
fn set_started(health: &Health, started: bool) {
    health.register("startup", Scope::Readiness, move || {
        if started {
            Ok(())
        } else {
            Err("waiting for the API server and the clouds".to_owned())
        }
    });
}

/// Reports in `/readyz` if not one cloud is available: a rollout with a credential that no cloud accepts must not go on.
/// While any works, this replica is ready, and `/readyz?verbose` names those that do not.
fn check_clouds(health: &Health, clouds: &[Arc<Cloud>]) {
    health.status_report().serve(clouds);
    let clouds = clouds.to_vec();
    health.register("clouds", Scope::Readiness, move || {
        let is_unavailable = |cloud: &Arc<Cloud>| cloud.availability.unavailable().is_some();
        if !clouds.is_empty() && clouds.iter().all(is_unavailable) {
            return Err("no cloud is available".to_owned());
        }
        Ok(())
    });
}

/// Opens the secure port for all clients, and the webhook port if there is one.
async fn open_ports(
    port: SecurePort<'_>,
    clouds: &[Arc<Cloud>],
    factory: &ClientFactory,
) -> Result<Vec<JoinHandle<()>>, RunError> {
    let webhooks = clouds.iter().flat_map(|cloud| webhooks_of(cloud));
    let webhooks = webhooks.chain([VolumeLabels::of(clouds)]);
    let client = factory.unfenced("webhook-certificate")?;
    let webhooks = serve_webhooks(&port.parts, webhooks.collect(), client).await?;
    let endpoints = port.enable_delegated_auth().await?;
    Ok([endpoints, webhooks].into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_panics_ends_the_manager_in_order() {
        let stop = CancellationToken::new();
        let released = std::cell::Cell::new(false);
        let work = async {
            stop.cancelled().await;
            tokio::task::yield_now().await;
            released.set(true);
            Ok(Ending::Stopped)
        };
        let open = tokio::spawn(std::future::pending());
        let panicking = tokio::spawn(async { panic!("planted") });
        let mut ports = FuturesUnordered::from_iter([open, panicking]);
        let ended = while_ports_are_open(Box::pin(work), &mut ports, &stop).await;
        assert!(matches!(ended, Err(RunError::Panicked(why)) if why == "planted"));
        assert!(released.get(), "the lease is released first");
    }

    #[tokio::test]
    async fn without_ports_the_manager_runs_until_its_work_ends() {
        let work = async {
            tokio::task::yield_now().await;
            Ok(Ending::Stopped)
        };
        let stop = CancellationToken::new();
        let ended = while_ports_are_open(Box::pin(work), &mut FuturesUnordered::new(), &stop).await;
        assert!(matches!(ended, Ok(Ending::Stopped)));
    }
}
