//! What a controller keeps in the clouds, as it knows without asking them.

use serde::Serialize;

/// Balancers and routes. Of many, those that are not as they should be come first and the rest is
/// counted, so that an answer stays small in any cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holdings {
    /// The balancers.
    pub balancers: Vec<BalancerReport>,
    /// So many balancers are not told.
    pub more_balancers: usize,
    /// The routes.
    pub routes: Vec<RouteReport>,
    /// So many routes are not told.
    pub more_routes: usize,
}

impl Holdings {
    /// So many balancers are told.
    pub const MOST_BALANCERS: usize = 200;
    /// So many routes are told for each cloud.
    pub const MOST_ROUTES: usize = 500;

    /// Adds those of another controller.
    pub fn extend(&mut self, other: Self) {
        self.balancers.extend(other.balancers);
        self.more_balancers += other.more_balancers;
        self.routes.extend(other.routes);
        self.more_routes += other.more_routes;
    }
}

/// How far a balancer is as wished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BalancerState {
    /// Something is left to do, which is tried again.
    Waiting,
    /// It is being worked on.
    Working,
    /// It was left as wished.
    Settled,
}

/// A balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerReport {
    /// `namespace/name` of its Service.
    pub service: String,
    /// The clouds in which there may be something of it.
    pub clouds: Vec<String>,
    /// How far it is.
    pub state: BalancerState,
    /// What it waits for, or what went wrong last.
    pub waits_for: Option<String>,
    /// Its targets.
    pub targets: Vec<TargetReport>,
    /// So many targets are not told.
    pub more_targets: usize,
}

impl BalancerReport {
    /// So many targets are told.
    pub const MOST_TARGETS: usize = 20;
}

/// What a Node is to a balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TargetUse {
    /// It finishes what it has.
    Draining,
    /// It is being taken out.
    Leaving,
    /// It is being put in.
    Joining,
    /// It gets traffic, as far as the cloud finds it healthy.
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
    /// It leads nowhere, or to nobody we know, and goes once that is confirmed.
    Suspect,
    /// It leads a Node's network to the Node.
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
