//! Metrics of the controllers.

use super::buckets;
use super::catalogue::{Catalogue, Counter, Gauge, Histogram, Labelled};

/// The name under which controllers report to `running_managed_controllers`.
const MANAGER: &str = "cloud-controller-manager";

/// The node controller.
#[derive(Debug, Clone)]
pub struct NodeMetrics {
    /// From a Node's creation until its taint was removed.
    pub taint_removal_delay: Histogram,
    /// From a node's creation until its first sync was done.
    pub initial_sync_delay: Histogram,
}

impl NodeMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            taint_removal_delay: catalogue.histogram(
                "node_controller_cloud_provider_taint_removal_delay_seconds",
                buckets::NODE_DELAY,
                "Seconds from a node's creation until its cloud taint was removed.",
            ),
            initial_sync_delay: catalogue.histogram(
                "node_controller_initial_node_sync_delay_seconds",
                buckets::NODE_DELAY,
                "Seconds from a node's creation until its first sync was finished.",
            ),
        }
    }
}

/// The lifecycle controller.
#[derive(Debug, Clone)]
pub struct LifecycleMetrics {
    /// One check of a Node that is not ready. Upstream checks all of them in one pass.
    pub monitor_pass: Histogram,
    /// Requests to the cloud, by operation and result.
    pub cloud_calls: Labelled<Counter, 2>,
}

impl LifecycleMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            monitor_pass: catalogue.histogram(
                "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds",
                buckets::MONITOR_PASS,
                "Seconds that a check of a Node took, requests to the cloud included.",
            ),
            cloud_calls: catalogue.counters(
                "cloud_node_lifecycle_controller_cloud_provider_calls_total",
                ["operation", "result"],
                "Requests to the cloud about instances, by operation and result.",
            ),
        }
    }
}

/// The service controller.
#[derive(Debug, Clone)]
pub struct ServiceMetrics {
    /// Load balancer updates after Node changes.
    pub load_balancer_syncs: Counter,
    /// Those that failed.
    pub node_sync_errors: Counter,
    /// One pass over all services after a change of nodes.
    pub node_sync: Histogram,
    /// One load balancer's hosts.
    pub host_update: Histogram,
}

impl ServiceMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            load_balancer_syncs: catalogue.counter(
                "service_controller_loadbalancer_sync_total",
                "Load balancer updates after Node changes.",
            ),
            node_sync_errors: catalogue.counter(
                "service_controller_nodesync_error_total",
                "Failed load balancer updates after Node changes.",
            ),
            node_sync: catalogue.histogram(
                "service_controller_nodesync_latency_seconds",
                buckets::NODE_SYNC,
                "Seconds until all load balancers were updated after a Node change.",
            ),
            host_update: catalogue.histogram(
                "service_controller_update_loadbalancer_host_latency_seconds",
                buckets::NODE_SYNC,
                "Seconds that the update of one load balancer's hosts took.",
            ),
        }
    }
}

/// The route controller.
#[derive(Debug, Clone)]
pub struct RouteMetrics {
    /// Passes, by outcome (`changed`, `noop`, `error`) and trigger (`periodic`, `node_change`).
    pub syncs: Labelled<Counter, 2>,
}

impl RouteMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            syncs: catalogue.counters(
                "route_controller_route_sync_total",
                ["outcome", "trigger"],
                "Route reconciliations, by outcome and trigger.",
            ),
        }
    }
}

/// Which controllers run here.
#[derive(Debug, Clone)]
pub struct RunningControllers {
    running: Labelled<Gauge, 2>,
}

impl RunningControllers {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            running: catalogue.gauges(
                "running_managed_controllers",
                ["name", "manager"],
                "1 while a controller runs, 0 after it has stopped.",
            ),
        }
    }

    /// A controller runs, or has stopped. Upstream reports the short names: `cloud-node`,
    /// `cloud-node-lifecycle`, `service`, `route`.
    pub fn set(&self, name: &str, running: bool) {
        self.running
            .with([name, MANAGER])
            .set(if running { 1.0 } else { 0.0 });
    }
}
