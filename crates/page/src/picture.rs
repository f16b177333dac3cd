//! What the page shows: plain rows, already in the words that people read.

use serde::{Deserialize, Serialize};

use crate::Summary;

/// How a thing is doing. The page shows it as a colour and a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Good,
    /// On its way, or of no importance.
    #[default]
    Neutral,
    /// Worth a look.
    Warning,
    /// Broken.
    Bad,
}

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Picture {
    /// What is looked at.
    pub title: String,
    /// When, in RFC 3339.
    pub time: String,
    /// The version of the program.
    pub version: String,
    /// Who leads.
    pub leader: Leader,
    /// What is wrong, in a line, and the reasons.
    pub summary: Summary,
    /// One sentence above everything, if there is something that everybody must see.
    pub notice: Option<String>,
    /// The replicas.
    pub managers: Vec<ManagerRow>,
    /// The Nodes.
    pub nodes: Vec<NodeRow>,
    /// The load balancers.
    pub balancers: Vec<BalancerRow>,
    /// The routes.
    pub routes: Vec<RouteRow>,
    /// So many routes are not shown.
    pub more_routes: u64,
    /// The controllers.
    pub controllers: Vec<ControllerRow>,
    /// The clouds.
    pub clouds: Vec<CloudRow>,
    /// The latest events, newest first.
    pub events: Vec<EventRow>,
    /// The steps of a scenario, if one is shown.
    pub steps: Vec<Step>,
    /// What people may do here that is about nothing in particular.
    pub actions: Vec<Action>,
}

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Leader {
    /// The identity in the lease; `None` if there is no leader, as far as is known.
    pub holder: Option<String>,
    /// Whether the rows are the leader's, so that they show the cluster.
    pub is_shown: bool,
    /// Why the lease could not be read or taken.
    pub error: Option<String>,
}

/// A replica.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagerRow {
    /// Its name.
    pub name: String,
    /// `leads`, `stands by`, …
    pub state: String,
    /// How it is doing.
    pub level: Level,
    /// What people may do to it.
    pub actions: Vec<Action>,
}

/// A Node and its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRow {
    /// The Node's name.
    pub name: String,
    /// `Ready`, `NotReady`, `no Node yet`, …
    pub state: String,
    /// How it is doing.
    pub level: Level,
    /// Which cloud has it.
    pub cloud: String,
    /// The machine's ID there.
    pub machine: String,
    /// `running`, `shut down`, `gone`, `unknown`, …
    pub machine_state: String,
    /// Type and place, such as `m1 · zone-a`.
    pub kind: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its taints.
    pub taints: Vec<String>,
    /// What it waits for, in a sentence.
    pub note: Option<String>,
    /// What people may do to it.
    pub actions: Vec<Action>,
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BalancerRow {
    /// `namespace/name` of its Service.
    pub service: String,
    /// `in service`, `pending`, …
    pub state: String,
    /// How it is doing.
    pub level: Level,
    /// Which cloud has it.
    pub cloud: String,
    /// Where it is reached.
    pub addresses: Vec<String>,
    /// Its ports, such as `TCP 80 → 30080`.
    pub listeners: Vec<String>,
    /// Its targets.
    pub targets: Vec<TargetRow>,
    /// So many targets are not shown.
    pub more_targets: u64,
    /// What came through, if somebody counts.
    pub traffic: Option<String>,
    /// What is wrong or waited for.
    pub note: Option<String>,
}

/// A target of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetRow {
    /// The Node.
    pub node: String,
    /// The listener that it is a target of, if the cloud says so for each, such as `TCP 80`.
    pub listener: Option<String>,
    /// `healthy`, `unhealthy`, `serving`, `draining`, …
    pub state: String,
    /// How it is doing.
    pub level: Level,
    /// Connections so far, if the cloud counts them.
    pub connections: Option<u64>,
    /// Connections now.
    pub open: Option<u64>,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteRow {
    /// The Pod network.
    pub destination: String,
    /// Where it leads.
    pub to: String,
    /// Which cloud has it.
    pub cloud: String,
    /// `ours`, `somebody else's`, `leads nowhere`, `missing: …`.
    pub state: String,
    /// How it is doing.
    pub level: Level,
}

/// A controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerRow {
    /// Its name.
    pub name: String,
    /// `runs`, `off`, `stands by`.
    pub state: String,
    /// How it is doing.
    pub level: Level,
    /// Keys that wait to be worked on.
    pub waiting: u64,
    /// Keys that are being worked on.
    pub working: u64,
    /// What it does or waits for.
    pub note: Option<String>,
}

/// A cloud.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloudRow {
    /// Its name in the configuration.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// `answers`, `does not answer`, `deletions are stopped`.
    pub state: String,
    /// How it is doing.
    pub level: Level,
    /// Machines that were seen last.
    pub machines: Option<u64>,
    /// When they were seen, in RFC 3339.
    pub seen: Option<String>,
    /// What may still be asked of it.
    pub budget: Option<Budget>,
    /// Requests so far: all, and those that changed something.
    pub calls: Option<(u64, u64)>,
    /// What is wrong, and what to do about it.
    pub note: Option<String>,
    /// What people may do to it.
    pub actions: Vec<Action>,
}

/// What may still be asked of a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Requests that are left.
    pub left: u64,
    /// Of so many.
    pub of: u64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventRow {
    /// What tells it from the others.
    pub id: String,
    /// When, in RFC 3339.
    pub time: String,
    /// How much it matters.
    pub level: Level,
    /// Its reason.
    pub reason: String,
    /// `Node/web-1`
    pub object: String,
    /// Its sentence.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// A step of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Step {
    /// What happens in it.
    pub title: String,
    /// How it went.
    pub state: StepState,
    /// What was seen.
    pub note: Option<String>,
}

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Not begun.
    #[default]
    Waiting,
    /// Now.
    Running,
    /// As it should.
    Passed,
    /// Not as it should.
    Failed,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Action {
    /// What is done, for the one who does it, such as `power-off`.
    pub id: String,
    /// To what, such as a machine's name; empty if it is about nothing in particular.
    pub on: String,
    /// What the button says.
    pub label: String,
    /// Something is lost by it.
    pub destructive: bool,
}

impl Action {
    /// A button about nothing in particular.
    pub fn new(id: &str, label: &str) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            ..Self::default()
        }
    }

    /// About this.
    #[must_use]
    pub fn on(mut self, what: &str) -> Self {
        what.clone_into(&mut self.on);
        self
    }

    /// Something is lost by it.
    #[must_use]
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }
}
