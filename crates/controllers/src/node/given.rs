//! Nodes with an ID of another scheme, such as `k3s://`, that a label or a selector gives to a cloud: they get the labels of
//! their machines that they lack, and nothing else. Another manager initializes and deletes them.

use std::sync::Arc;

use cloudkeel_api::{NodeFacts, Priority, Shared};
use tracing::{debug, warn};

use super::NodeController;
use super::labels::{self, LabelChanges};
use super::plan::NodeChanges;
use crate::clouds::{Cloud, Snapshot, given_to};
use crate::log_messages::NODE_UPDATE_FAILED;
use crate::runtime::{ErrorText, Verdict, WriteError};
use crate::view::NodeView;

impl NodeController {
    /// Whether a label or a selector gives a Node with a foreign ID to this cloud.
    pub(super) fn is_given_to(&self, cloud: &Cloud, node: &NodeView) -> bool {
        let given = given_to(&node.facts, &self.parts.clouds);
        given.is_some_and(|given| std::ptr::eq(Arc::as_ptr(given), cloud))
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

    /// Writes the labels that such a Node lacks. Those that it has stay, whatever their values.
    pub(super) async fn label_given(&self, node: &NodeView) -> Verdict {
        let missing = self.missing_labels(node).await.unwrap_or_default();
        if missing.is_empty() {
            return Verdict::Done;
        }
        let changes = NodeChanges {
            labels: missing,
            ..NodeChanges::default()
        };
        match self.parts.writer.write_changes(node, &changes).await {
            Ok(version) => {
                self.note_written(&node.facts.uid, &version);
                Verdict::Done
            }
            Err(WriteError::Gone) => Verdict::Done,
            Err(WriteError::Conflict) => Verdict::Failed,
            Err(WriteError::Api(err)) => {
                let err = ErrorText(&err);
                warn!(node = node.facts.name, %err, "{NODE_UPDATE_FAILED}");
                Verdict::Failed
            }
        }
    }

    async fn missing_labels(&self, node: &NodeView) -> Option<LabelChanges> {
        let cloud = given_to(&node.facts, &self.parts.clouds)?;
        let snapshot = cloud.inventory.latest()?;
        let instance = self.instance_in(cloud, &snapshot, &without_id(node))?;
        match cloud.describe(instance.clone(), Priority::Background).await {
            Ok(instance) => Some(labels::missing(&instance, &node.facts)),
            Err(err) => {
                debug!(node = node.facts.name, %err, "failed to describe instance");
                None
            }
        }
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
