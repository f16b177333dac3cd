//! Namespaces: they have a phase, and a finalizer of their own.

use serde_json::{Value, json};

use super::{Part, Rules, Surroundings, keep_apart};
use crate::object::{copy, is_terminating, put, put_default, text, texts};
use crate::refusal::Fault;

pub(crate) struct Namespaces;

impl Rules for Namespaces {
    fn fill_in(&self, object: &mut Value) {
        put_default(object, &["status", "phase"], "Active");
        let name = text(object, &["metadata", "name"]).to_owned();
        if !name.is_empty() {
            put(
                object,
                &["metadata", "labels", "kubernetes.io/metadata.name"],
                name,
            );
        }
    }

    fn create(&self, new: &mut Value, _around: &mut Surroundings<'_>) -> Result<(), Vec<Fault>> {
        put(new, &["status"], json!({"phase": "Active"}));
        let mut finalizers = texts(new, &["spec", "finalizers"]);
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            finalizers.push("kubernetes".to_owned());
        }
        put(new, &["spec", "finalizers"], finalizers);
        self.fill_in(new);
        Ok(())
    }

    fn update(
        &self,
        part: Part,
        new: &mut Value,
        old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), Vec<Fault>> {
        match part {
            Part::Finalize => copy("status", old, new),
            Part::Status => keep_apart(part, new, old),
            Part::Main => {
                keep_apart(part, new, old);
                copy("spec", old, new);
            }
        }
        Ok(())
    }

    fn faults(&self, part: Part, new: &Value, _old: Option<&Value>) -> Vec<Fault> {
        let phase = text(new, &["status", "phase"]);
        let wanted = if is_terminating(new) {
            "Terminating"
        } else {
            "Active"
        };
        if part == Part::Status && phase != wanted {
            let why = "may only be 'Active' if `deletionTimestamp` is empty";
            return vec![Fault::invalid("status.phase", &json!(phase), why)];
        }
        Vec::new()
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let phase = text(object, &["status", "phase"]).to_owned();
        vec![("status.phase", phase)]
    }
}
