//! Nodes: what kubelets register, and what is written once.

use serde_json::json;

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn nodes_agree() {
    agree(
        "nodes",
        cases![
            a_node_comes_with_its_status,
            an_empty_node_has_the_usual_shape,
            a_provider_id_is_written_once,
            pod_networks_are_written_once,
            a_list_of_pod_networks_without_the_first_is_ignored,
            what_was_meant_for_a_predecessor_is_refused,
            pod_networks_are_checked,
            one_pod_network_means_both_fields,
            taints_are_checked,
            a_node_may_be_cordoned,
            addresses_are_not_repeated,
            capacity_is_also_allocatable,
        ],
    )
    .await;
}

async fn a_node_comes_with_its_status(b: &Bench) {
    let body = json!({
        "metadata": {"name": b.own("n"), "labels": {"kubernetes.io/os": "linux"}},
        "spec": {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "nodeInfo": {"kubeletVersion": "v1.35.4", "systemUUID": "u"},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok",
                "lastHeartbeatTime": "2020-01-01T00:00:00Z", "lastTransitionTime": "2020-01-01T00:00:00.5Z",
            }],
            "images": [{"names": ["a", "b"], "sizeBytes": 5}],
        },
    });
    b.post("/api/v1/nodes", body).await;
}

async fn an_empty_node_has_the_usual_shape(b: &Bench) {
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    b.get(&format!("/api/v1/nodes/{}/status", b.own("n"))).await;
}

async fn a_provider_id_is_written_once(b: &Bench) {
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    let path = format!("/api/v1/nodes/{}", b.own("n"));
    b.merge(&path, json!({"spec": {"providerID": "x://1"}}))
        .await;
    b.merge(&path, json!({"spec": {"providerID": "x://1"}}))
        .await;
    b.merge(&path, json!({"spec": {"providerID": "x://2"}}))
        .await;
    b.merge(&path, json!({"spec": {"providerID": null}})).await;
}

async fn pod_networks_are_written_once(b: &Bench) {
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    let path = format!("/api/v1/nodes/{}", b.own("n"));
    let both =
        json!({"spec": {"podCIDR": "192.0.2.0/25", "podCIDRs": ["192.0.2.0/25", "2001:db8::/64"]}});
    b.strategic(&path, both.clone()).await;
    b.strategic(&path, both).await;
    let other = json!({"spec": {"podCIDR": "192.0.2.128/25", "podCIDRs": ["192.0.2.128/25"]}});
    b.merge(&path, other).await;
    b.merge(&path, json!({"spec": {"podCIDR": null, "podCIDRs": null}}))
        .await;
}

async fn a_list_of_pod_networks_without_the_first_is_ignored(b: &Bench) {
    let spec = json!({"podCIDRs": ["192.0.2.0/25"]});
    b.post(
        "/api/v1/nodes",
        json!({"metadata": {"name": b.own("n")}, "spec": spec}),
    )
    .await;
    let path = format!("/api/v1/nodes/{}", b.own("n"));
    let other = json!({"spec": {"podCIDRs": ["192.0.2.128/25"]}});
    b.merge(&path, other.clone()).await;
    b.strategic(&path, other).await;
}

async fn what_was_meant_for_a_predecessor_is_refused(b: &Bench) {
    let new = json!({"metadata": {"name": b.own("n")}});
    let first = b.post("/api/v1/nodes", new.clone()).await;
    let path = format!("/api/v1/nodes/{}", b.own("n"));
    b.delete(&path, json!({})).await;
    b.post("/api/v1/nodes", new).await;
    let (uid, version) = (
        &first["metadata"]["uid"],
        &first["metadata"]["resourceVersion"],
    );
    let status = format!("{path}/status");
    let only_uid = json!({"metadata": {"uid": uid}});
    let both = json!({"metadata": {"uid": uid, "resourceVersion": version}});
    for meant in [&only_uid, &both] {
        b.merge(&path, meant.clone()).await;
        b.strategic(&path, meant.clone()).await;
        b.merge(&status, meant.clone()).await;
        b.strategic(&status, meant.clone()).await;
    }
}

async fn pod_networks_are_checked(b: &Bench) {
    for (name, cidrs) in [
        ("none", json!(["nonsense"])),
        ("same", json!(["192.0.2.0/25", "192.0.2.128/25"])),
        (
            "three",
            json!(["192.0.2.0/25", "2001:db8::/64", "2001:db8:1::/64"]),
        ),
    ] {
        let spec = json!({"podCIDR": cidrs[0], "podCIDRs": cidrs});
        b.post(
            "/api/v1/nodes",
            json!({"metadata": {"name": b.own(name)}, "spec": spec}),
        )
        .await;
    }
}

async fn one_pod_network_means_both_fields(b: &Bench) {
    let spec = json!({"podCIDR": "192.0.2.0/25"});
    b.post(
        "/api/v1/nodes",
        json!({"metadata": {"name": b.own("one")}, "spec": spec}),
    )
    .await;
    let spec = json!({"podCIDRs": ["192.0.2.0/25"]});
    b.post(
        "/api/v1/nodes",
        json!({"metadata": {"name": b.own("many")}, "spec": spec}),
    )
    .await;
    let spec = json!({"podCIDR": "192.0.2.0/25", "podCIDRs": ["192.0.2.128/25"]});
    b.post(
        "/api/v1/nodes",
        json!({"metadata": {"name": b.own("odd")}, "spec": spec}),
    )
    .await;
}

async fn taints_are_checked(b: &Bench) {
    for (name, taints) in [
        ("a", json!([{"key": "a", "effect": "Nonsense"}])),
        ("b", json!([{"key": "a"}])),
        (
            "c",
            json!([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]),
        ),
        (
            "d",
            json!([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]),
        ),
    ] {
        let body = json!({"metadata": {"name": b.own(name)}, "spec": {"taints": taints}});
        b.post("/api/v1/nodes", body).await;
    }
}

async fn a_node_may_be_cordoned(b: &Bench) {
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    let path = format!("/api/v1/nodes/{}", b.own("n"));
    b.merge(&path, json!({"spec": {"unschedulable": true}}))
        .await;
    b.get(&format!(
        "/api/v1/nodes?fieldSelector=spec.unschedulable=true,metadata.name={}",
        b.own("n")
    ))
    .await;
    b.merge(&path, json!({"spec": {"unschedulable": false}}))
        .await;
}

async fn addresses_are_not_repeated(b: &Bench) {
    let twice = json!([
        {"type": "InternalIP", "address": "192.0.2.1"},
        {"type": "InternalIP", "address": "192.0.2.1"},
    ]);
    b.post("/api/v1/nodes", json!({"metadata": {"name": b.own("n")}}))
        .await;
    let path = format!("/api/v1/nodes/{}/status", b.own("n"));
    b.merge(&path, json!({"status": {"addresses": twice}}))
        .await;
}

async fn capacity_is_also_allocatable(b: &Bench) {
    let status = json!({"capacity": {"cpu": "4", "memory": "8Gi"}});
    b.post(
        "/api/v1/nodes",
        json!({"metadata": {"name": b.own("n")}, "status": status}),
    )
    .await;
}
