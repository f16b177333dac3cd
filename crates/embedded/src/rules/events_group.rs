//! Events of their own group: another view of the same objects.

use serde_json::{Value, json};

use super::event::faults_of_event;
use super::{Events, Part, Rules};
use crate::object::{fields, put, text};
use crate::refusal::Fault;

pub(crate) struct EventsOfTheirGroup;

/// How fields are called in the group and in the core.
const FIELDS: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

impl Rules for EventsOfTheirGroup {
    fn fill_in(&self, object: &mut Value) {
        Events.fill_in(object);
    }

    fn faults(&self, _part: Part, new: &Value, old: Option<&Value>) -> Vec<Fault> {
        let mut faults = faults_of_event(new, "reportingController");
        match old {
            None => faults.extend(faults_of_new(new)),
            Some(old) => faults.extend(faults_of_change(new, old)),
        }
        faults
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let of = |path: &[&str]| text(object, path).to_owned();
        vec![
            ("regarding.kind", of(&["involvedObject", "kind"])),
            ("regarding.namespace", of(&["involvedObject", "namespace"])),
            ("regarding.name", of(&["involvedObject", "name"])),
            ("regarding.uid", of(&["involvedObject", "uid"])),
            ("reason", of(&["reason"])),
            ("reportingController", of(&["reportingComponent"])),
            ("type", of(&["type"])),
        ]
    }

    fn stored(&self, mut object: Value) -> Value {
        rename(&mut object, FIELDS.iter().copied());
        put(&mut object, &["apiVersion"], "v1");
        object
    }

    fn shown(&self, object: &Value) -> Value {
        let mut object = object.clone();
        rename(
            &mut object,
            FIELDS.iter().map(|(group, core)| (*core, *group)),
        );
        put(&mut object, &["apiVersion"], "events.k8s.io/v1");
        let fields = fields(&mut object);
        fields.retain(|key, value| !(key.starts_with("reporting") && value == ""));
        object
    }
}

fn rename(object: &mut Value, names: impl Iterator<Item = (&'static str, &'static str)>) {
    let fields = fields(object);
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

fn faults_of_new(event: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if event["eventTime"].is_null() {
        faults.push(Fault::required("eventTime", ""));
    }
    let kind = text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        faults.push(Fault::invalid("type", &json!(""), &why));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count"] {
        if !event[field].is_null() {
            faults.push(Fault::invalid(field, &json!(""), "needs to be unset"));
        }
    }
    if !text(event, &["source", "component"]).is_empty() {
        faults.push(Fault::invalid("source", &json!(""), "needs to be unset"));
    }
    faults
}

fn faults_of_change(new: &Value, old: &Value) -> Vec<Fault> {
    let fields = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "count",
        "type",
        "action",
    ];
    let changed = fields.iter().filter(|field| new[**field] != old[**field]);
    changed
        .map(|field| Fault::invalid(*field, &new[*field], "field is immutable"))
        .collect()
}
