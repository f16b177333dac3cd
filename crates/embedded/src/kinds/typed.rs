//! Objects through their types: what the API server's own decoding and encoding would leave of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Maps that are the same empty and absent.
const MAPS: &[&str] = &[
    "allocatable",
    "annotations",
    "binaryData",
    "capacity",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "requests",
    "selector",
];

/// Lists that are written even when they are empty.
const ALWAYS_LISTS: &[&str] = &["endpoints", "rules"];

/// Moments that are written to the microsecond, and read in no other form.
const MICRO_TIMES: &[&str] = &["acquireTime", "eventTime", "lastObservedTime", "renewTime"];

/// A moment that is not written as its field wants it.
pub(super) fn misread_moment(value: &Value) -> Option<String> {
    let is_wrong = |key: &str, text: &str| MICRO_TIMES.contains(&key) && !is_micro_time(text);
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| match value {
            Value::String(text) if is_wrong(key, text) => {
                Some(format!("{key}: {text:?} is not to the microsecond"))
            }
            other => misread_moment(other),
        }),
        Value::Array(items) => items.iter().find_map(misread_moment),
        _ => None,
    }
}

fn is_micro_time(text: &str) -> bool {
    let fraction = text.split_once('.').map(|(_, fraction)| fraction);
    let digits = fraction.map(|fraction| fraction.trim_end_matches('Z'));
    let digits = digits.and_then(|digits| digits.split(['+', '-']).next());
    digits.is_some_and(|digits| digits.len() == 6)
}

/// Reads a value as a type and writes it again.
pub(super) fn through<K: DeserializeOwned + Serialize>(value: &Value) -> serde_json::Result<Value> {
    serde_json::to_value(K::deserialize(value)?)
}

/// Null is the same as absent to a decoder of Go structs.
pub(super) fn drop_nulls(value: &mut Value) {
    drop_from(value, |_, value| value.is_null());
}

/// Leaves out what `omitempty` leaves out.
pub(super) fn drop_empty(value: &mut Value) {
    drop_from(value, is_left_out);
}

fn drop_from(value: &mut Value, is_dropped: fn(&str, &Value) -> bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| !is_dropped(key, value));
            fields
                .values_mut()
                .for_each(|value| drop_from(value, is_dropped));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| drop_from(item, is_dropped)),
        _ => {}
    }
}

fn is_left_out(key: &str, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && !ALWAYS_LISTS.contains(&key),
        Value::Object(fields) => fields.is_empty() && MAPS.contains(&key),
        _ => false,
    }
}

/// The paths in `given` that `known` lacks.
pub(super) fn missing(given: &Value, known: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    collect_missing(given, known, "", &mut paths);
    paths
}

fn collect_missing(given: &Value, known: &Value, path: &str, paths: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (key, value) in given {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match known.get(key) {
                    Some(known) => collect_missing(value, known, &path, paths),
                    None => paths.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, (given, known)) in given.iter().zip(known).enumerate() {
                collect_missing(given, known, &format!("{path}[{index}]"), paths);
            }
        }
        _ => {}
    }
}
