use serde_json::{Value, json};

use super::changes;

fn node() -> Value {
    json!({
        "metadata": {"name": "n", "uid": "u", "labels": {"a": "1", "b": "2"}},
        "spec": {"taints": [
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
            {"key": "mine", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        ]},
        "status": {
            "addresses": [{"type": "Hostname", "address": "n"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

#[test]
fn patches_of_nodes_say_only_what_differs() {
    for (case, patch, expected) in [
        (
            "nothing",
            json!({"metadata": {"uid": "u", "resourceVersion": "7"}}),
            vec![],
        ),
        (
            "labels",
            json!({"metadata": {"uid": "u", "labels": {"a": "1", "b": "3", "c": null}}}),
            vec!["set label b=3"],
        ),
        (
            "a label that is removed",
            json!({"metadata": {"labels": {"a": null}}}),
            vec!["remove label a"],
        ),
        (
            "an ID, and a taint less",
            json!({"spec": {"providerID": "local://1", "taints": [{"key": "mine", "effect": "NoExecute"}]}}),
            vec![
                "set provider ID local://1",
                "remove taint node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
            ],
        ),
        (
            "no taint at all",
            json!({"spec": {"taints": null}}),
            vec![
                "remove taint node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
                "remove taint mine:NoExecute",
            ],
        ),
        (
            "addresses",
            json!({"status": {"addresses": [
                {"$patch": "replace"},
                {"type": "Hostname", "address": "n"},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ]}}),
            vec!["set addresses Hostname n, InternalIP 10.0.0.1"],
        ),
        (
            "the same addresses",
            json!({"status": {"addresses": [{"$patch": "replace"}, {"type": "Hostname", "address": "n"}]}}),
            vec![],
        ),
        (
            "conditions",
            json!({"status": {"conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "new"},
                {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"},
            ]}}),
            vec!["set condition NetworkUnavailable to False (RouteCreated)"],
        ),
        (
            "Pod networks",
            json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}),
            vec!["set Pod CIDRs 10.0.0.0/24"],
        ),
        (
            "something new",
            json!({"spec": {"unschedulable": true}}),
            vec!["set spec.unschedulable"],
        ),
    ] {
        assert_eq!(changes(&node(), &patch), expected, "{case}");
    }
}

#[test]
fn patches_of_services_say_only_what_differs() {
    let service = json!({
        "metadata": {"uid": "u", "finalizers": ["theirs"]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}},
    });
    for (case, patch, expected) in [
        (
            "a finalizer",
            json!({"metadata": {"finalizers": ["ours"]}}),
            vec!["add finalizer ours"],
        ),
        (
            "one that is there",
            json!({"metadata": {"finalizers": ["theirs"]}}),
            vec![],
        ),
        (
            "finalizers that go",
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["theirs", "ours"]}}),
            vec!["remove finalizer theirs"],
        ),
        (
            "an address",
            json!({"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}}),
            vec!["publish address lb.example"],
        ),
        (
            "no address",
            json!({"status": {"loadBalancer": {"ingress": null}}}),
            vec!["remove published address 192.0.2.1"],
        ),
        (
            "the same address",
            json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
            vec![],
        ),
    ] {
        assert_eq!(changes(&service, &patch), expected, "{case}");
    }
}
