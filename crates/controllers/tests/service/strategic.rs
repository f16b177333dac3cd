//! As much of a strategic merge patch as the status of a Service needs.

use serde_json::{Map, Value};

const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Applies the patch: finalizers are a set, conditions are merged by their type, all other lists are
/// replaced.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE_FROM) {
            remove_all(target, list, value);
        } else if key.starts_with("$setElementOrder/") {
        } else if value.is_null() {
            target.remove(key);
        } else {
            let entry = target.entry(key.clone()).or_insert(Value::Null);
            match (key.as_str(), value) {
                ("finalizers", Value::Array(more)) => add_all(entry, more),
                ("conditions", Value::Array(more)) => merge_by_type(entry, more),
                _ => apply(entry, value),
            }
        }
    }
}

fn remove_all(target: &mut Map<String, Value>, list: &str, gone: &Value) {
    let gone = gone.as_array().unwrap();
    if let Some(Value::Array(items)) = target.get_mut(list) {
        items.retain(|item| !gone.contains(item));
        if items.is_empty() {
            target.remove(list);
        }
    }
}

fn add_all(list: &mut Value, more: &[Value]) {
    let mut items = list.as_array().cloned().unwrap_or_default();
    for item in more {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    *list = Value::Array(items);
}

fn merge_by_type(list: &mut Value, more: &[Value]) {
    let mut items = list.as_array().cloned().unwrap_or_default();
    for item in more {
        let known = items.iter_mut().find(|known| known["type"] == item["type"]);
        match known {
            _ if item["$patch"] == "delete" => items.retain(|known| known["type"] != item["type"]),
            Some(known) => apply(known, item),
            None => items.push(item.clone()),
        }
    }
    *list = Value::Array(items);
}

#[test]
fn lists_are_merged_as_the_api_server_does_it() {
    let mut object = serde_json::json!({
        "metadata": {"finalizers": ["a"], "annotations": {"k": "v"}},
        "status": {
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
            "conditions": [{"type": "X", "status": "True"}, {"type": "Y", "status": "True"}],
        },
    });
    apply(
        &mut object,
        &serde_json::json!({
            "metadata": {"finalizers": ["b"], "annotations": {"k": null, "l": "w"}},
            "status": {
                "loadBalancer": {"ingress": null},
                "conditions": [{"type": "X", "status": "False"}, {"type": "Y", "$patch": "delete"}],
            },
        }),
    );
    assert_eq!(
        object,
        serde_json::json!({
            "metadata": {"finalizers": ["a", "b"], "annotations": {"l": "w"}},
            "status": {"loadBalancer": {}, "conditions": [{"type": "X", "status": "False"}]},
        })
    );
    apply(
        &mut object,
        &serde_json::json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "b"]}}),
    );
    assert_eq!(object["metadata"]["finalizers"], Value::Null);
}
