//! JSON merge patch, RFC 7386.

use serde_json::Value;

use crate::object::{child, fields};

pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let known = fields(target);
    for (key, _) in patch.iter().filter(|(_, value)| value.is_null()) {
        known.remove(key);
    }
    for (key, value) in patch.iter().filter(|(_, value)| !value.is_null()) {
        merge(child(target, key), value);
    }
}
