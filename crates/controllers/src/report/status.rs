//! What the controllers have created in the clouds, and what waits for them, without a cloud call.

use cloudkeel_api::{HealthState, HealthSummary};
use serde::Serialize;

/// Load balancers, routes and Nodes. Of many, those that are not as they should be come first and the rest is
/// counted, so that an answer stays small in any cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResources {
    /// The balancers.
    pub balancers: Vec<BalancerReport>,
    /// So many more balancers.
    pub more_balancers: usize,
    /// Services of type LoadBalancer whose class no cloud here serves, as `namespace/name`.
    pub unserved_services: Vec<String>,
    /// So many more such Services.
    pub more_unserved_services: usize,
    /// The Nodes that wait to be initialized.
    pub waiting_nodes: Vec<WaitingNode>,
    /// So many more such Nodes.
    pub more_waiting_nodes: usize,
    /// The routes.
    pub routes: Vec<RouteReport>,
    /// So many more routes.
    pub more_routes: usize,
}

impl ManagedResources {
    /// So many balancers are reported.
    pub const MOST_BALANCERS: usize = 200;
    /// So many Services that are not served here are reported.
    pub const MOST_UNSERVED_SERVICES: usize = 200;
    /// So many Nodes that wait are reported.
    pub const MOST_WAITING_NODES: usize = 200;
    /// So many routes are reported for each cloud.
    pub const MOST_ROUTES: usize = 500;

    /// Adds those of another controller.
    pub fn extend(&mut self, other: Self) {
        self.balancers.extend(other.balancers);
        self.more_balancers += other.more_balancers;
        self.unserved_services.extend(other.unserved_services);
        self.more_unserved_services += other.more_unserved_services;
        self.waiting_nodes.extend(other.waiting_nodes);
        self.more_waiting_nodes += other.more_waiting_nodes;
        self.routes.extend(other.routes);
        self.more_routes += other.more_routes;
    }
}

/// A Node that waits to be initialized.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingNode {
    /// The Node.
    pub node: String,
    /// What it waits for.
    pub waits_for: String,
    /// For so many seconds.
    pub seconds: u64,
}

/// The state of a balancer. Those that need attention come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BalancerState {
    /// The last reconciliation failed, and is tried again.
    Failing,
    /// The cloud has not finished yet.
    Waiting,
    /// The Service is paused: it stays as it is.
    Paused,
    /// It is being reconciled.
    Working,
    /// It is as the Service asks for.
    Settled,
}

/// A balancer, or a Service that cannot get one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerReport {
    /// `namespace/name` of its Service.
    pub service: String,
    /// The clouds in which there may be something of it.
    pub clouds: Vec<String>,
    /// Its state.
    pub state: BalancerState,
    /// What it waits for, or what went wrong last.
    pub waits_for: Option<String>,
    /// Its targets.
    pub targets: Vec<TargetReport>,
    /// So many more targets.
    pub more_targets: usize,
    /// What the cloud said of the health of its targets, if it says anything.
    pub health: Option<HealthReport>,
}

/// The health of a balancer's targets when it was last observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthReport {
    /// How many targets pass their health checks.
    #[serde(flatten)]
    pub summary: HealthSummary,
    /// How many seconds ago that was.
    pub seconds_ago: u64,
}

impl BalancerReport {
    /// So many targets are reported.
    pub const MOST_TARGETS: usize = 20;
}

/// What a Node is to a balancer. Those that get no traffic come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TargetUse {
    /// Its Node has no provider ID yet, so the cloud cannot find its instance.
    NoProviderId,
    /// Its Node has no address yet by which it could be reached.
    NoAddress,
    /// Its instance is shut down.
    ShutDown,
    /// Its Node is not Ready. Whether it still gets traffic is up to the cloud's health check.
    NotReady,
    /// It finishes its connections.
    Draining,
    /// It is being taken out.
    Leaving,
    /// It is being put in.
    Joining,
    /// It gets traffic if the cloud finds it healthy.
    Serving,
}

/// A target of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetReport {
    /// The Node.
    pub node: String,
    /// What it is to the balancer.
    #[serde(rename = "use")]
    pub role: TargetUse,
    /// What the cloud said of its health, if it says anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthState>,
}

/// What a route is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RouteUse {
    /// It should be there and is not.
    Missing {
        /// Why.
        why: String,
    },
    /// It is a blackhole, or leads to no known Node, and is deleted once that is confirmed.
    Suspect,
    /// It leads a Pod CIDR to its Node.
    Serving,
    /// It is not ours to change.
    Foreign,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteReport {
    /// The cloud.
    pub cloud: String,
    /// The network.
    pub destination: String,
    /// Where it leads.
    pub to: String,
    /// What it is.
    #[serde(rename = "use")]
    pub role: RouteUse,
}
