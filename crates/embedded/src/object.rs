//! Kubernetes objects as JSON: reading and writing their common parts.

use serde_json::{Map, Value, json};

/// What a `metadata` or another part holds as text; empty if it is not there.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// What is at a path, or null.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |part, key| &part[*key])
}

/// The items of a list at a path; none if there is no list.
pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// A list of texts at a path.
pub(crate) fn texts(value: &Value, path: &[&str]) -> Vec<String> {
    let items = items(value, path).iter();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, &["metadata", "resourceVersion"])
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    !at(object, &["metadata", "deletionTimestamp"]).is_null()
}

/// Whether a finalizer still holds the object.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    let waits = |path: &[&str]| !items(object, path).is_empty();
    waits(&["metadata", "finalizers"]) || waits(&["spec", "finalizers"])
}

/// The object at a key, made if there is none.
pub(crate) fn child<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    fields(value).entry(key).or_insert(Value::Null)
}

/// A value as an object, made one if it is something else.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("it was made an object"),
    }
}

/// Writes a value at a path and makes what is missing on the way; null removes.
pub(crate) fn put(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let new = new.into();
    let parent = way.iter().fold(value, |part, key| child(part, key));
    if new.is_null() {
        fields(parent).remove(*last);
    } else {
        fields(parent).insert((*last).to_owned(), new);
    }
}

/// Writes a value where there is none.
pub(crate) fn put_default(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if is_unset(at(value, path)) {
        put(value, path, new);
    }
}

/// Null, empty or zero: what the API server does not tell from absent.
pub(crate) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// Copies a part of one object to another, also its absence.
pub(crate) fn copy(part: &str, from: &Value, to: &mut Value) {
    put(to, &[part], from[part].clone());
}
