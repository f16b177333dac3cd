//! Labels on Nodes, as a provider's controller may write them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, NodeLabels, check_label};
use cloudkeel_controllers::runtime::{NodeWriter, WriteError};

use super::nodes::CloudNodes;

const OPERATION: &str = "label node";

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
        let refused = |kind, why: String| CloudError::new(OPERATION, kind, why);
        let Some(seen) = self.nodes.own(node) else {
            let why = format!("{} is gone, or no Node of this cloud", node.name);
            return Err(refused(ErrorKind::NotFound, why));
        };
        let mut changes = labels.clone();
        changes.retain(|key, value| seen.facts.labels.get(key) != value.as_ref());
        let invalid = take_invalid(&mut changes);
        if !changes.is_empty() {
            self.write(node, &changes).await?;
        }
        match invalid {
            None => Ok(()),
            Some(why) => Err(refused(ErrorKind::Invalid, format!("{}: {why}", node.name))),
        }
    }
}

impl CloudLabels {
    async fn write(
        &self,
        node: &NodeFacts,
        changes: &BTreeMap<String, Option<String>>,
    ) -> Result<(), CloudError> {
        let written = self.writer.write_labels(node, changes).await;
        written.map_err(|error| {
            let kind = match &error {
                WriteError::Gone => ErrorKind::NotFound,
                WriteError::Conflict => ErrorKind::Conflict,
                WriteError::Api(kube::Error::Api(status)) if status.code == 403 => {
                    ErrorKind::Denied
                }
                WriteError::Api(_) => ErrorKind::Unavailable,
            };
            CloudError::new(OPERATION, kind, node.name.clone()).with_source(error)
        })
    }
}

/// Takes out labels that the API server would refuse together with all others, and says which and why.
fn take_invalid(changes: &mut BTreeMap<String, Option<String>>) -> Option<String> {
    let mut invalid = Vec::new();
    changes.retain(|key, value| {
        let checked = check_label(key, value.as_deref().unwrap_or_default());
        if let Err(problem) = checked {
            let value = value.as_deref().unwrap_or_default();
            invalid.push(format!("{key}={value:?}: {problem}"));
        }
        checked.is_ok()
    });
    (!invalid.is_empty()).then(|| invalid.join("; "))
}
