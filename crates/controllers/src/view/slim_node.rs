//! A Node as it is read from the wire: what nobody looks at is skipped while it is decoded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

use super::Original;

/// A Node without images, volumes, resources and managed fields, which weigh twenty times as much as
/// the rest and would be decoded, kept for a moment and thrown away with every heartbeat.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Parts")]
pub struct SlimNode {
    pub(super) node: Node,
    pub(super) original: Option<Arc<Original>>,
}

impl From<Node> for SlimNode {
    fn from(node: Node) -> Self {
        Self {
            node,
            original: None,
        }
    }
}

/// What is decoded.
#[derive(Deserialize)]
struct Parts {
    #[serde(deserialize_with = "slim_metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<NodeSpec>,
    #[serde(default)]
    status: Option<SlimStatus>,
    /// Not of the API server: see [`Original`].
    #[serde(default)]
    original: Option<Original>,
}

impl From<Parts> for SlimNode {
    fn from(parts: Parts) -> Self {
        Self {
            node: Node {
                metadata: parts.metadata,
                spec: parts.spec,
                status: parts.status.map(|status| NodeStatus {
                    addresses: Some(status.addresses),
                    conditions: Some(status.conditions),
                    node_info: status.node_info,
                    ..NodeStatus::default()
                }),
            },
            original: parts.original.map(Arc::new),
        }
    }
}

/// To the API server it is a Node like any other.
impl Resource for SlimNode {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind(dynamic: &()) -> Cow<'_, str> {
        Node::kind(dynamic)
    }
    fn group(dynamic: &()) -> Cow<'_, str> {
        Node::group(dynamic)
    }
    fn version(dynamic: &()) -> Cow<'_, str> {
        Node::version(dynamic)
    }
    fn plural(dynamic: &()) -> Cow<'_, str> {
        Node::plural(dynamic)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.node.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.node.metadata
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct SlimStatus {
    #[serde(deserialize_with = "list")]
    addresses: Vec<NodeAddress>,
    #[serde(deserialize_with = "list")]
    conditions: Vec<NodeCondition>,
    node_info: Option<NodeSystemInfo>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SlimMetadata {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

fn slim_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let slim = SlimMetadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: slim.name,
        uid: slim.uid,
        resource_version: slim.resource_version,
        creation_timestamp: slim.creation_timestamp,
        deletion_timestamp: slim.deletion_timestamp,
        labels: slim.labels,
        annotations: slim.annotations,
        ..ObjectMeta::default()
    })
}

/// A list that may be `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{NodeView, View as _};
    use super::*;

    fn whole() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "deletionTimestamp": "2026-01-02T03:04:09Z",
                "labels": {"a": "b"}, "annotations": {"c": "d"},
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
            },
            "spec": {
                "providerID": "local://p/1", "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"],
                "taints": [{"key": "k", "effect": "NoSchedule"}],
            },
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:06Z"},
                    {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"},
                ],
                "capacity": {"cpu": "4"},
                "images": [{"names": ["x", "y"], "sizeBytes": 7}],
                "nodeInfo": {
                    "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "r",
                    "kernelVersion": "k", "kubeProxyVersion": "p", "kubeletVersion": "v",
                    "machineID": "m", "operatingSystem": "linux", "osImage": "i",
                    "systemUUID": "4c4c",
                },
            },
        })
    }

    /// What is kept of it, decoded in full and decoded slim.
    fn both(value: &Value) -> [NodeView; 2] {
        let full: Node = serde_json::from_value(value.clone()).unwrap();
        let slim: SlimNode = serde_json::from_str(&value.to_string()).unwrap();
        [NodeView::from(&full), NodeView::of(&slim)]
    }

    #[test]
    fn everything_that_is_kept_of_a_node_survives_and_the_weight_does_not() {
        let [full, slim] = both(&whole());
        assert_eq!(slim, full);
        assert!(slim.facts.system_uuid.is_some() && slim.deleting);
        let SlimNode { node, .. } = serde_json::from_value(whole()).unwrap();
        assert_eq!(node.metadata.managed_fields, None);
        assert_eq!(node.status.unwrap().images, None);
    }

    #[test]
    fn an_almost_empty_node_is_read_the_same_way() {
        for value in [
            json!({"metadata": {"name": "n"}}),
            json!({"metadata": {"name": "n", "labels": null}, "spec": null, "status": null}),
            json!({"metadata": {"name": "n"}, "spec": {}, "status": {"addresses": null}}),
        ] {
            let [full, slim] = both(&value);
            assert_eq!(slim, full, "{value}");
        }
    }
}
