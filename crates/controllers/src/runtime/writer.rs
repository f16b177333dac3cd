//! The only code that changes Nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudkeel_api::{NodeAddress, NodeFacts};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client, Resource as _};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::Brief;
use super::protobuf::replacement;
use super::slim::SlimClient;
use crate::node::plan::NodeChanges;
use crate::planted::Bug;
use crate::view::NodeView;

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The object changed meanwhile: read it again and plan again.
    #[error("the object has changed meanwhile")]
    Conflict,
    /// The object, with this UID, is gone.
    #[error("the object is gone")]
    Gone,
    /// Anything else.
    #[error("{}", Brief(.0))]
    Api(#[source] kube::Error),
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            kube::Error::Api(status) if status.code == 404 || is_other_uid(status) => Self::Gone,
            _ => Self::Api(error),
        }
    }
}

/// A patch that names another UID is refused as a change of an immutable field: the object it was
/// meant for is gone, and another has its name.
fn is_other_uid(status: &Status) -> bool {
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice());
    status.code == 422
        && causes
            .unwrap_or_default()
            .iter()
            .any(|c| c.field == "metadata.uid")
}

/// Refused because it is a whole Node in protobuf, and not because of what it says.
fn is_about_replacing(status: &Status) -> bool {
    matches!(status.code, 403 | 405 | 415)
}

/// Writes Nodes. Every write names the UID it is meant for, so that a Node recreated under the same
/// name never gets what was meant for its predecessor.
#[derive(Clone)]
pub struct NodeWriter {
    nodes: Api<Node>,
    slim: SlimClient,
    /// Whether the API server refused a whole Node in protobuf, as for a role that allows patches only.
    patches_only: Arc<AtomicBool>,
}

/// What a write of addresses takes for granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unless {
    /// Refused as a conflict if anything about the Node has changed since it was read. Afterwards it is
    /// known whole.
    Changed,
    /// Refused only if it is another Node by now: the kubelet writes the status all the time.
    Recreated,
}

impl NodeWriter {
    /// A writer with this client.
    pub fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            slim: SlimClient::new(client),
            patches_only: Arc::default(),
        }
    }

    /// The Node as the API server has it now.
    pub async fn read(&self, name: &str) -> Result<NodeView, WriteError> {
        let node = self.nodes.get(name).await?;
        Ok(NodeView::from(&node))
    }

    /// Replaces the addresses. Returns the version of the Node afterwards.
    pub async fn write_addresses(
        &self,
        node: &NodeView,
        addresses: &[NodeAddress],
        unless: Unless,
    ) -> Result<String, WriteError> {
        let path = format!("{}/status", path_of(node));
        let patch = addresses_patch(node, addresses, unless);
        Ok(self.slim.patch(&path, &patch).await?)
    }

    /// Writes provider ID, labels and taints in one go. Taints are a list without keys, so a change
    /// of them is refused as a conflict if the Node has changed since `node` was read, and then the whole Node
    /// can be replaced as well. Returns the version of the Node afterwards.
    pub async fn write_changes(
        &self,
        node: &NodeView,
        changes: &NodeChanges,
    ) -> Result<String, WriteError> {
        let path = path_of(node);
        let may_replace = !self.patches_only.load(Ordering::Relaxed);
        if may_replace && let Some(whole) = replacement(node, changes) {
            match self.slim.replace(&path, whole).await {
                Err(kube::Error::Api(status)) if is_about_replacing(&status) => {
                    let why = Brief(status.as_ref());
                    warn!(%why, "Nodes are patched, because they may not be replaced");
                    self.patches_only.store(true, Ordering::Relaxed);
                }
                answer => return Ok(answer?),
            }
        }
        let patch = changes_patch(node, changes);
        Ok(self.slim.patch(&path, &patch).await?)
    }

    /// Sets labels or annotations, whichever `field` of the metadata names, and removes those without a value.
    pub async fn write_metadata(
        &self,
        node: &NodeFacts,
        field: &str,
        changes: &BTreeMap<String, Option<String>>,
    ) -> Result<(), WriteError> {
        let patch = Patch::Merge(json!({"metadata": {"uid": node.uid, field: changes}}));
        let patched = self
            .nodes
            .patch(&node.name, &PatchParams::default(), &patch)
            .await;
        patched?;
        Ok(())
    }

    /// Writes the networks of its Pods, which the API server never changes once they are set. Returns
    /// the Node as it is afterwards.
    pub async fn write_pod_cidrs(
        &self,
        node: &NodeView,
        cidrs: &[IpNet],
    ) -> Result<NodeView, WriteError> {
        let patch = Patch::Merge(json!({
            "metadata": {"uid": node.facts.uid},
            "spec": {"podCIDR": cidrs.first(), "podCIDRs": cidrs},
        }));
        let written = self
            .nodes
            .patch(&node.facts.name, &PatchParams::default(), &patch)
            .await?;
        Ok(NodeView::from(&written))
    }

    /// Writes one condition and leaves the others as they are.
    pub async fn write_condition(
        &self,
        node: &NodeView,
        condition: &NodeCondition,
    ) -> Result<(), WriteError> {
        let patch = Patch::Strategic(json!({
            "metadata": {"uid": node.facts.uid},
            "status": {"conditions": [condition]},
        }));
        self.nodes
            .patch_status(&node.facts.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Deletes the Node, if it is still the very one that was read.
    pub async fn delete(&self, node: &NodeView) -> Result<(), WriteError> {
        let unchanged = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(node.facts.uid.clone()),
                resource_version: Some(node.resource_version.clone()),
            }),
            ..DeleteParams::default()
        };
        let how = if Bug::ActOnStaleCache.is_planted() {
            DeleteParams::default()
        } else {
            unchanged
        };
        self.nodes.delete(&node.facts.name, &how).await?;
        Ok(())
    }
}

fn path_of(node: &NodeView) -> String {
    format!("{}/{}", Node::url_path(&(), None), node.facts.name)
}

fn addresses_patch(node: &NodeView, addresses: &[NodeAddress], unless: Unless) -> Value {
    // Kubernetes merges addresses by their type, of which there may be several.
    let replace_all = std::iter::once(json!({"$patch": "replace"}));
    let addresses: Vec<Value> = replace_all
        .chain(
            addresses
                .iter()
                .map(|address| json!({"type": address.kind.as_str(), "address": address.address})),
        )
        .collect();
    let metadata = match unless {
        Unless::Changed => {
            json!({"uid": node.facts.uid, "resourceVersion": node.resource_version})
        }
        Unless::Recreated => json!({"uid": node.facts.uid}),
    };
    json!({"metadata": metadata, "status": {"addresses": addresses}})
}

fn changes_patch(node: &NodeView, changes: &NodeChanges) -> Value {
    let mut metadata = Map::new();
    metadata.insert("uid".to_owned(), json!(node.facts.uid));
    if !changes.labels.is_empty() {
        metadata.insert("labels".to_owned(), json!(changes.labels));
    }
    let mut spec = Map::new();
    if let Some(id) = &changes.provider_id {
        spec.insert("providerID".to_owned(), json!(id));
    }
    if let Some(taints) = &changes.taints {
        metadata.insert("resourceVersion".to_owned(), json!(node.resource_version));
        // An empty list is removed, as the API server does it itself.
        let taints = if taints.is_empty() {
            Value::Null
        } else {
            json!(taints)
        };
        spec.insert("taints".to_owned(), taints);
    }
    let mut patch = Map::new();
    patch.insert("metadata".to_owned(), Value::Object(metadata));
    if !spec.is_empty() {
        patch.insert("spec".to_owned(), Value::Object(spec));
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Taint;

    fn node() -> NodeView {
        let mut node = NodeView {
            resource_version: "7".into(),
            ..NodeView::default()
        };
        node.facts.uid = "u".into();
        node
    }

    #[test]
    fn what_the_api_server_refuses_is_understood() {
        let refusal = |json: Value| -> WriteError {
            let status: Status = serde_json::from_value(json).unwrap();
            kube::Error::Api(Box::new(status)).into()
        };
        let cause = |field: &str| {
            json!({"code": 422, "details": {"causes": [
                {"reason": "FieldValueInvalid", "message": "field is immutable", "field": field},
            ]}})
        };
        assert!(matches!(
            refusal(json!({"code": 409})),
            WriteError::Conflict
        ));
        assert!(matches!(refusal(json!({"code": 404})), WriteError::Gone));
        assert!(matches!(refusal(cause("metadata.uid")), WriteError::Gone));
        assert!(matches!(
            refusal(cause("spec.podCIDRs")),
            WriteError::Api(_)
        ));
        assert!(matches!(refusal(json!({"code": 403})), WriteError::Api(_)));
    }

    #[test]
    fn addresses_are_tied_to_the_version_only_where_that_is_asked_for() {
        let addresses = [NodeAddress::hostname("n")];
        let metadata = |unless| addresses_patch(&node(), &addresses, unless)["metadata"].clone();
        assert_eq!(metadata(Unless::Recreated), json!({"uid": "u"}));
        let tied = json!({"uid": "u", "resourceVersion": "7"});
        assert_eq!(metadata(Unless::Changed), tied);
    }

    #[test]
    fn a_patch_names_the_uid_and_only_what_changes() {
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let changes = NodeChanges {
            labels,
            ..NodeChanges::default()
        };
        let patch = changes_patch(&node(), &changes);
        assert_eq!(
            patch,
            json!({"metadata": {"uid": "u", "labels": {"a": "b"}}})
        );
    }

    #[test]
    fn a_change_of_taints_is_tied_to_the_version_that_was_read() {
        let keep = Taint {
            key: "k".into(),
            value: None,
            effect: "NoSchedule".into(),
            time_added: None,
        };
        let changes = |taints| NodeChanges {
            provider_id: Some("local://p/1".parse().unwrap()),
            taints: Some(taints),
            ..NodeChanges::default()
        };
        assert_eq!(
            changes_patch(&node(), &changes(vec![keep])),
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7"},
                "spec": {
                    "providerID": "local://p/1",
                    "taints": [{"key": "k", "effect": "NoSchedule"}],
                },
            })
        );
        assert_eq!(
            changes_patch(&node(), &changes(vec![]))["spec"]["taints"],
            Value::Null
        );
    }
}
