//! What the leader runs, from acquiring the lease until it stops or loses it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Clock, Secret};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{
    Cache, EventRecorder, Reports, watch_nodes, watch_services, write_events,
};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use cloudkeel_controllers::{Controller, ControllerName};
use futures::Stream;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Service;
use kube::Client;
use kube::runtime::watcher;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::controllers::{BuiltControllers, ControllerParts, ServiceScope};
use super::manager::RunError;
use crate::background::{Host, HostParts, Provided};
use crate::client::{ClientFactory, account_token, forget_finished, keep_token_fresh};
use crate::dry_run::{DryRun, Recorder};
use crate::election::{BackgroundTasks, Fence, unique_identity};
use crate::health::{Health, Scope, Watched};
use crate::log_messages::CONTROLLERS_TIMED_OUT;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::webhook_certificate::keep_certificate;

/// What the leader works with.
#[derive(Clone)]
pub(super) struct LeaderParts<'a> {
    pub(super) options: &'a Options,
    pub(super) factory: &'a ClientFactory,
    pub(super) clouds: &'a [Arc<Cloud>],
    pub(super) service_scope: &'a ServiceScope,
    pub(super) enabled: Vec<ControllerName>,
    pub(super) provided: Vec<Provided>,
    pub(super) metrics: &'a Metrics,
    pub(super) health: &'a Health,
    pub(super) events: &'a EventRecorder,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) replica: &'a ReplicaIdentity,
    /// Whether this is a dry run: then nothing is written.
    pub(super) dry_run: Option<DryRun>,
    /// The name of the readiness check of its watches. Each lease has its own: one may lag behind the other.
    pub(super) sync_check: &'static str,
}

/// The identity of this replica.
#[derive(Clone)]
pub(super) struct ReplicaIdentity {
    /// Its name in the lease.
    pub(super) name: String,
    /// The seed of its random choices.
    pub(super) seed: u64,
    /// How its elections start their tasks.
    pub(super) background: BackgroundTasks,
}

impl ReplicaIdentity {
    /// The process ID is the same in every container, so it cannot be the seed: replicas with the same seed would
    /// call the cloud and the API server in step.
    pub(super) fn current() -> Self {
        Self {
            name: unique_identity(),
            seed: fastrand::u64(..),
            background: BackgroundTasks::default(),
        }
    }
}

impl LeaderParts<'_> {
    /// The same with other controllers.
    pub(super) fn with(&self, enabled: Vec<ControllerName>) -> Self {
        Self {
            enabled,
            ..self.clone()
        }
    }

    /// The name of the account with which a controller writes. A dry run says which controller would write.
    const fn account_of(&self, controller: ControllerName) -> &'static str {
        match &self.dry_run {
            Some(_) => controller.canonical(),
            None => controller.service_account(),
        }
    }

    /// The same for the controllers of the migration lease, without provider controllers.
    pub(super) fn with_only(&self, enabled: Vec<ControllerName>) -> Self {
        Self {
            provided: Vec::new(),
            sync_check: "informer-sync-migration",
            ..self.with(enabled)
        }
    }
}

/// How long the last events may take to be written after the controllers have stopped.
pub(super) const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the controllers until `stop`, then lets them finish within the grace period. If the fence closes meanwhile,
/// the caller drops this future, and everything with it.
pub(super) async fn lead(
    parts: LeaderParts<'_>,
    reports: Option<Reports>,
    fence: Fence,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let helpers = CancellationToken::new();
    let _end_helpers = helpers.clone().drop_guard();
    let mut clients = AccountClients {
        factory: parts.factory,
        own_accounts: parts.options.generic.use_service_account_credentials
            && parts.dry_run.is_none(),
        fence: fence.clone(),
        stop: helpers.clone(),
        made: BTreeMap::new(),
        renewing: Vec::new(),
    };
    let nodes = Cache::<NodeView>::new();
    let services = Cache::<ServiceView>::new();
    let reader = parts.factory.unfenced("shared-informers")?;
    let controller_parts = ControllerParts {
        options: parts.options,
        is_dry_run: parts.dry_run.is_some(),
        clouds: parts.clouds,
        service_scope: parts.service_scope,
        metrics: parts.metrics,
        events: parts.events,
        clock: Arc::clone(&parts.clock),
        nodes: Arc::clone(&nodes),
        services: Arc::clone(&services),
        reader: reader.clone(),
        seed: parts.replica.seed,
    };
    let mut built = BuiltControllers::default();
    for name in &parts.enabled {
        let client = clients.of(parts.account_of(*name)).await?;
        let added = built.add(*name, client, &controller_parts);
        added.map_err(RunError::Controller)?;
    }
    let hosts = hosts(&parts, &nodes, &services, &mut clients).await?;
    built.listen_for(&hosts);
    let certificate = keep_webhook_certificate(&parts, fence.clone(), reports.is_some())?;
    let event_writer = parts.factory.fenced("events", fence)?;
    let events = write_or_record_events(&parts, event_writer, reports, helpers.clone());
    let watching = async {
        let config = watch_config(parts.options.api_server.read_timeout);
        let seen = watch_nodes(reader.clone(), config.clone(), parts.replica.seed);
        let nodes = nodes.follow(seen, &built.node_listeners, &helpers);
        let seen = watch_services(reader.clone(), config, parts.replica.seed);
        futures::join!(nodes, follow_services(seen, &services, &built, &helpers));
    };
    publish(&parts, &nodes, &services, &built);
    let renewing = join_all(clients.renewing);
    let work = work_until_done(&parts, &built, &hosts, &reader, stop);
    let help = async {
        let certificate = helpers.run_until_cancelled(certificate);
        futures::join!(events, watching, certificate, renewing);
    };
    tokio::pin!(work, help);
    run_with_help(work, help, &helpers).await;
    Ok(())
}

/// Writes Events to the cluster. A dry run notes what they report as wrong.
async fn write_or_record_events(
    parts: &LeaderParts<'_>,
    writer: Client,
    reports: Option<Reports>,
    stop: CancellationToken,
) {
    match (reports, &parts.dry_run) {
        (Some(reports), None) => {
            write_events(writer, reports, Arc::clone(&parts.clock), stop).await;
        }
        (Some(reports), Some(dry_run)) => {
            let note = |event: &_| dry_run.note_event(event);
            reports.pass_on(note, stop).await;
        }
        // Another lease of this process writes the events.
        (None, _) => stop.cancelled().await,
    }
}

/// Publishes the state of this leader in `/readyz` and `/status`.
fn publish(
    parts: &LeaderParts<'_>,
    nodes: &Arc<Cache<NodeView>>,
    services: &Arc<Cache<ServiceView>>,
    built: &BuiltControllers,
) {
    let services = built.services_are_watched().then_some(services);
    register_health(parts.health, parts.sync_check, nodes, services);
    let report = parts.health.status_report();
    report.serve(parts.clouds);
    report.follow_events(parts.events.recent());
    report.watch(Watched {
        nodes: Some(Arc::clone(nodes)),
        services: services.map(Arc::clone),
    });
    if let Some(dry_run) = &parts.dry_run {
        report.follow_dry_run(Arc::clone(&dry_run.recorder));
    }
}

/// Runs the controllers; in a dry run also what keeps its result current, or ends it.
async fn work_until_done(
    parts: &LeaderParts<'_>,
    built: &BuiltControllers,
    hosts: &[Host],
    reader: &Client,
    stop: CancellationToken,
) {
    let work = run_controllers(parts, &built.controllers, hosts, stop.clone());
    let Some(dry_run) = &parts.dry_run else {
        return work.await;
    };
    let ending = dry_run.end_when_idle(&built.controllers, parts.clouds, &stop);
    let keeping = keep_current(reader, &dry_run.recorder);
    run_with(work, futures::future::join(ending, keeping)).await;
}

/// How often a dry run checks whether other managers have done what it found.
const DRY_RUN_CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Forgets steps of a dry run that are done, or whose objects are gone.
async fn keep_current(client: &Client, recorder: &Recorder) {
    loop {
        tokio::time::sleep(DRY_RUN_CHECK_PERIOD).await;
        forget_finished(client, recorder).await;
    }
}

/// Runs until the work ends, and what goes on beside it for as long.
async fn run_with(work: impl Future<Output = ()>, beside: impl Future) {
    tokio::select! {
        biased;
        () = work => {}
        () = async { beside.await; std::future::pending().await } => {}
    }
}

/// Keeps the certificate of the webhook port, if it is cloudkeel's to keep: once per process, under the main lease.
fn keep_webhook_certificate<'a>(
    parts: &LeaderParts<'a>,
    fence: Fence,
    is_main_lease: bool,
) -> Result<impl Future<Output = ()> + use<'a>, RunError> {
    let service = parts.options.generic.webhook_service.as_ref();
    let service = service.filter(|_| is_main_lease && parts.dry_run.is_none());
    let client = parts.factory.fenced("webhook-certificate", fence)?;
    let clock = Arc::clone(&parts.clock);
    Ok(async move {
        match service {
            Some(service) => keep_certificate(client, service, clock).await,
            None => std::future::pending().await,
        }
    })
}

/// Runs the helpers for as long as the controllers need them, and a moment longer.
async fn run_with_help(
    mut work: impl Future<Output = ()> + Unpin,
    mut help: impl Future<Output = ()> + Unpin,
    helpers: &CancellationToken,
) {
    tokio::select! {
        biased;
        () = &mut work => {
            helpers.cancel();
            // Events that do not fit in are lost: the next leader is waiting.
            let _ = tokio::time::timeout(EVENT_FLUSH_TIMEOUT, help).await;
        }
        // No helper ends before it is cancelled.
        () = &mut help => work.await,
    }
}

async fn run_controllers(
    parts: &LeaderParts<'_>,
    controllers: &[Arc<dyn Controller>],
    hosts: &[Host],
    stop: CancellationToken,
) {
    let pause = parts.options.generic.controller_start_interval;
    let running = controllers.iter().zip(0_u32..).map(|(controller, place)| {
        let stop = stop.clone();
        async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause.saturating_mul(place)) => {}
            }
            let name = controller.name();
            info!(controller = %name, "controller started");
            parts.metrics.running.set(name.alias(), true);
            parts.health.status_report().set(controller, true);
            parts
                .health
                .register(name.canonical(), Scope::Everywhere, || Ok(()));
            controller.run(stop).await;
            parts.metrics.running.set(name.alias(), false);
            parts.health.status_report().set(controller, false);
        }
    });
    let provided = hosts.iter().map(|host| {
        let stop = stop.clone();
        async move {
            parts.metrics.running.set(host.name(), true);
            host.run(stop).await;
            parts.metrics.running.set(host.name(), false);
        }
    });
    let all = futures::future::join(join_all(running), join_all(provided));
    tokio::pin!(all);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        // A leader without controllers keeps leading.
        _ = &mut all => return stop.cancelled().await,
    }
    let grace = parts.options.generic.shutdown_grace_period;
    if tokio::time::timeout(grace, all).await.is_err() {
        info!(?grace, "{CONTROLLERS_TIMED_OUT}");
    }
}

/// The provider controllers. They write Nodes and Services with the accounts of the node and the service controller.
async fn hosts(
    parts: &LeaderParts<'_>,
    nodes: &Arc<Cache<NodeView>>,
    services: &Arc<Cache<ServiceView>>,
    clients: &mut AccountClients<'_>,
) -> Result<Vec<Host>, RunError> {
    if parts.provided.is_empty() {
        return Ok(Vec::new());
    }
    let [for_nodes, for_services] =
        [ControllerName::CloudNode, ControllerName::Service].map(ControllerName::service_account);
    let host_parts = HostParts {
        clouds: parts.clouds,
        nodes,
        services,
        node_client: clients.of(for_nodes).await?,
        service_client: clients.of(for_services).await?,
        metrics: &parts.metrics.background,
    };
    let provided = parts.provided.iter().cloned();
    Ok(provided.map(|it| Host::new(it, &host_parts)).collect())
}

/// A watch ends by itself this much earlier than its connection is given up.
const WATCH_TIMEOUT_MARGIN: Duration = Duration::from_secs(3);

/// The longest watch that the client supports.
const MAX_WATCH_SECONDS: u64 = 290;

/// Asks the API server to end every watch before its connection would be given up. A watch may be silent for hours,
/// and only its regular end shows that the connection still works.
fn watch_config(read_timeout: Option<Duration>) -> watcher::Config {
    let config = watcher::Config::default();
    let Some(read_timeout) = read_timeout else {
        return config;
    };
    let seconds = read_timeout.saturating_sub(WATCH_TIMEOUT_MARGIN).as_secs();
    let seconds = u32::try_from(seconds.clamp(1, MAX_WATCH_SECONDS));
    seconds.map_or(config.clone(), |seconds| config.timeout(seconds))
}

/// Services are watched only if a controller needs them.
async fn follow_services(
    events: impl Stream<Item = watcher::Result<watcher::Event<Service>>>,
    services: &Cache<ServiceView>,
    built: &BuiltControllers,
    stop: &CancellationToken,
) {
    if built.services_are_watched() {
        services
            .follow(events, &built.service_listeners, stop)
            .await;
    }
}

/// A leader is ready when its caches have synced. A standby is always ready.
fn register_health(
    health: &Health,
    check: &'static str,
    nodes: &Arc<Cache<NodeView>>,
    services: Option<&Arc<Cache<ServiceView>>>,
) {
    let (nodes, services) = (Arc::clone(nodes), services.cloned());
    health.register(check, Scope::Readiness, move || {
        if !nodes.has_synced() {
            return Err("the Nodes have not been listed yet".to_owned());
        }
        match &services {
            Some(services) if !services.has_synced() => {
                Err("the Services have not been listed yet".to_owned())
            }
            _ => Ok(()),
        }
    });
}

/// One client per ServiceAccount, or one for all.
struct AccountClients<'a> {
    factory: &'a ClientFactory,
    own_accounts: bool,
    fence: Fence,
    stop: CancellationToken,
    made: BTreeMap<&'static str, Client>,
    /// What keeps the tokens of own accounts fresh.
    renewing: Vec<BoxFuture<'static, ()>>,
}

impl AccountClients<'_> {
    async fn of(&mut self, account: &'static str) -> Result<Client, RunError> {
        if let Some(client) = self.made.get(account) {
            return Ok(client.clone());
        }
        let client = if self.own_accounts {
            self.with_account(account).await?
        } else {
            self.factory.fenced(account, self.fence.clone())?
        };
        self.made.insert(account, client.clone());
        Ok(client)
    }

    async fn with_account(&mut self, account: &'static str) -> Result<Client, RunError> {
        let root = self
            .factory
            .fenced("service-account-credentials", self.fence.clone())?;
        let first = account_token(&root, account).await?;
        let (sender, receiver) = watch::channel::<Secret>(first.token.clone());
        let purpose = format!("system:serviceaccount:kube-system:{account}");
        let client = self
            .factory
            .with_token(&purpose, self.fence.clone(), receiver)?;
        let renewing = keep_token_fresh(first, sender, self.stop.clone(), move || {
            let root = root.clone();
            async move { account_token(&root, account).await }
        });
        self.renewing.push(Box::pin(renewing));
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::health::Endpoint;

    #[test]
    fn the_watches_of_both_leases_have_to_be_there() {
        let health = Health::new(Timestamp::UNIX_EPOCH);
        let (main, shared) = (Cache::<NodeView>::new(), Cache::<NodeView>::new());
        register_health(&health, "informer-sync", &main, None);
        register_health(&health, "informer-sync-migration", &shared, None);
        let body = health.examine(Endpoint::Readyz, &[]).body(true);
        for expected in [
            "[-]informer-sync failed",
            "[-]informer-sync-migration failed",
        ] {
            assert!(body.contains(expected), "{body}");
        }
    }

    #[test]
    fn two_replicas_do_not_choose_alike() {
        let [one, other] = [ReplicaIdentity::current(), ReplicaIdentity::current()];
        assert_ne!(one.name, other.name);
        assert_ne!(one.seed, other.seed);
    }

    #[test]
    fn a_watch_ends_before_its_connection_is_given_up() {
        for (read_timeout, expected) in [
            (None, None),
            (Some(60), Some(57)),
            (Some(3), Some(1)),
            (Some(1), Some(1)),
            (Some(3600), Some(290)),
        ] {
            let config = watch_config(read_timeout.map(Duration::from_secs));
            assert_eq!(config.timeout, expected, "{read_timeout:?}");
        }
    }
}
