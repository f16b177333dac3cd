//! Kubernetes objects as JSON.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value};

pub(crate) fn node_of(value: &Value) -> Node {
    serde_json::from_value(value.clone()).unwrap()
}

/// A JSON merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[test]
fn a_merge_sets_replaces_and_removes() {
    let mut object = serde_json::json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
    merge(
        &mut object,
        &serde_json::json!({"a": {"b": null, "d": {"e": 3}}, "l": [3]}),
    );
    assert_eq!(
        object,
        serde_json::json!({"a": {"c": 2, "d": {"e": 3}}, "l": [3]})
    );
}
