//! Labels on Nodes, as a provider's controller may write them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, NodeLabels};
use cloudkeel_controllers::runtime::{NodeWriter, WriteError};

use super::nodes::CloudNodes;

/// Writes labels on the Nodes of one cloud, and on no others.
pub(super) struct CloudLabels {
    pub(super) nodes: Arc<CloudNodes>,
    pub(super) writer: NodeWriter,
}

#[async_trait]
impl NodeLabels for CloudLabels {
    async fn set(
        &self,
        node: &NodeFacts,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<(), CloudError> {
        let refused = |kind, why: String| CloudError::new("label node", kind, why);
        let Some(seen) = self.nodes.own(node) else {
            let why = format!("{} is gone, or no Node of this cloud", node.name);
            return Err(refused(ErrorKind::NotFound, why));
        };
        let mut changes = labels.clone();
        changes.retain(|key, value| seen.facts.labels.get(key) != value.as_ref());
        if changes.is_empty() {
            return Ok(());
        }
        let written = self.writer.write_labels(node, &changes).await;
        written.map_err(|error| {
            let kind = match &error {
                WriteError::Gone => ErrorKind::NotFound,
                WriteError::Conflict => ErrorKind::Conflict,
                WriteError::Api(kube::Error::Api(status)) if status.code == 403 => {
                    ErrorKind::Denied
                }
                WriteError::Api(_) => ErrorKind::Unavailable,
            };
            refused(kind, node.name.clone()).with_source(error)
        })
    }
}
