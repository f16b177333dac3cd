//! Patches in every language.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn patches_agree() {
    agree(
        "patches",
        cases![
            merge_patches,
            json_patches,
            conditions_are_merged_by_type,
            addresses_are_merged_by_type,
            taints_are_replaced,
            finalizers_are_merged,
            owner_references_are_merged_by_uid,
            service_ports_are_merged_by_port,
            directives,
            an_order_may_be_given,
            patches_of_what_is_absent,
            unknown_languages_are_refused,
            patches_that_are_no_patches,
        ],
    )
    .await;
}

async fn node(b: &Bench) -> String {
    let name = b.own("n");
    let body = json!({
        "metadata": {"name": name, "labels": {"zone": "1"}, "finalizers": ["x.io/1", "x.io/2"]},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "False"}],
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.1"},
                {"type": "Hostname", "address": "h"},
            ],
        },
    });
    b.post("/api/v1/nodes", body).await;
    format!("/api/v1/nodes/{name}")
}

async fn merge_patches(b: &Bench) {
    let path = node(b).await;
    b.merge(
        &path,
        json!({"metadata": {"labels": {"zone": null, "new": "x"}, "annotations": {"k": "v"}}}),
    )
    .await;
    b.merge(&path, json!({"metadata": {"annotations": null}}))
        .await;
    b.merge(&path, json!({"spec": {"taints": null}})).await;
    b.merge(&path, json!({})).await;
}

async fn json_patches(b: &Bench) {
    let path = node(b).await;
    for patch in [
        json!([{"op": "add", "path": "/metadata/labels/new", "value": "x"}]),
        json!([{"op": "test", "path": "/metadata/labels/new", "value": "x"}, {"op": "remove", "path": "/metadata/labels/new"}]),
        json!([{"op": "replace", "path": "/spec/taints/0/effect", "value": "NoExecute"}]),
        json!([{"op": "add", "path": "/spec/taints/-", "value": {"key": "b", "effect": "NoSchedule"}}]),
    ] {
        b.json_patch(&path, patch).await;
    }
    for refused in [
        json!([{"op": "test", "path": "/metadata/labels/zone", "value": "y"}]),
        json!([{"op": "remove", "path": "/metadata/labels/absent"}]),
    ] {
        code_of(b, &path, refused).await;
    }
}

/// Of a patch that cannot be applied only the verdict is compared: its words are those of a library.
async fn code_of(b: &Bench, path: &str, patch: Value) {
    let answer = b.unnoted_json_patch(path, patch).await;
    let verdict = json!({"code": answer["code"], "reason": answer["body"]["reason"]});
    b.note(format!("refused {path}"), verdict);
}

async fn conditions_are_merged_by_type(b: &Bench) {
    let path = format!("{}/status", node(b).await);
    b.strategic(
        &path,
        json!({"status": {"conditions": [{"type": "Net", "status": "True"}]}}),
    )
    .await;
    b.strategic(&path, json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Gone"}]}})).await;
    b.strategic(
        &path,
        json!({"status": {"conditions": [{"type": "Disk", "$patch": "delete"}]}}),
    )
    .await;
    b.strategic(&path, json!({"status": {"conditions": [{"type": "Z", "status": "True"}, {"type": "Net", "reason": "x"}]}})).await;
}

async fn addresses_are_merged_by_type(b: &Bench) {
    let path = format!("{}/status", node(b).await);
    b.strategic(
        &path,
        json!({"status": {"addresses": [{"type": "ExternalIP", "address": "198.51.100.1"}]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]}}),
    )
    .await;
    let whole = json!({"status": {"addresses": [{"$patch": "replace"}, {"type": "InternalIP", "address": "192.0.2.3"}, {"type": "InternalIP", "address": "192.0.2.4"}]}});
    b.strategic(&path, whole).await;
    b.merge(
        &path,
        json!({"status": {"addresses": [{"type": "Hostname", "address": "x"}]}}),
    )
    .await;
}

async fn taints_are_replaced(b: &Bench) {
    let path = node(b).await;
    b.strategic(
        &path,
        json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
    )
    .await;
    b.strategic(&path, json!({"spec": {"taints": []}})).await;
}

async fn finalizers_are_merged(b: &Bench) {
    let path = node(b).await;
    b.strategic(
        &path,
        json!({"metadata": {"finalizers": ["x.io/3", "x.io/1"]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/1"]}}),
    )
    .await;
    b.merge(&path, json!({"metadata": {"finalizers": ["x.io/9"]}}))
        .await;
    b.merge(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

async fn owner_references_are_merged_by_uid(b: &Bench) {
    let path = node(b).await;
    let owner = |uid: &str, name: &str| json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
    b.strategic(
        &path,
        json!({"metadata": {"ownerReferences": [owner("u-1", "a")]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"metadata": {"ownerReferences": [owner("u-2", "b"), owner("u-1", "c")]}}),
    )
    .await;
}

async fn service_ports_are_merged_by_port(b: &Bench) {
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 443}]);
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "s"}, "spec": {"ports": ports}}),
    )
    .await;
    let path = b.here("services/s");
    b.strategic(
        &path,
        json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"spec": {"ports": [{"name": "c", "port": 8080}]}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}),
    )
    .await;
    b.merge(
        &path,
        json!({"spec": {"ports": [{"name": "only", "port": 1}]}}),
    )
    .await;
}

async fn directives(b: &Bench) {
    let path = node(b).await;
    b.strategic(
        &path,
        json!({"metadata": {"labels": {"$patch": "replace", "only": "1"}}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"metadata": {"labels": {"$retainKeys": ["kept"], "kept": "1"}}}),
    )
    .await;
    b.strategic(
        &path,
        json!({"metadata": {"annotations": {"a": "1", "b": null}}}),
    )
    .await;
    b.strategic(&path, json!({"metadata": {"labels": null}}))
        .await;
}

async fn an_order_may_be_given(b: &Bench) {
    let path = format!("{}/status", node(b).await);
    let patch = json!({"status": {
        "$setElementOrder/conditions": [{"type": "New"}, {"type": "Disk"}, {"type": "Ready"}],
        "conditions": [{"type": "New", "status": "True"}],
    }});
    b.strategic(&path, patch).await;
}

async fn patches_of_what_is_absent(b: &Bench) {
    b.merge(
        "/api/v1/nodes/absent",
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    b.strategic("/api/v1/nodes/absent/status", json!({})).await;
    b.merge(&b.here("services/absent"), json!({"spec": {}}))
        .await;
}

async fn unknown_languages_are_refused(b: &Bench) {
    let path = node(b).await;
    b.patch_as(&path, "application/json", json!({})).await;
    b.patch_as(&path, "text/plain", json!({})).await;
}

async fn patches_that_are_no_patches(b: &Bench) {
    let path = node(b).await;
    b.merge(&path, json!([1])).await;
    b.json_patch(&path, json!({"a": 1})).await;
    b.merge(&path, json!({"metadata": {"labels": {"a": 1}}}))
        .await;
}
