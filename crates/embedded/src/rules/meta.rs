//! What holds for the metadata of every object.

use serde_json::{Value, json};

use crate::kinds::{Kind, LabelName};
use crate::object::{at, is_terminating, text, texts};
use crate::refusal::Fault;

const BAD_LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const IMMUTABLE: &str = "field is immutable";
/// All annotations of an object together.
const ANNOTATION_BYTES: usize = 256 * 1024;

/// What is wrong with the metadata of an object that is to be.
pub(crate) fn faults_of_new_metadata(kind: &Kind, object: &Value) -> Vec<Fault> {
    let name = text(object, &["metadata", "name"]);
    let mut faults = Vec::new();
    if name.is_empty() {
        faults.push(Fault::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = kind.names.refuses(name) {
        faults.push(Fault::invalid("metadata.name", &json!(name), &why));
    }
    faults.extend(faults_of_maps(object));
    faults
}

/// What is wrong with the metadata of an object that is to change.
pub(crate) fn faults_of_updated_metadata(new: &Value, old: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if is_terminating(old) {
        let known = texts(old, &["metadata", "finalizers"]);
        let mut added = texts(new, &["metadata", "finalizers"]);
        added.retain(|finalizer| !known.contains(finalizer));
        if !added.is_empty() {
            added.sort();
            let reported: Vec<_> = added.iter().map(|name| format!("\"{name}\"")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                reported.join(", ")
            );
            faults.push(Fault::forbidden("metadata.finalizers", &why));
        }
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (new, old) = (at(new, &["metadata", field]), at(old, &["metadata", field]));
        if new != old {
            faults.push(Fault::invalid(format!("metadata.{field}"), new, IMMUTABLE));
        }
    }
    faults.extend(faults_of_maps(new));
    faults
}

fn faults_of_maps(object: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(faults_of_labels(
        at(object, &["metadata", "labels"]),
        "metadata.labels",
    ));
    let mut bytes = 0;
    let annotations = at(object, &["metadata", "annotations"]).as_object();
    for (key, value) in annotations.into_iter().flatten() {
        bytes += key.len() + value.as_str().unwrap_or_default().len();
        faults.extend(faults_of_key(&key.to_lowercase(), "metadata.annotations"));
    }
    if bytes > ANNOTATION_BYTES {
        let why = format!("may not be more than {ANNOTATION_BYTES} bytes");
        faults.push(Fault::invalid("metadata.annotations", &json!(""), &why));
    }
    let finalizers = texts(object, &["metadata", "finalizers"]);
    for (index, finalizer) in finalizers.iter().enumerate() {
        let wrong = faults_of_key(finalizer, "metadata.finalizers");
        if wrong.is_empty() && !finalizer.contains('/') && !is_standard(finalizer) {
            let field = format!("metadata.finalizers[{index}]");
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            faults.push(Fault::invalid(field, &json!(finalizer), why));
        }
        faults.extend(wrong);
    }
    faults
}

fn faults_of_key(key: &str, field: &str) -> Vec<Fault> {
    let reported = LabelName::refuses(key).into_iter();
    reported
        .map(|why| Fault::invalid(field, &json!(key), &why))
        .collect()
}

fn is_standard(finalizer: &str) -> bool {
    matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
}

/// What is wrong with a map of labels, such as those of an object or a selector.
pub(super) fn faults_of_labels(labels: &Value, field: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        faults.extend(faults_of_key(key, field));
        if !LabelName::is_value(value.as_str().unwrap_or_default()) {
            faults.push(Fault::invalid(field, value, BAD_LABEL_VALUE));
        }
    }
    faults
}
