//! The view of a Node.

use cloudkeel_api::{AddressKind, NodeAddress, NodeFacts, Shared};
use k8s_openapi::api::core::v1::{Node, Taint};

use super::{Original, SlimNode, View};

/// The state of the `Ready` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Readiness {
    /// The kubelet says so.
    Ready,
    /// The kubelet says it is not.
    NotReady,
    /// The kubelet has stopped posting its status, or there is no condition at all.
    #[default]
    Unknown,
}

/// What a kubelet says while it shuts its machine down: nothing but this message tells.
const SHUTTING_DOWN: &str = "node is shutting down";

/// What is kept of a Node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeView {
    /// What providers get to see, shared and not copied.
    pub facts: Shared<NodeFacts>,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `spec.taints`
    pub taints: Vec<Taint>,
    /// The `Ready` condition.
    pub readiness: Readiness,
    /// Whether its kubelet shuts the machine down gracefully.
    pub shutting_down: bool,
    /// Status and reason of the `NetworkUnavailable` condition.
    pub network_unavailable: Option<(String, String)>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// As the API server wrote it, if it waits to be initialised and came in protobuf.
    pub original: Option<Original>,
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

    fn of(node: &SlimNode) -> Self {
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let condition = |kind: &str| {
            let mut conditions = status?.conditions.iter().flatten();
            conditions.find(|condition| condition.type_ == kind)
        };
        let ready = condition("Ready");
        let network_unavailable = condition("NetworkUnavailable");
        Self {
            facts: facts(node).into(),
            resource_version: node.metadata.resource_version.clone().unwrap_or_default(),
            taints: spec
                .and_then(|spec| spec.taints.clone())
                .unwrap_or_default(),
            readiness: match ready.map(|condition| condition.status.as_str()) {
                Some("True") => Readiness::Ready,
                Some("False") => Readiness::NotReady,
                _ => Readiness::Unknown,
            },
            shutting_down: ready.is_some_and(|condition| {
                let message = condition.message.as_deref();
                condition.status == "False" && message.is_some_and(|it| it.contains(SHUTTING_DOWN))
            }),
            network_unavailable: network_unavailable.map(|condition| {
                let reason = condition.reason.clone().unwrap_or_default();
                (condition.status.clone(), reason)
            }),
            deleting: node.metadata.deletion_timestamp.is_some(),
            original: node.original.clone(),
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
        Self::of(&node.clone().into())
    }
}

fn facts(node: &SlimNode) -> NodeFacts {
    let metadata = &node.metadata;
    let spec = node.spec.as_ref();
    let status = node.status.as_ref();
    let provider_id = spec.and_then(|spec| spec.provider_id.as_deref());
    let pod_cidrs = spec.iter().flat_map(|spec| &spec.pod_cidrs).flatten();
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
        pod_cidrs: pod_cidrs.filter_map(|text| text.parse().ok()).collect(),
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
    }
}

fn addresses(node: &SlimNode) -> Vec<NodeAddress> {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    addresses
        .into_iter()
        .flatten()
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
}
