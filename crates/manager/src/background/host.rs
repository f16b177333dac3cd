//! Runs one provider controller for as long as this process leads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::BackgroundContext;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::{
    Backoff, Cache, Listener, NodeWriter, ServiceWriter, panic_text,
};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use futures::FutureExt as _;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::Provided;
use super::nodes::CloudNodes;
use super::services::ClusterServices;
use super::writer::CloudWriter;
use crate::log_messages::PROVIDER_CONTROLLER_FAILED;
use crate::metrics::BackgroundMetrics;

/// The backoff before a failed controller is started again.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(5),
};

/// A controller that ran this long had recovered: its next failure counts as the first.
const RECOVERED_AFTER: Duration = Duration::from_mins(10);

/// How long a controller may take to finish after its provider was replaced.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// What provider controllers are run with.
pub(crate) struct HostParts<'a> {
    pub(crate) clouds: &'a [Arc<Cloud>],
    pub(crate) nodes: &'a Arc<Cache<NodeView>>,
    pub(crate) services: &'a Arc<Cache<ServiceView>>,
    pub(crate) node_client: Client,
    pub(crate) service_client: Client,
    pub(crate) metrics: &'a BackgroundMetrics,
}

/// Runs one provider controller.
pub(crate) struct Host {
    provided: Provided,
    node_cache: Arc<Cache<NodeView>>,
    service_cache: Arc<Cache<ServiceView>>,
    nodes: Arc<CloudNodes>,
    services: Arc<ClusterServices>,
    writer: Arc<CloudWriter>,
    metrics: BackgroundMetrics,
}

/// Why a controller stopped.
enum Ended {
    AsAsked,
    Replaced,
    /// The provider in use has no such controller.
    Missing,
    Failed(String),
}

impl Host {
    pub(crate) fn new(provided: Provided, parts: &HostParts<'_>) -> Self {
        let nodes = Arc::new(CloudNodes::new(&provided.cloud, parts.clouds, parts.nodes));
        let services = Arc::new(ClusterServices::new(parts.services));
        let writer = CloudWriter {
            nodes: Arc::clone(&nodes),
            node_writer: NodeWriter::new(parts.node_client.clone()),
            services: Arc::clone(&services),
            service_writer: ServiceWriter::new(parts.service_client.clone()),
        };
        Self {
            provided,
            node_cache: Arc::clone(parts.nodes),
            service_cache: Arc::clone(parts.services),
            nodes,
            services,
            writer: Arc::new(writer),
            metrics: parts.metrics.clone(),
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.provided.name
    }

    /// Receives the events of the Node watch.
    pub(crate) fn node_listener(&self) -> Listener<NodeView> {
        self.nodes.listener()
    }

    /// Receives the events of the Service watch, if the controller needs them.
    pub(crate) fn service_listener(&self) -> Option<Listener<ServiceView>> {
        let watches = self.provided.watches_services;
        watches.then(|| self.services.listener())
    }

    async fn synced(&self) {
        self.node_cache.synced().await;
        if self.provided.watches_services {
            self.service_cache.synced().await;
        }
    }

    /// Runs it until `stop`. An error, an early return and a panic are contained here: they are reported, and the
    /// controller is started again with backoff.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.synced() => {}
        }
        let mut replacements = self.provided.cloud.cell.replacements();
        let mut failures = 0;
        loop {
            replacements.mark_unchanged();
            let began = Instant::now();
            let pause = match self.run_once(&mut replacements, &stop).await {
                Ended::AsAsked => return,
                Ended::Replaced => Duration::ZERO,
                Ended::Missing => Duration::MAX,
                Ended::Failed(why) => {
                    let recovered = began.elapsed() >= RECOVERED_AFTER;
                    failures = if recovered { 1 } else { failures + 1 };
                    let pause = BACKOFF.pause(failures);
                    self.report_failure(&why, pause);
                    pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                _ = replacements.changed() => failures = 0,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn run_once(
        &self,
        replacements: &mut watch::Receiver<u64>,
        stop: &CancellationToken,
    ) -> Ended {
        let Provided { cloud, name, .. } = &self.provided;
        let provided = cloud.provider().background_controllers();
        let Some(controller) = provided.iter().find(|it| it.name() == *name) else {
            info!(
                cloud = cloud.name,
                controller = name,
                "controller not started: the provider in use does not have it"
            );
            return Ended::Missing;
        };
        let own_stop = CancellationToken::new();
        // Also if this future is dropped because the lease is lost: the controller may have started tasks.
        let _stop_all = own_stop.clone().drop_guard();
        let context = self.context(own_stop.clone());
        info!(cloud = cloud.name, controller = name, "controller started");
        let running = AssertUnwindSafe(controller.run(context)).catch_unwind();
        tokio::pin!(running);
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                own_stop.cancel();
                // The caller limits how long a shutdown takes.
                let _ = running.await;
                Ended::AsAsked
            }
            _ = replacements.changed() => {
                own_stop.cancel();
                let _ = tokio::time::timeout(FINISH_TIMEOUT, running).await;
                Ended::Replaced
            }
            ended = &mut running => Ended::Failed(match ended {
                Ok(Ok(())) => "it returned before it was asked to".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => format!("it panicked: {}", panic_text(panic.as_ref())),
            }),
        }
    }

    /// What the controller is given.
    pub(super) fn context(&self, stop: CancellationToken) -> BackgroundContext {
        BackgroundContext {
            nodes: Arc::<CloudNodes>::clone(&self.nodes),
            services: Arc::<ClusterServices>::clone(&self.services),
            writer: Arc::<CloudWriter>::clone(&self.writer),
            stop,
        }
    }

    fn report_failure(&self, err: &str, pause: Duration) {
        let Provided { cloud, name, .. } = &self.provided;
        self.metrics.failed(&cloud.name, name);
        error!(cloud = cloud.name, controller = name, err, retry_after = ?pause, "{PROVIDER_CONTROLLER_FAILED}");
    }
}
