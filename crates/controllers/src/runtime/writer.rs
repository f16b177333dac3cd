//! The only code that writes Nodes and Services.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloudkeel_api::{NodeAddress, NodeFacts, ServiceRef};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client, Resource as _};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::ErrorText;
use super::metadata_client::MetadataClient;
use super::protobuf::replacement;
use crate::log_messages::NODE_UPDATE_FORBIDDEN;
use crate::node::plan::NodeChanges;
use crate::planted::Bug;
use crate::view::{NodeView, ServiceView, SlimNode, View as _};

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
    #[error("{}", ErrorText(.0))]
    Api(#[source] kube::Error),
}

impl WriteError {
    /// Whether our role does not allow it.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 403)
    }
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
    let details = status.details.iter();
    let mut causes = details.flat_map(|details| &details.causes);
    status.code == 422 && causes.any(|cause| cause.field == "metadata.uid")
}

/// Refused because it is a PUT in protobuf, and not because of what it says.
fn is_put_refused(status: &Status) -> bool {
    matches!(status.code, 403 | 405 | 415)
}

/// Writes Nodes. Every write names the UID it is meant for, so that a Node recreated under the same
/// name never gets what was meant for its predecessor.
#[derive(Clone)]
pub struct NodeWriter {
    nodes: Api<SlimNode>,
    client: MetadataClient,
    /// Whether the API server refused a PUT, as for a role that allows patches only.
    patches_only: Arc<AtomicBool>,
}

/// What a write of addresses is tied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Refused as a conflict if anything about the Node has changed since it was read.
    ResourceVersion,
    /// Refused only if it is another Node by now: the kubelet writes the status all the time.
    Uid,
}

impl NodeWriter {
    /// A writer with this client.
    pub fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            client: MetadataClient::new(client),
            patches_only: Arc::default(),
        }
    }

    /// The same, but it sends patches only: what a patch changes can be read without the types of the other writes.
    #[must_use]
    pub fn with_patches_only(self) -> Self {
        self.patches_only.store(true, Ordering::Relaxed);
        self
    }

    /// The Node as the API server has it now.
    pub async fn read(&self, name: &str) -> Result<NodeView, WriteError> {
        Ok(NodeView::of(&self.nodes.get(name).await?))
    }

    /// Replaces the addresses. Returns the version of the Node afterwards.
    pub async fn write_addresses(
        &self,
        node: &NodeView,
        addresses: &[NodeAddress],
        precondition: Precondition,
    ) -> Result<String, WriteError> {
        let path = format!("{}/status", path_of(&node.facts.name));
        let patch = addresses_patch(node, addresses, precondition);
        Ok(self.client.patch(&path, &patch).await?)
    }

    /// Writes provider ID, labels and taints in one go. Taints are a list without keys, so a change
    /// of them is refused as a conflict if the Node has changed since `node` was read, and may be a PUT as well. Returns the version of the Node afterwards.
    pub async fn write_changes(
        &self,
        node: &NodeView,
        changes: &NodeChanges,
    ) -> Result<String, WriteError> {
        let path = path_of(&node.facts.name);
        let may_replace = !self.patches_only.load(Ordering::Relaxed);
        if may_replace && let Some(whole) = replacement(node, changes) {
            match self.client.replace(&path, whole).await {
                Err(kube::Error::Api(status)) if is_put_refused(&status) => {
                    let err = ErrorText(status.as_ref());
                    warn!(%err, "{NODE_UPDATE_FORBIDDEN}");
                    self.patches_only.store(true, Ordering::Relaxed);
                }
                answer => return Ok(answer?),
            }
        }
        let patch = changes_patch(node, changes);
        Ok(self.client.patch(&path, &patch).await?)
    }

    /// Sets labels or annotations, whichever `field` of the metadata names, and removes those without a value.
    pub async fn write_metadata(
        &self,
        node: &NodeFacts,
        field: &str,
        changes: &BTreeMap<String, Option<String>>,
    ) -> Result<(), WriteError> {
        let patch = json!({"metadata": {"uid": node.uid, field: changes}});
        self.client.patch(&path_of(&node.name), &patch).await?;
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
        Ok(NodeView::of(&written))
    }

    /// Writes one condition and leaves the others as they are.
    pub async fn write_condition(
        &self,
        node: &NodeView,
        condition: &NodeCondition,
    ) -> Result<(), WriteError> {
        let patch = json!({
            "metadata": {"uid": node.facts.uid},
            "status": {"conditions": [condition]},
        });
        let path = format!("{}/status", path_of(&node.facts.name));
        self.client.patch(&path, &patch).await?;
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

/// Writes Services. Everything goes through the status, metadata included: that is all that the roles
/// of the Go CCMs allow, and all that it takes.
#[derive(Clone)]
pub struct ServiceWriter {
    client: Client,
}

impl ServiceWriter {
    /// A writer with this client.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Applies a strategic merge patch. It should name the UID, so that a Service recreated under the
    /// same name never gets what was meant for its predecessor. Returns the Service as it is
    /// afterwards.
    pub async fn patch(
        &self,
        service: &ServiceRef,
        patch: &Value,
    ) -> Result<ServiceView, WriteError> {
        let written = self
            .services(service)
            .patch_status(
                &service.name,
                &PatchParams::default(),
                &Patch::Strategic(patch),
            )
            .await?;
        Ok(ServiceView::of(&written))
    }

    /// The Service as the API server has it now; `None` if it is gone, or another one has its name. A list of one,
    /// because the roles of the Go CCMs allow lists only.
    pub async fn read(&self, service: &ServiceRef) -> Result<Option<ServiceView>, WriteError> {
        let name = format!("metadata.name={}", service.name);
        let only = ListParams::default().fields(&name);
        let found = self.services(service).list(&only).await?;
        let mut found = found.items.iter().map(ServiceView::of);
        Ok(found.find(|found| found.service.uid == service.uid))
    }

    fn services(&self, service: &ServiceRef) -> Api<Service> {
        Api::namespaced(self.client.clone(), &service.namespace)
    }
}

fn path_of(node: &str) -> String {
    format!("{}/{node}", Node::url_path(&(), None))
}

fn addresses_patch(
    node: &NodeView,
    addresses: &[NodeAddress],
    precondition: Precondition,
) -> Value {
    // Kubernetes merges addresses by their type, of which there may be several.
    let mut all = vec![json!({"$patch": "replace"})];
    all.extend(
        { addresses.iter() }
            .map(|address| json!({"type": address.kind.as_str(), "address": address.address})),
    );
    let mut patch = patch_of(&node.facts.uid);
    set_field(&mut patch, "status", "addresses", json!(all));
    if precondition == Precondition::ResourceVersion {
        let version = json!(node.resource_version);
        set_field(&mut patch, "metadata", "resourceVersion", version);
    }
    Value::Object(patch)
}

fn changes_patch(node: &NodeView, changes: &NodeChanges) -> Value {
    let mut patch = patch_of(&node.facts.uid);
    if !changes.labels.is_empty() {
        set_field(&mut patch, "metadata", "labels", json!(changes.labels));
    }
    if let Some(id) = &changes.provider_id {
        set_field(&mut patch, "spec", "providerID", json!(id));
    }
    if let Some(taints) = &changes.taints {
        let version = json!(node.resource_version);
        set_field(&mut patch, "metadata", "resourceVersion", version);
        // An empty list is removed, as the API server does it itself.
        let taints = Some(taints).filter(|taints| !taints.is_empty());
        set_field(&mut patch, "spec", "taints", json!(taints));
    }
    Value::Object(patch)
}

/// A patch for the object with this UID, and for no other that has its name.
pub(crate) fn patch_of(uid: &str) -> Map<String, Value> {
    let mut patch = Map::new();
    set_field(&mut patch, "metadata", "uid", json!(uid));
    patch
}

/// Sets a field in a part of a patch, such as `metadata` or `status`.
pub(crate) fn set_field(patch: &mut Map<String, Value>, part: &str, field: &str, value: Value) {
    let part = patch.entry(part).or_insert_with(|| json!({}));
    if let Some(part) = part.as_object_mut() {
        part.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Taint;

    fn node() -> NodeView {
        let mut node = NodeView {
            resource_version: "7".into(),
            ..NodeView::default()
        };
        node.facts.uid = "u".into();
        node
    }

    #[test]
    fn refusals_of_the_api_server_are_classified() {
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
    fn addresses_are_tied_to_the_precondition() {
        let addresses = [NodeAddress::hostname("n")];
        let metadata =
            |precondition| addresses_patch(&node(), &addresses, precondition)["metadata"].clone();
        assert_eq!(metadata(Precondition::Uid), json!({"uid": "u"}));
        let tied = json!({"uid": "u", "resourceVersion": "7"});
        assert_eq!(metadata(Precondition::ResourceVersion), tied);
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
