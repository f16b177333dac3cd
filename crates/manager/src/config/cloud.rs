//! One cloud of the configuration.

use std::collections::BTreeSet;

use cloudkeel_api::{ConfigSource, LabelSelector, TargetBy};
use cloudkeel_controllers::clouds::NodeMatcher;
use serde::Serialize;

/// A cloud: which provider, which Nodes and Services are its own, and its settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudEntry {
    /// Its name: the value of the `cloudkeel.dev/cloud` label, and the metric label.
    pub name: String,
    /// The provider.
    pub provider: String,
    /// Its Nodes.
    pub nodes: NodeScope,
    /// Its Services.
    pub load_balancers: BalancerScope,
    /// Its settings. Not printed: a file of a Go CCM may have secrets in the clear.
    #[serde(skip)]
    pub config: ConfigSource,
}

/// Which Nodes belong to a cloud, besides those whose provider ID says so.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeScope {
    /// A label selector for Nodes without an ID.
    pub selector: Option<LabelSelector>,
    /// How a Node without an ID is matched, in this order; empty means as the provider does.
    #[serde(rename = "match")]
    pub matchers: Vec<NodeMatcher>,
}

/// Which Services belong to a cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerScope {
    /// Services without a class are its own.
    pub default: bool,
    /// Services of these classes are its own.
    #[serde(rename = "class")]
    pub classes: BTreeSet<String>,
    /// What its balancers send traffic to.
    pub targets: TargetScope,
}

/// What balancers of a cloud send traffic to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetScope {
    /// Nodes of these clouds; empty means its own.
    pub clouds: Vec<String>,
    /// How they are reached.
    pub by: TargetBy,
}
