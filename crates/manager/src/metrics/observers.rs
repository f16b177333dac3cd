//! The observers of controllers, as metrics.

use std::time::Duration;

use cloudkeel_controllers::lifecycle::LifecycleObserver;
use cloudkeel_controllers::node::NodeObserver;
use cloudkeel_controllers::route::{Outcome, RouteObserver, Trigger};

use super::Metrics;
use super::catalogue::{Catalogue, Counter, Gauge, Labelled};

/// Deletions of Nodes.
#[derive(Debug, Clone)]
pub struct DeletionMetrics {
    deleted: Labelled<Counter, 1>,
    stopped: Labelled<Gauge, 1>,
}

impl DeletionMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const CLOUD: [&str; 1] = ["cloud"];
        Self {
            deleted: catalogue.counters(
                "cloudkeel_node_deletions_total",
                CLOUD,
                "Nodes deleted because their instances are gone.",
            ),
            stopped: catalogue.gauges(
                "cloudkeel_node_deletions_stopped",
                CLOUD,
                "1 while no Node of this cloud is deleted because its scope is in doubt, else 0.",
            ),
        }
    }
}

impl NodeObserver for Metrics {
    fn initialized(&self, since_created: Duration) {
        let seconds = since_created.as_secs_f64();
        self.nodes.taint_removal_delay.observe(seconds);
        self.nodes.initial_sync_delay.observe(seconds);
    }
}

impl LifecycleObserver for Metrics {
    fn instance_checked(&self, result: &'static str) {
        let calls = &self.lifecycle.cloud_calls;
        calls.with(["instance_exists", result]).inc();
    }

    fn node_deleted(&self, cloud: &str) {
        self.deletions.deleted.with([cloud]).inc();
    }

    fn reconciled(&self, took: Duration) {
        self.lifecycle.monitor_pass.observe(took.as_secs_f64());
    }

    fn deletions_stopped(&self, cloud: &str, stopped: bool) {
        let gauge = self.deletions.stopped.with([cloud]);
        gauge.set(if stopped { 1.0 } else { 0.0 });
    }
}

impl RouteObserver for Metrics {
    fn reconciled(&self, outcome: Outcome, trigger: Trigger) {
        let labels = [outcome.as_str(), trigger.as_str()];
        self.routes.syncs.with(labels).inc();
    }
}
