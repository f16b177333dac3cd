use serde_json::json;

use super::*;

fn node() -> Value {
    json!({
        "metadata": {"name": "a", "finalizers": ["x/1", "x/2"], "labels": {"zone": "1", "old": "y"}},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    })
}

fn patched(language: Language, patch: Value) -> Value {
    apply(
        Kind::find("", "v1", "nodes").unwrap(),
        language,
        &node(),
        patch,
    )
    .unwrap()
}

#[test]
fn a_merge_patch_sets_replaces_and_removes() {
    let patch =
        json!({"metadata": {"labels": {"old": null, "new": "z"}}, "status": {"conditions": []}});
    let node = patched(Language::Merge, patch);
    assert_eq!(node["metadata"]["labels"], json!({"zone": "1", "new": "z"}));
    assert_eq!(node["status"]["conditions"], json!([]));
}

#[test]
fn a_strategic_patch_merges_sets_and_replaces_other_lists() {
    let patch = json!({
        "metadata": {"finalizers": ["x/3"]},
        "spec": {"taints": [{"key": "b", "effect": "NoExecute"}]},
        "status": {"conditions": [{"type": "Net", "status": "True"}, {"type": "Ready", "reason": "Ok"}]},
    });
    let node = patched(Language::Strategic, patch);
    assert_eq!(node["metadata"]["finalizers"], json!(["x/3", "x/1", "x/2"]));
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": "b", "effect": "NoExecute"}])
    );
    assert_eq!(
        node["status"]["conditions"],
        json!([
            {"type": "Net", "status": "True"},
            {"type": "Ready", "status": "True", "reason": "Ok"},
            {"type": "Disk", "status": "False"},
        ])
    );
}

#[test]
fn the_directives_of_a_strategic_patch_are_followed() {
    for (case, patch, path, want) in [
        (
            "delete an item",
            json!({"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}),
            "/status/conditions",
            json!([{"type": "Disk", "status": "False"}]),
        ),
        (
            "replace a list",
            json!({"status": {"addresses": [{"$patch": "replace"}, {"type": "Hostname", "address": "a"}]}}),
            "/status/addresses",
            json!([{"type": "Hostname", "address": "a"}]),
        ),
        (
            "delete texts",
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/1"]}}),
            "/metadata/finalizers",
            json!(["x/2"]),
        ),
        (
            "give an order",
            json!({"metadata": {"$setElementOrder/finalizers": ["x/2", "x/1"]}}),
            "/metadata/finalizers",
            json!(["x/2", "x/1"]),
        ),
        (
            "retain keys",
            json!({"metadata": {"labels": {"$retainKeys": ["new"], "new": "1"}}}),
            "/metadata/labels",
            json!({"new": "1"}),
        ),
        (
            "replace a map",
            json!({"metadata": {"labels": {"$patch": "replace", "new": "1"}}}),
            "/metadata/labels",
            json!({"new": "1"}),
        ),
    ] {
        let node = patched(Language::Strategic, patch);
        assert_eq!(node.pointer(path), Some(&want), "{case}");
    }
}

#[test]
fn an_item_without_its_key_is_refused() {
    let patch = json!({"status": {"conditions": [{"status": "True"}]}});
    let kind = Kind::find("", "v1", "nodes").unwrap();
    let refusal = apply(kind, Language::Strategic, &node(), patch).unwrap_err();
    assert_eq!(refusal.code, 400);
}

#[test]
fn a_json_patch_whose_test_fails_is_refused() {
    let kind = Kind::find("", "v1", "nodes").unwrap();
    let test = json!([{"op": "test", "path": "/metadata/name", "value": "b"}]);
    let refusal = apply(kind, Language::Json, &node(), test).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (422, "Invalid"));
    let add = json!([{"op": "add", "path": "/metadata/labels/a", "value": "1"}]);
    assert_eq!(patched(Language::Json, add)["metadata"]["labels"]["a"], "1");
}
