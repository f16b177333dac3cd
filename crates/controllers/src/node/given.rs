//! Nodes with an ID of another scheme, such as `k3s://`, that a label or a selector gives to a cloud: they get the labels of
//! their machines that they lack, and nothing else. Another manager initializes and deletes them.

use std::sync::Arc;

use cloudkeel_api::{NodeFacts, Shared};

use super::NodeController;
use super::labels;
use super::plan::{NodeChanges, NodePlan};
use crate::clouds::{Cloud, Snapshot, given_to};
use crate::view::NodeView;

impl NodeController {
    /// Whether a label or a selector gives a Node with a foreign ID to this cloud.
    pub(super) fn is_given_to(&self, cloud: &Cloud, node: &NodeView) -> bool {
        given_to(&node.facts, &self.parts.clouds).is_some_and(|given| given.is(cloud))
    }

    /// Whether a list shows labels that such a Node does not have, or may do so because it shows only a summary.
    pub(super) fn lacks_labels(
        &self,
        cloud: &Cloud,
        snapshot: &Arc<Snapshot>,
        node: &NodeView,
    ) -> bool {
        let found = self.instance_in(cloud, snapshot, &without_id(node));
        found.is_some_and(|it| it.is_summary || !labels::missing(it, &node.facts).is_empty())
    }

    /// The labels that such a Node lacks. Those that it has stay, whatever their values.
    pub(super) async fn plan_given(&self, node: &NodeView) -> Option<NodePlan> {
        let cloud = given_to(&node.facts, &self.parts.clouds)?;
        let instance = self.last_listed(cloud, &without_id(node)).await?;
        Some(NodePlan {
            changes: NodeChanges {
                labels: labels::missing(&instance, &node.facts),
                ..NodeChanges::default()
            },
            ..NodePlan::default()
        })
    }
}

/// As the cloud sees it, which does not know its ID.
fn without_id(node: &NodeView) -> NodeView {
    let facts = NodeFacts {
        provider_id: None,
        ..NodeFacts::clone(&node.facts)
    };
    NodeView {
        facts: Shared::from(facts),
        ..node.clone()
    }
}
