//! A Node as it is read from the wire.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::Original;

/// A Node, with what is needed to write it back. Of one that comes in protobuf only what some controller reads is
/// here: images, volumes, resources and managed fields weigh twenty times as much.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SlimNode {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Option<NodeSpec>,
    pub(super) status: Option<NodeStatus>,
    /// Not of the API server: see [`Original`].
    pub(super) original: Option<Original>,
}

impl From<Node> for SlimNode {
    fn from(node: Node) -> Self {
        Self {
            metadata: node.metadata,
            spec: node.spec,
            status: node.status,
            original: None,
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
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
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

    /// What is kept of it, decoded as a Node and as one with its original.
    fn both(value: &Value) -> [NodeView; 2] {
        let full: Node = serde_json::from_value(value.clone()).unwrap();
        let slim: SlimNode = serde_json::from_str(&value.to_string()).unwrap();
        [NodeView::from(&full), NodeView::of(&slim)]
    }

    #[test]
    fn everything_that_is_kept_of_a_node_survives() {
        let [full, slim] = both(&whole());
        assert_eq!(slim, full);
        assert!(slim.facts.system_uuid.is_some() && slim.deleting);
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
