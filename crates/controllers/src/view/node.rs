//! What is kept of a Node.

use std::sync::Arc;

use cloudkeel_api::{AddressKind, NodeAddress, NodeFacts, Shared};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use serde::{Deserialize, Serialize};

use super::{Original, SlimNode, View};

/// The state of the `Ready` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Readiness {
    /// The kubelet says so.
    Ready,
    /// The kubelet says it is not.
    NotReady,
    /// Nobody has heard of the kubelet, or there is no condition at all.
    #[default]
    Unknown,
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect.
    pub effect: String,
    /// When it was added, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// What is kept of a Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeView {
    /// What providers may know. Whoever hands it on shares it.
    pub facts: Shared<NodeFacts>,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `spec.taints`
    pub taints: Vec<Taint>,
    /// The `Ready` condition.
    pub readiness: Readiness,
    /// Status and reason of the `NetworkUnavailable` condition.
    pub network_unavailable: Option<(String, String)>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// As the API server wrote it, if it waits to be initialised and came in protobuf.
    pub original: Option<Arc<Original>>,
}

/// A resource version as a number, if it is one.
pub fn version_of(resource_version: &str) -> Option<u128> {
    resource_version.parse().ok()
}

impl NodeView {
    /// The resource version as a number, by which versions of one object can be compared. `None` from
    /// an API server that counts in another way.
    pub fn version(&self) -> Option<u128> {
        version_of(&self.resource_version)
    }

    /// Whether there is a taint with this key, whatever its value and effect.
    pub fn has_taint(&self, key: &str) -> bool {
        self.taints.iter().any(|taint| taint.key == key)
    }
}

impl View for NodeView {
    type Object = SlimNode;

    const KIND: &'static str = "Nodes";

    fn of(slim: &SlimNode) -> Self {
        Self {
            original: slim.original.clone(),
            ..Self::from(&slim.node)
        }
    }

    fn key(&self) -> String {
        self.facts.name.clone()
    }

    /// The same Node, on the same hardware: a kubelet on another machine may take over a Node of its name.
    fn continues(&self, before: &Self) -> bool {
        let (now, then) = (&self.facts, &before.facts);
        let has_moved = now.system_uuid.is_some()
            && then.system_uuid.is_some()
            && now.system_uuid != then.system_uuid;
        now.uid == then.uid && !has_moved
    }
}

impl From<&Node> for NodeView {
    fn from(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let conditions = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_deref());
        let condition = |kind: &str| -> Option<&NodeCondition> {
            conditions
                .unwrap_or_default()
                .iter()
                .find(|condition| condition.type_ == kind)
        };
        let ready = condition("Ready");
        Self {
            facts: facts(node).into(),
            resource_version: node.metadata.resource_version.clone().unwrap_or_default(),
            taints: spec
                .and_then(|spec| spec.taints.as_deref())
                .unwrap_or_default()
                .iter()
                .map(|taint| Taint {
                    key: taint.key.clone(),
                    value: taint.value.clone(),
                    effect: taint.effect.clone(),
                    time_added: taint.time_added.as_ref().map(|time| time.0.to_string()),
                })
                .collect(),
            readiness: match ready.map(|condition| condition.status.as_str()) {
                Some("True") => Readiness::Ready,
                Some("False") => Readiness::NotReady,
                _ => Readiness::Unknown,
            },
            network_unavailable: condition("NetworkUnavailable").map(|condition| {
                (
                    condition.status.clone(),
                    condition.reason.clone().unwrap_or_default(),
                )
            }),
            deleting: node.metadata.deletion_timestamp.is_some(),
            original: None,
        }
    }
}

fn facts(node: &Node) -> NodeFacts {
    let metadata = &node.metadata;
    let spec = node.spec.as_ref();
    let status = node.status.as_ref();
    let provider_id = spec.and_then(|spec| spec.provider_id.as_deref());
    NodeFacts {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        // Only an empty one is none. Whatever else stands there can never be changed.
        provider_id: provider_id.and_then(|id| id.parse().ok()),
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
        addresses: addresses(node),
        system_uuid: status
            .and_then(|status| status.node_info.as_ref())
            .map(|info| info.system_uuid.clone())
            .filter(|uuid| !uuid.is_empty()),
        pod_cidrs: pod_cidrs(node),
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
    }
}

fn addresses(node: &Node) -> Vec<NodeAddress> {
    let addresses = node
        .status
        .as_ref()
        .and_then(|status| status.addresses.as_deref());
    addresses
        .unwrap_or_default()
        .iter()
        .filter_map(|address| {
            let kind = match address.type_.as_str() {
                "Hostname" => AddressKind::Hostname,
                "InternalIP" => AddressKind::InternalIp,
                "ExternalIP" => AddressKind::ExternalIp,
                "InternalDNS" => AddressKind::InternalDns,
                "ExternalDNS" => AddressKind::ExternalDns,
                _ => return None,
            };
            Some(NodeAddress::new(kind, address.address.as_str()))
        })
        .collect()
}

/// `spec.podCIDRs`, or `spec.podCIDR` alone if an old component wrote only that.
fn pod_cidrs(node: &Node) -> Vec<IpNet> {
    let Some(spec) = &node.spec else {
        return Vec::new();
    };
    let listed = spec.pod_cidrs.as_deref().unwrap_or_default();
    let texts = if listed.is_empty() {
        spec.pod_cidr.as_slice()
    } else {
        listed
    };
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(value: serde_json::Value) -> NodeView {
        NodeView::from(&serde_json::from_value::<Node>(value).unwrap())
    }

    #[test]
    fn what_is_used_is_kept_and_the_rest_is_not() {
        let view = view(json!({
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"a": "b"},
                "managedFields": [{"manager": "kubelet"}],
            },
            "spec": {
                "providerID": "local://p/1",
                "podCIDRs": ["10.0.0.0/24", "fd00::/64"],
                "taints": [{"key": "k", "effect": "NoSchedule"}],
            },
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.1.1.1"},
                    {"type": "Strange", "address": "x"},
                ],
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:06Z"},
                    {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"},
                ],
                "images": [{"names": ["x"]}],
            },
        }));
        assert_eq!(view.key(), "n");
        assert_eq!(
            view.facts.provider_id.as_ref().unwrap().as_str(),
            "local://p/1"
        );
        assert_eq!(view.facts.pod_cidrs.len(), 2);
        assert_eq!(view.facts.addresses.len(), 1);
        assert_eq!(view.readiness, Readiness::Ready);
        assert_eq!(
            view.network_unavailable,
            Some(("False".into(), "RouteCreated".into()))
        );
        assert!(view.facts.created.is_some());
    }

    #[test]
    fn an_almost_empty_node_is_unknown_and_nothing_panics() {
        let view = view(json!({"metadata": {"name": "n"}, "spec": {"providerID": ""}}));
        assert_eq!(view.readiness, Readiness::Unknown);
        assert_eq!(view.facts.provider_id, None);
        assert!(!view.deleting && view.taints.is_empty());
    }

    #[test]
    fn whatever_stands_in_the_provider_id_is_kept() {
        for id in ["local://p/1", "local://p/4 2", "nonsense", " ", "a\tb"] {
            let view = view(json!({"metadata": {"name": "n"}, "spec": {"providerID": id}}));
            assert_eq!(view.facts.provider_id.as_ref().unwrap().as_str(), id);
        }
    }

    #[test]
    fn a_node_goes_on_until_it_is_recreated_or_another_machine_takes_it_over() {
        let node = |uid: &str, uuid: Option<&str>| {
            let mut node = NodeView::default();
            node.facts.uid = uid.to_owned();
            node.facts.system_uuid = uuid.map(str::to_owned);
            node
        };
        for (case, before, after, expected) in [
            ("nothing known", node("u", None), node("u", None), true),
            ("the same", node("u", Some("a")), node("u", Some("a")), true),
            ("known now", node("u", None), node("u", Some("a")), true),
            ("recreated", node("u", None), node("v", None), false),
            ("moved", node("u", Some("a")), node("u", Some("b")), false),
        ] {
            assert_eq!(after.continues(&before), expected, "{case}");
        }
    }

    #[test]
    fn a_lone_pod_cidr_counts() {
        let view = view(json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24"}}));
        assert_eq!(view.facts.pod_cidrs, ["10.0.0.0/24".parse().unwrap()]);
    }
}
