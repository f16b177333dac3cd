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

/// A list whose items are told apart by their type, with some of them replaced or added.
pub(crate) fn merge_by_type(known: &Value, new: &Value) -> Value {
    let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let mut merged = items(known);
    for item in items(new) {
        match merged
            .iter_mut()
            .find(|other| other["type"] == item["type"])
        {
            Some(other) => merge(other, &item),
            None => merged.push(item),
        }
    }
    Value::Array(merged)
}

#[test]
fn items_of_a_type_are_replaced_and_others_stay() {
    use serde_json::json;
    let known = json!([{"type": "a", "x": 1, "y": 2}, {"type": "b"}]);
    let new = json!([{"type": "a", "x": 3}, {"type": "c"}]);
    assert_eq!(
        merge_by_type(&known, &new),
        json!([{"type": "a", "x": 3, "y": 2}, {"type": "b"}, {"type": "c"}])
    );
    assert_eq!(merge_by_type(&Value::Null, &new), new);
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
