//! The data of the page: plain rows with texts that are shown as they are.

use serde::{Deserialize, Serialize};

use crate::{Summary, Windows};

/// The severity of a state. The page shows it as a colour and a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Healthy.
    Good,
    /// In progress, or unimportant.
    #[default]
    Neutral,
    /// Needs attention.
    Warning,
    /// Broken.
    Bad,
}

impl Level {
    /// The worst is 0.
    pub(crate) const fn rank(self) -> usize {
        match self {
            Self::Bad => 0,
            Self::Warning => 1,
            Self::Neutral => 2,
            Self::Good => 3,
        }
    }
}

/// The state at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageData {
    /// The title of the page.
    pub title: String,
    /// When, in RFC 3339.
    pub time: String,
    /// The version of the program.
    pub version: String,
    /// The leader.
    pub leader: Leader,
    /// The problems, in one line, and their reasons.
    pub summary: Summary,
    /// A sentence above everything else, if there is something that every reader must see.
    pub notice: Option<String>,
    /// The replicas.
    pub managers: Vec<ManagerRow>,
    /// How much of the lists is shown.
    pub windows: Windows,
    /// The Nodes.
    pub nodes: Vec<NodeRow>,
    /// The load balancers.
    pub balancers: Vec<BalancerRow>,
    /// The routes.
    pub routes: Vec<RouteRow>,
    /// How many routes are not shown.
    pub more_routes: u64,
    /// The controllers.
    pub controllers: Vec<ControllerRow>,
    /// The clouds.
    pub clouds: Vec<CloudRow>,
    /// The latest events, newest first.
    pub events: Vec<EventRow>,
    /// The steps of a scenario, if one is shown.
    pub steps: Vec<Step>,
    /// Buttons that concern no row.
    pub actions: Vec<Action>,
}

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Leader {
    /// The identity in the lease; `None` if no leader is known.
    pub holder: Option<String>,
    /// Whether the rows are the leader's, so that they show the cluster.
    pub is_shown: bool,
    /// Why the lease could not be read or acquired.
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
    /// Its severity.
    pub level: Level,
    /// Where its own page is, if that is known.
    pub link: Option<String>,
    /// Its buttons.
    pub actions: Vec<Action>,
}

/// A Node and its instance.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRow {
    /// The Node's name.
    pub name: String,
    /// `Ready`, `NotReady`, `no Node yet`, …
    pub state: String,
    /// Its severity.
    pub level: Level,
    /// Its cloud.
    pub cloud: String,
    /// The ID of its instance.
    pub machine: String,
    /// `running`, `shut down`, `gone`, `unknown`, …
    pub machine_state: String,
    /// Type and location, such as `m1 · zone-a`.
    pub kind: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its taints.
    pub taints: Vec<String>,
    /// What it waits for, in a sentence.
    pub note: Option<String>,
    /// When it was created, in RFC 3339.
    pub created: Option<String>,
    /// Its buttons.
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
    /// Its severity.
    pub level: Level,
    /// Its cloud.
    pub cloud: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its ports, such as `TCP 80 → 30080`.
    pub listeners: Vec<String>,
    /// Its targets.
    pub targets: Vec<TargetRow>,
    /// How many targets are not shown.
    pub more_targets: u64,
    /// The health of its targets, if the cloud reports it, such as `2 of 3 targets healthy`.
    pub health: Option<String>,
    /// The traffic, if it is counted.
    pub traffic: Option<String>,
    /// What is wrong or waited for.
    pub note: Option<String>,
}

/// A target of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetRow {
    /// The Node.
    pub node: String,
    /// Its listener, if the cloud reports targets per listener, such as `TCP 80`.
    pub listener: Option<String>,
    /// `healthy`, `unhealthy`, `serving`, `draining`, …
    pub state: String,
    /// Its severity.
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
    /// Its target.
    pub to: String,
    /// Its cloud.
    pub cloud: String,
    /// `ours`, `not ours`, `leads nowhere`, `missing: …`.
    pub state: String,
    /// Its severity.
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
    /// Its severity.
    pub level: Level,
    /// Keys that are waiting.
    pub waiting: u64,
    /// Keys that are being processed.
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
    /// Its severity.
    pub level: Level,
    /// The number of instances in the last list.
    pub machines: Option<u64>,
    /// When they were listed, in RFC 3339.
    pub seen: Option<String>,
    /// The remaining request budget.
    pub budget: Option<Budget>,
    /// Requests so far: all, and those that changed something.
    pub calls: Option<(u64, u64)>,
    /// What is wrong, and what to do about it.
    pub note: Option<String>,
    /// Its buttons.
    pub actions: Vec<Action>,
}

/// The remaining request budget of a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Requests left.
    pub left: u64,
    /// Requests per window.
    pub of: u64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventRow {
    /// Its unique ID.
    pub id: String,
    /// When, in RFC 3339.
    pub time: String,
    /// Its severity.
    pub level: Level,
    /// Its reason.
    pub reason: String,
    /// `Node/web-1`
    pub object: String,
    /// Its message.
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
    /// Its state.
    pub state: StepState,
    /// What was observed.
    pub note: Option<String>,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Not started.
    #[default]
    Waiting,
    /// Running.
    Running,
    /// Successful.
    Passed,
    /// Failed.
    Failed,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Action {
    /// Its action, such as `power-off`.
    pub id: String,
    /// The object, such as an instance's name; empty if there is none.
    pub on: String,
    /// Its label.
    pub label: String,
    /// Whether it destroys something.
    pub destructive: bool,
}

impl Action {
    /// A button without an object.
    pub fn new(id: &str, label: &str) -> Self {
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            ..Self::default()
        }
    }

    /// For this object.
    #[must_use]
    pub fn on(mut self, what: &str) -> Self {
        what.clone_into(&mut self.on);
        self
    }

    /// Marks it as destructive.
    #[must_use]
    pub const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }
}
