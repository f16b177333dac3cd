//! All metrics, in one registry.
//!
//! Upstream's metrics keep their names, labels and buckets; cloudkeel's own begin with `cloudkeel_`.
//! [`Metrics::docs`] describes each of them, and [`metrics_table`] prints the reference page.

mod background;
mod balancers;
mod buckets;
mod build;
mod catalogue;
mod clouds;
mod controllers;
mod dry_run;
mod election;
mod exposition;
mod ipam;
mod observers;
mod process;
mod queues;
mod reloads;
mod rest_client;
#[cfg(test)]
mod tests;
mod webhooks;

use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::registry::Registry;

pub use background::BackgroundMetrics;
pub use balancers::BalancerMetrics;
pub use build::{BuildInfo, COMMIT, KUBERNETES_VERSION};
pub(crate) use catalogue::Catalogue;
pub use catalogue::{
    Counter, Gauge, Histogram, Labelled, MetricDoc, MetricKind, Origin, Seconds, metrics_table,
};
pub use clouds::CloudsMetrics;
pub(crate) use clouds::Spent;
pub use controllers::{
    LifecycleMetrics, NodeMetrics, RouteMetrics, RunningControllers, ServiceMetrics,
};
pub use dry_run::DryRunMetrics;
pub use election::{ElectionMetrics, ElectionState};
pub use exposition::Format;
pub(crate) use exposition::expose;
pub use ipam::IpamMetrics;
pub use observers::DeletionMetrics;
pub(crate) use process::register_start_time;
pub use queues::QueuesMetrics;
pub use reloads::ReloadMetrics;
pub use rest_client::{MeasureRequests, Measured, RestClientMetrics};
pub use webhooks::WebhookMetrics;

/// All metrics of this process. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The node controller.
    pub nodes: NodeMetrics,
    /// The lifecycle controller.
    pub lifecycle: LifecycleMetrics,
    /// The service controller.
    pub services: ServiceMetrics,
    /// The route controller.
    pub routes: RouteMetrics,
    /// The node IPAM controller.
    pub ipam: IpamMetrics,
    /// Which controllers run.
    pub running: RunningControllers,
    /// Work queues.
    pub queues: QueuesMetrics,
    /// Leader election.
    pub election: ElectionMetrics,
    /// Requests to the Kubernetes API.
    pub rest_client: RestClientMetrics,
    /// Webhooks.
    pub webhooks: WebhookMetrics,
    /// Calls to clouds.
    pub clouds: CloudsMetrics,
    /// Deletions of Nodes.
    pub deletions: DeletionMetrics,
    /// Load balancers.
    pub balancers: BalancerMetrics,
    /// Settings of clouds that changed.
    pub reloads: ReloadMetrics,
    /// Controllers of providers.
    pub background: BackgroundMetrics,
    /// What a dry run has found.
    pub dry_run: DryRunMetrics,
    registry: Arc<Registry>,
    docs: Arc<[MetricDoc]>,
}

impl Metrics {
    /// The metrics of a program that started at this moment.
    pub fn new(build: &BuildInfo, started: Timestamp) -> Self {
        let mut catalogue = Catalogue::new();
        let nodes = NodeMetrics::new(&mut catalogue);
        let lifecycle = LifecycleMetrics::new(&mut catalogue);
        let services = ServiceMetrics::new(&mut catalogue);
        let routes = RouteMetrics::new(&mut catalogue);
        let ipam = IpamMetrics::new(&mut catalogue);
        let running = RunningControllers::new(&mut catalogue);
        let queues = QueuesMetrics::new(&mut catalogue);
        let election = ElectionMetrics::new(&mut catalogue);
        let rest_client = RestClientMetrics::new(&mut catalogue);
        let webhooks = WebhookMetrics::new(&mut catalogue);
        record_build(&mut catalogue, build);
        process::register(&mut catalogue, started);
        catalogue.own();
        let clouds = CloudsMetrics::new(&mut catalogue);
        let deletions = DeletionMetrics::new(&mut catalogue);
        let balancers = BalancerMetrics::new(&mut catalogue);
        let reloads = ReloadMetrics::new(&mut catalogue);
        let queues = queues.counting_panics(&mut catalogue);
        process::register_panics(&mut catalogue);
        let background = BackgroundMetrics::new(&mut catalogue);
        let dry_run = DryRunMetrics::new(&mut catalogue);
        let (registry, docs) = catalogue.finish();
        Self {
            nodes,
            lifecycle,
            services,
            routes,
            ipam,
            running,
            queues,
            election,
            rest_client,
            webhooks,
            clouds,
            deletions,
            balancers,
            reloads,
            background,
            dry_run,
            registry: Arc::new(registry),
            docs: docs.into(),
        }
    }

    /// The text that is scraped.
    pub fn expose(&self, format: Format) -> Result<String, std::fmt::Error> {
        self.queues.refresh();
        self.election.refresh();
        expose(&self.registry, format)
    }

    /// What every metric means, for the reference page.
    pub fn docs(&self) -> &[MetricDoc] {
        &self.docs
    }
}

fn record_build(catalogue: &mut Catalogue, build: &BuildInfo) {
    let info = catalogue.gauges(
        "kubernetes_build_info",
        [
            "major",
            "minor",
            "git_version",
            "git_commit",
            "git_tree_state",
            "build_date",
            "go_version",
            "compiler",
            "platform",
        ],
        "Always 1; the labels identify the build.",
    );
    let series = info.with([
        &build.major,
        &build.minor,
        &build.git_version,
        &build.git_commit,
        &build.git_tree_state,
        &build.build_date,
        &build.go_version,
        &build.compiler,
        &build.platform,
    ]);
    series.set(1.0);
}
