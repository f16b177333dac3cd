//! What the leader does, from the moment it leads until it is asked to end or loses the lease.

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
use futures::future::join_all;
use k8s_openapi::api::core::v1::Service;
use kube::Client;
use kube::runtime::watcher;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::balancing::Balancing;
use super::controllers::{Built, ControllerParts};
use super::manager::RunError;
use super::watching::watch_config;
use crate::background::{Host, HostParts, Provided};
use crate::client::{ClientFactory, account_token, keep_token_fresh};
use crate::election::{Fence, unique_identity};
use crate::health::{Health, Scope, Watched};
use crate::metrics::Metrics;
use crate::options::Options;

/// What the leader works with.
#[derive(Clone)]
pub(super) struct LeaderParts<'a> {
    pub(super) options: &'a Options,
    pub(super) factory: &'a ClientFactory,
    pub(super) clouds: &'a [Arc<Cloud>],
    pub(super) balancing: &'a Balancing,
    pub(super) wanted: Vec<ControllerName>,
    pub(super) provided: Vec<Provided>,
    pub(super) metrics: &'a Metrics,
    pub(super) health: &'a Health,
    pub(super) events: &'a EventRecorder,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) replica: &'a Identity,
    /// The name of the readiness check of its watches. Each lease has its own: one may lag behind the other.
    pub(super) sync_check: &'static str,
}

/// What tells this replica from the others.
pub(super) struct Identity {
    /// Its name in the lease.
    pub(super) name: String,
    /// What its random choices begin with.
    pub(super) seed: u64,
}

impl Identity {
    /// In containers all processes have the same number, so the number of this one tells nothing: replicas
    /// that begin alike ask the cloud and the API server in step.
    pub(super) fn of_this_process() -> Self {
        Self {
            name: unique_identity(),
            seed: fastrand::u64(..),
        }
    }
}

impl LeaderParts<'_> {
    /// The same for other controllers.
    pub(super) fn with(&self, wanted: Vec<ControllerName>) -> Self {
        Self {
            wanted,
            ..self.clone()
        }
    }

    /// The same for the controllers of the shared lease, and for none that providers bring along.
    pub(super) fn with_only(&self, wanted: Vec<ControllerName>) -> Self {
        Self {
            provided: Vec::new(),
            sync_check: "informer-sync-migration",
            ..self.with(wanted)
        }
    }
}

/// For the events that are not written yet when the controllers have ended.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs the controllers until `stop`, then lets them finish what they have begun, for a while. If the
/// fence closes meanwhile, whoever called drops this future, and everything with it.
pub(super) async fn lead(
    parts: LeaderParts<'_>,
    reports: Option<Reports>,
    fence: Fence,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let helpers = CancellationToken::new();
    let _end_helpers = helpers.clone().drop_guard();
    let mut clients = Clients {
        factory: parts.factory,
        own_accounts: parts.options.generic.use_service_account_credentials,
        fence: fence.clone(),
        stop: helpers.clone(),
        made: BTreeMap::new(),
    };
    let nodes = Cache::<NodeView>::new();
    let services = Cache::<ServiceView>::new();
    let reader = parts.factory.unfenced("shared-informers")?;
    let controller_parts = ControllerParts {
        options: parts.options,
        clouds: parts.clouds,
        balancing: parts.balancing,
        metrics: parts.metrics,
        events: parts.events,
        clock: Arc::clone(&parts.clock),
        nodes: Arc::clone(&nodes),
        services: Arc::clone(&services),
        reader: reader.clone(),
        seed: parts.replica.seed,
    };
    let mut built = Built::default();
    for name in &parts.wanted {
        let client = clients.of(name.service_account()).await?;
        let added = built.add(*name, client, &controller_parts);
        added.map_err(RunError::Controller)?;
    }
    let hosts = hosts(&parts, &nodes, &services, &mut clients).await?;
    built.listen_for(&hosts);
    let event_writer = parts.factory.fenced("events", fence)?;
    let (clock, until) = (Arc::clone(&parts.clock), helpers.clone());
    let events = async {
        match reports {
            Some(reports) => write_events(event_writer, reports, clock, until).await,
            // Another lease of this process has the writer.
            None => until.cancelled().await,
        }
    };
    let watching = async {
        let config = watch_config(parts.options.api_server.read_timeout);
        let seen = watch_nodes(reader.clone(), config.clone(), parts.replica.seed);
        let nodes = nodes.follow(seen, &built.node_listeners, &helpers);
        let seen = watch_services(reader, config, parts.replica.seed);
        futures::join!(nodes, follow_services(seen, &services, &built, &helpers));
    };
    register_health(
        parts.health,
        parts.sync_check,
        &nodes,
        built.services_are_watched().then_some(&services),
    );
    let board = parts.health.board();
    board.serve(parts.clouds);
    board.hear(parts.events.recent());
    board.watch(Watched {
        nodes: Some(Arc::clone(&nodes)),
        services: built.services_are_watched().then(|| Arc::clone(&services)),
    });
    let work = run_controllers(&parts, &built.controllers, &hosts, stop);
    let help = async {
        futures::join!(events, watching);
    };
    tokio::pin!(work, help);
    run_with_help(work, help, &helpers).await;
    Ok(())
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
            // What does not fit in is lost: the next leader is waiting.
            let _ = tokio::time::timeout(LAST_WORDS, help).await;
        }
        // None of the helpers ends by itself before it is told to.
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
            parts.health.board().set(controller, true);
            parts
                .health
                .register(name.canonical(), Scope::Everywhere, || Ok(()));
            controller.run(stop).await;
            parts.metrics.running.set(name.alias(), false);
            parts.health.board().set(controller, false);
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
        // A leader without controllers leads nevertheless.
        () = async { (&mut all).await; stop.cancelled().await; } => return,
    }
    let grace = parts.options.generic.shutdown_grace_period;
    if tokio::time::timeout(grace, all).await.is_err() {
        info!(
            ?grace,
            "some work did not finish in time and is left to the next leader"
        );
    }
}

/// The controllers of providers. They write Nodes and Services with the accounts of the node and the service
/// controller.
async fn hosts(
    parts: &LeaderParts<'_>,
    nodes: &Arc<Cache<NodeView>>,
    services: &Arc<Cache<ServiceView>>,
    clients: &mut Clients<'_>,
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

/// Services are watched only if a controller wants them.
async fn follow_services(
    events: impl Stream<Item = watcher::Result<watcher::Event<Service>>>,
    services: &Cache<ServiceView>,
    built: &Built,
    stop: &CancellationToken,
) {
    if built.services_are_watched() {
        services
            .follow(events, &built.service_listeners, stop)
            .await;
    }
}

/// Ready means: whoever leads has seen the cluster whole. A standby is ready as it is.
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
struct Clients<'a> {
    factory: &'a ClientFactory,
    own_accounts: bool,
    fence: Fence,
    stop: CancellationToken,
    made: BTreeMap<&'static str, Client>,
}

impl Clients<'_> {
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

    async fn with_account(&self, account: &'static str) -> Result<Client, RunError> {
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
        tokio::spawn(renewing);
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
        let [one, other] = [Identity::of_this_process(), Identity::of_this_process()];
        assert_ne!(one.name, other.name);
        assert_ne!(one.seed, other.seed);
    }
}
