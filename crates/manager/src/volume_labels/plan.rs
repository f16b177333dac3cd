//! What a PersistentVolume gets from the place of its disk. Pure.

use cloudkeel_api::{PatchOperation, VolumePlace};
use serde_json::{Map, Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// What a volume carries that a provisioner has made.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Upstream joins the zones of a replicated disk like this in its label.
const ZONE_SEPARATOR: &str = "__";

/// Sources that are never disks of a cloud.
const OF_NO_CLOUD: [&str; 6] = ["hostPath", "local", "nfs", "iscsi", "fc", "rbd"];

/// Whether a volume has all that it could get.
pub(super) fn is_complete(volume: &Value) -> bool {
    let has = |key| label(volume, key).is_some();
    has(ZONE) && has(REGION) && names_topology(&required_terms(volume))
}

/// Whether a provisioner has made the volume and its disk.
pub(super) fn is_provisioned(volume: &Value) -> bool {
    let annotation = volume.pointer("/metadata/annotations");
    annotation.is_some_and(|all| all.get(PROVISIONED_BY).is_some())
}

/// Whether the source of a volume may be a disk of a cloud.
pub(super) fn may_be_of_a_cloud(volume: &Value) -> bool {
    let spec = volume.get("spec").and_then(Value::as_object);
    spec.is_some_and(|spec| !OF_NO_CLOUD.iter().any(|source| spec.contains_key(*source)))
}

/// As upstream: the labels say what the cloud says, whatever they said before, because they are its own; every term of
/// the node affinity requires them, unless one names the topology already.
pub(super) fn patch(volume: &Value, place: &VolumePlace) -> Vec<PatchOperation> {
    let found = [(ZONE, place.zone_label()), (REGION, place.region.clone())];
    let found: Vec<_> = found
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    let changed: Vec<_> = found
        .iter()
        .filter(|(key, value)| label(volume, key) != Some(value.as_str()))
        .collect();
    let mut patch = Vec::new();
    if !changed.is_empty()
        && volume
            .pointer("/metadata/labels")
            .is_none_or(Value::is_null)
    {
        patch.push(add("/metadata/labels", json!({})));
    }
    for (key, value) in changed {
        let path = format!("/metadata/labels/{}", key.replace('/', "~1"));
        patch.push(add(&path, json!(value)));
    }
    patch.extend(affinity(volume, &found));
    patch
}

fn affinity(volume: &Value, found: &[(&str, String)]) -> Option<PatchOperation> {
    let mut terms = required_terms(volume);
    if found.is_empty() || names_topology(&terms) {
        return None;
    }
    if terms.is_empty() {
        terms.push(json!({}));
    }
    for term in &mut terms {
        let term = term.as_object_mut()?;
        let expressions = term.entry("matchExpressions").or_insert_with(|| json!([]));
        let required = found.iter().map(|(key, value)| requirement(key, value));
        match expressions {
            Value::Array(expressions) => expressions.extend(required),
            other => *other = required.collect(),
        }
    }
    let mut affinity = match volume.pointer("/spec/nodeAffinity") {
        Some(Value::Object(affinity)) => affinity.clone(),
        _ => Map::new(),
    };
    affinity.insert("required".to_owned(), json!({"nodeSelectorTerms": terms}));
    Some(add("/spec/nodeAffinity", Value::Object(affinity)))
}

fn requirement(key: &str, value: &str) -> Value {
    let values: Vec<_> = value.split(ZONE_SEPARATOR).collect();
    json!({"key": key, "operator": "In", "values": values})
}

fn required_terms(volume: &Value) -> Vec<Value> {
    let terms = volume.pointer("/spec/nodeAffinity/required/nodeSelectorTerms");
    terms.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Whether a term has a requirement of the zone or the region.
fn names_topology(terms: &[Value]) -> bool {
    let expressions = terms
        .iter()
        .filter_map(|term| term.get("matchExpressions")?.as_array())
        .flatten();
    let mut keys = expressions.filter_map(|expression| expression.get("key")?.as_str());
    keys.any(|key| key == ZONE || key == REGION)
}

fn label<'a>(volume: &'a Value, key: &str) -> Option<&'a str> {
    volume.pointer("/metadata/labels")?.get(key)?.as_str()
}

fn add(path: &str, value: Value) -> PatchOperation {
    PatchOperation::Add {
        path: path.to_owned(),
        value,
    }
}
