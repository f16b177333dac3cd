//! Labels and annotations that a provider controller may write.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, ErrorKind, MetadataChanges, MetadataWriter, NodeFacts, ServiceRef, check_label,
    is_label_key,
};
use cloudkeel_controllers::runtime::{NodeWriter, ServiceWriter, WriteError};
use serde_json::json;

use super::nodes::CloudNodes;
use super::services::ClusterServices;

const LABEL_NODE: &str = "label node";
const ANNOTATE_NODE: &str = "annotate node";
const ANNOTATE_SERVICE: &str = "annotate service";

/// Writes to the Nodes of one cloud, and to Services.
pub(super) struct CloudWriter {
    pub(super) nodes: Arc<CloudNodes>,
    pub(super) node_writer: NodeWriter,
    pub(super) services: Arc<ClusterServices>,
    pub(super) service_writer: ServiceWriter,
}

#[async_trait]
impl MetadataWriter for CloudWriter {
    async fn label_node(
        &self,
        node: &NodeFacts,
        labels: &MetadataChanges,
    ) -> Result<(), CloudError> {
        let Some(seen) = self.nodes.writable(node) else {
            return Err(gone(LABEL_NODE, &node.name));
        };
        let mut changes = labels.clone();
        changes.retain(|key, value| seen.facts.labels.get(key) != value.as_ref());
        let invalid = take_invalid(&mut changes, |key, value| {
            check_label(key, value)
                .err()
                .map(|problem| problem.to_string())
        });
        if !changes.is_empty() {
            let written = self.node_writer.write_metadata(node, "labels", &changes);
            written
                .await
                .map_err(|error| failed(LABEL_NODE, &node.name, error))?;
        }
        refuse(LABEL_NODE, &node.name, invalid)
    }

    async fn annotate_node(
        &self,
        node: &NodeFacts,
        annotations: &MetadataChanges,
    ) -> Result<(), CloudError> {
        let Some(seen) = self.nodes.writable(node) else {
            return Err(gone(ANNOTATE_NODE, &node.name));
        };
        let mut changes = annotations.clone();
        changes.retain(|key, value| seen.facts.annotations.get(key) != value.as_ref());
        let invalid = take_invalid(&mut changes, bad_annotation);
        if !changes.is_empty() {
            let written = self
                .node_writer
                .write_metadata(node, "annotations", &changes);
            written
                .await
                .map_err(|error| failed(ANNOTATE_NODE, &node.name, error))?;
        }
        refuse(ANNOTATE_NODE, &node.name, invalid)
    }

    async fn annotate_service(
        &self,
        service: &ServiceRef,
        annotations: &MetadataChanges,
    ) -> Result<(), CloudError> {
        let name = service.to_string();
        let Some(seen) = self.services.writable(service) else {
            return Err(gone(ANNOTATE_SERVICE, &name));
        };
        let mut changes = annotations.clone();
        changes.retain(|key, value| seen.annotations.get(key) != value.as_ref());
        let invalid = take_invalid(&mut changes, bad_annotation);
        if !changes.is_empty() {
            let patch = json!({"metadata": {"uid": service.uid, "annotations": changes}});
            let written = self.service_writer.patch(service, &patch).await;
            written.map_err(|error| failed(ANNOTATE_SERVICE, &name, error))?;
        }
        refuse(ANNOTATE_SERVICE, &name, invalid)
    }
}

fn gone(operation: &'static str, name: &str) -> CloudError {
    let why = format!("{name} is gone, is paused, or is not this cloud's");
    CloudError::new(operation, ErrorKind::NotFound, why)
}

fn failed(operation: &'static str, name: &str, error: WriteError) -> CloudError {
    let kind = match &error {
        WriteError::Gone => ErrorKind::NotFound,
        WriteError::Conflict => ErrorKind::Conflict,
        WriteError::Api(kube::Error::Api(status)) if status.code == 403 => ErrorKind::Denied,
        WriteError::Api(_) => ErrorKind::Unavailable,
    };
    CloudError::new(operation, kind, name.to_owned()).with_source(error)
}

fn refuse(operation: &'static str, name: &str, invalid: Option<String>) -> Result<(), CloudError> {
    match invalid {
        None => Ok(()),
        Some(why) => Err(CloudError::invalid(operation, format!("{name}: {why}"))),
    }
}

/// Removes what the API server would reject together with everything else, and returns what and why.
fn take_invalid(
    changes: &mut MetadataChanges,
    problem: impl Fn(&str, &str) -> Option<String>,
) -> Option<String> {
    let mut invalid = Vec::new();
    changes.retain(|key, value| {
        let value = value.as_deref().unwrap_or_default();
        let problem = problem(key, value);
        if let Some(problem) = &problem {
            invalid.push(format!("{key}={value:?}: {problem}"));
        }
        problem.is_none()
    });
    (!invalid.is_empty()).then(|| invalid.join("; "))
}

fn bad_annotation(key: &str, _value: &str) -> Option<String> {
    (!is_label_key(key)).then(|| "not a key that Kubernetes allows".to_owned())
}
