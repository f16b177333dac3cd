//! Events of the core group, which is also how events are stored.

use serde_json::{Value, json};

use super::{Part, Rules};
use crate::object::{at, put, text};
use crate::refusal::Fault;

pub(crate) struct Events;

impl Rules for Events {
    fn fill_in(&self, object: &mut Value) {
        for part in ["involvedObject", "source"] {
            if object[part].is_null() {
                put(object, &[part], json!({}));
            }
        }
        for part in ["reportingComponent", "reportingInstance"] {
            if object[part].is_null() {
                put(object, &[part], "");
            }
        }
    }

    fn faults(&self, _part: Part, new: &Value, _old: Option<&Value>) -> Vec<Fault> {
        faults_of_event(new, "reportingComponent")
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let of = |path: &[&str]| text(object, path).to_owned();
        let source = match text(object, &["source", "component"]) {
            "" => of(&["reportingComponent"]),
            component => component.to_owned(),
        };
        vec![
            ("involvedObject.kind", of(&["involvedObject", "kind"])),
            (
                "involvedObject.namespace",
                of(&["involvedObject", "namespace"]),
            ),
            ("involvedObject.name", of(&["involvedObject", "name"])),
            ("involvedObject.uid", of(&["involvedObject", "uid"])),
            (
                "involvedObject.apiVersion",
                of(&["involvedObject", "apiVersion"]),
            ),
            (
                "involvedObject.resourceVersion",
                of(&["involvedObject", "resourceVersion"]),
            ),
            (
                "involvedObject.fieldPath",
                of(&["involvedObject", "fieldPath"]),
            ),
            ("reason", of(&["reason"])),
            ("reportingComponent", of(&["reportingComponent"])),
            ("source", source),
            ("type", of(&["type"])),
        ]
    }
}

/// What is wrong with an event: an old one must be in the namespace of what it is about, a new one must name
/// its reporter and the action.
pub(super) fn faults_of_event(event: &Value, reporter: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let home = text(event, &["metadata", "namespace"]);
    let subject = at(event, &["involvedObject", "namespace"]);
    let elsewhere = || {
        let reported = json!(subject.as_str().unwrap_or_default());
        Fault::invalid(
            "involvedObject.namespace",
            &reported,
            "does not match event.namespace",
        )
    };
    let has_subject = !text(event, &["involvedObject", "namespace"]).is_empty();
    if event["eventTime"].is_null() {
        let wanted = if has_subject {
            subject.as_str()
        } else {
            Some("default")
        };
        if Some(home) != wanted {
            faults.push(elsewhere());
        }
        return faults;
    }
    if !has_subject && !matches!(home, "default" | "kube-system") {
        faults.push(elsewhere());
    }
    for (field, reported) in [
        ("reportingComponent", reporter),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ] {
        let value = text(event, &[field]);
        if value.is_empty() {
            faults.push(Fault::required(reported, ""));
        } else if value.len() > 128 {
            let why = "can have at most 128 characters";
            faults.push(Fault::invalid(reported, &json!(""), why));
        }
    }
    if text(event, &["message"]).len() > 1024 {
        let why = "can have at most 1024 characters";
        faults.push(Fault::invalid("message", &json!(""), why));
    }
    faults
}
