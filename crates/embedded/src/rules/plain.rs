//! Objects that are little more than what was written: config maps, secrets, accounts, roles, Pods.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{Part, Rules, Surroundings, keep_apart};
use crate::object::{at, fields, put, put_default, text};
use crate::refusal::Fault;

/// Nothing of its own.
pub(crate) struct Plain;

impl Rules for Plain {}

/// Config maps: an immutable one stays as it is.
pub(crate) struct ConfigMaps;

impl Rules for ConfigMaps {
    fn faults(&self, _part: Part, new: &Value, old: Option<&Value>) -> Vec<Fault> {
        frozen_faults(&["data", "binaryData"], new, old)
    }
}

/// Secrets: text is taken as data, and the type stays.
pub(crate) struct Secrets;

impl Rules for Secrets {
    fn fill_in(&self, object: &mut Value) {
        put_default(object, &["type"], "Opaque");
        let plain = fields(object).remove("stringData");
        for (key, value) in plain
            .as_ref()
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let encoded = BASE64_STANDARD.encode(value.as_str().unwrap_or_default());
            put(object, &["data", key], encoded);
        }
    }

    fn faults(&self, _part: Part, new: &Value, old: Option<&Value>) -> Vec<Fault> {
        let mut faults = frozen_faults(&["data"], new, old);
        if let Some(old) = old
            && new["type"] != old["type"]
        {
            faults.push(Fault::invalid("type", &new["type"], "field is immutable"));
        }
        faults
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("type", text(object, &["type"]).to_owned())]
    }
}

/// What must not change once `immutable` was said.
fn frozen_faults(parts: &[&str], new: &Value, old: Option<&Value>) -> Vec<Fault> {
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else {
        return Vec::new();
    };
    let why = "field is immutable when `immutable` is set";
    let mut faults = Vec::new();
    if new["immutable"] != json!(true) {
        faults.push(Fault::forbidden("immutable", why));
    }
    for part in parts {
        if new[*part] != old[*part] {
            faults.push(Fault::forbidden(*part, why));
        }
    }
    faults
}

/// Endpoint slices: they count how often what they say changed.
pub(crate) struct EndpointSlices;

impl Rules for EndpointSlices {
    fn create(&self, new: &mut Value, _around: &mut Surroundings<'_>) -> Result<(), Vec<Fault>> {
        put(new, &["metadata", "generation"], 1);
        Ok(())
    }

    fn update(
        &self,
        _part: Part,
        new: &mut Value,
        old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), Vec<Fault>> {
        if ["addressType", "endpoints", "ports"]
            .iter()
            .any(|part| new[*part] != old[*part])
        {
            let before = at(old, &["metadata", "generation"]).as_u64();
            put(
                new,
                &["metadata", "generation"],
                before.unwrap_or_default() + 1,
            );
        }
        Ok(())
    }
}

/// Pods, as far as those of a Node are listed. Nothing runs them.
pub(crate) struct Pods;

impl Rules for Pods {
    fn fill_in(&self, object: &mut Value) {
        put_default(object, &["status", "phase"], "Pending");
        put_default(object, &["spec", "restartPolicy"], "Always");
    }

    fn update(
        &self,
        part: Part,
        new: &mut Value,
        old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), Vec<Fault>> {
        keep_apart(part, new, old);
        Ok(())
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let of = |path: &[&str]| text(object, path).to_owned();
        vec![
            ("spec.nodeName", of(&["spec", "nodeName"])),
            ("spec.restartPolicy", of(&["spec", "restartPolicy"])),
            ("spec.schedulerName", of(&["spec", "schedulerName"])),
            (
                "spec.serviceAccountName",
                of(&["spec", "serviceAccountName"]),
            ),
            ("status.phase", of(&["status", "phase"])),
            ("status.podIP", of(&["status", "podIP"])),
        ]
    }
}
