//! Metrics of load balancers.

use std::time::Duration;

use cloudkeel_controllers::service::ServiceObserver;

use super::catalogue::{Catalogue, Counter, Gauge, Histogram, Labelled};
use super::{Metrics, buckets};

/// Load balancers, by cloud.
#[derive(Debug, Clone)]
pub struct BalancerMetrics {
    published: Labelled<Histogram, 1>,
    drifted: Labelled<Counter, 1>,
    left_over: Labelled<Gauge, 1>,
}

impl BalancerMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const CLOUD: [&str; 1] = ["cloud"];
        Self {
            published: catalogue.histograms(
                "cloudkeel_load_balancer_publish_seconds",
                CLOUD,
                buckets::NODE_SYNC,
                "Seconds from first observing a Service until its address was published.",
            ),
            drifted: catalogue.counters(
                "cloudkeel_load_balancer_drift_total",
                CLOUD,
                "Load balancers that had drifted from their desired state.",
            ),
            left_over: catalogue.gauges(
                "cloudkeel_load_balancer_left_over",
                CLOUD,
                "Load balancers with this cluster's owner labels whose Service no longer exists.",
            ),
        }
    }
}

impl ServiceObserver for Metrics {
    fn hosts_updated(&self, took: Duration, failed: bool) {
        self.services.load_balancer_syncs.inc();
        if failed {
            self.services.node_sync_errors.inc();
        }
        self.services.host_update.observe(took.as_secs_f64());
    }

    fn nodes_followed(&self, took: Duration) {
        self.services.node_sync.observe(took.as_secs_f64());
    }

    fn published(&self, cloud: &str, took: Duration) {
        let published = self.balancers.published.with([cloud]);
        published.observe(took.as_secs_f64());
    }

    fn drifted(&self, cloud: &str) {
        self.balancers.drifted.with([cloud]).inc();
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "no cloud has so many balancers that a float could not count them"
    )]
    fn left_over(&self, cloud: &str, balancers: usize) {
        self.balancers.left_over.with([cloud]).set(balancers as f64);
    }
}
