//! Creating and changing objects.

use std::sync::Arc;

use serde_json::Value;

use super::state::{Author, State};
use crate::kinds::Kind;
use crate::object::{
    copy, fields, has_finalizers, is_terminating, is_unset, name, namespace, put, resource_version,
    text, uid,
};
use crate::refusal::{Fault, Refusal};
use crate::request::{FieldValidation, Target};
use crate::rules::{Part, faults_of_new_metadata, faults_of_updated_metadata};

/// What a request wants an object to be: an object, or a change of the one that is there.
pub(crate) type DesiredState<'a> = &'a mut dyn FnMut(&Value) -> Result<Value, Refusal>;

/// Reads an object of a request as its kind; the second are warnings.
pub(crate) fn decode(
    kind: &Kind,
    body: Value,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Refusal> {
    let expected = kind.api_version();
    for (field, expected) in [("apiVersion", expected.as_str()), ("kind", kind.kind)] {
        let given = text(&body, &[field]);
        if !given.is_empty() && given != expected {
            return Err(Refusal::bad_request(format!(
                "the {field} in the data ({given}) does not match the expected {field} ({expected})"
            )));
        }
    }
    let (object, unknown) = kind.canonical(body)?;
    let unknown = unknown.into_iter();
    let mut warnings: Vec<_> = unknown
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    match validation {
        FieldValidation::Ignore => warnings.clear(),
        FieldValidation::Strict if !warnings.is_empty() => {
            let why = format!("strict decoding error: {}", warnings.join(", "));
            return Err(kind.unreadable(&why));
        }
        FieldValidation::Strict | FieldValidation::Warn => {}
    }
    let mut object = kind.rules.stored(object);
    kind.rules.fill_in(&mut object);
    put(&mut object, &["metadata", "selfLink"], Value::Null);
    Ok((object, warnings))
}

/// The name and namespace of an object are those of the path, or are left out.
fn match_path(
    object: &mut Value,
    target_namespace: &str,
    target_name: Option<&str>,
) -> Result<(), Refusal> {
    let given = namespace(object).to_owned();
    if given.is_empty() && !target_namespace.is_empty() {
        put(object, &["metadata", "namespace"], target_namespace);
    } else if given != target_namespace {
        return Err(Refusal::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request ({given} and {target_namespace})"
        )));
    }
    let given = name(object);
    match target_name {
        Some(wanted) if given.is_empty() => put(object, &["metadata", "name"], wanted),
        Some(wanted) if given != wanted => {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({wanted})"
            )));
        }
        _ => {}
    }
    Ok(())
}

impl State {
    /// Makes a new object of what a request brought.
    pub(crate) fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        body: Value,
        author: &Author,
    ) -> Result<Arc<Value>, Refusal> {
        let (object, _) = decode(kind, body, FieldValidation::Ignore)?;
        self.create_decoded(kind, namespace, None, object, author)
    }

    pub(crate) fn create_decoded(
        &mut self,
        kind: &Kind,
        namespace: &str,
        on_path: Option<&str>,
        mut object: Value,
        author: &Author,
    ) -> Result<Arc<Value>, Refusal> {
        match_path(&mut object, namespace, on_path)?;
        self.check_namespace(kind, &object)?;
        if !resource_version(&object).is_empty() {
            return Err(Refusal::versioned());
        }
        self.begin_life(&mut object, author);
        let rules = kind.rules;
        rules
            .create(&mut object, &mut self.surroundings())
            .map_err(|faults| Refusal::invalid(kind, name(&object), &faults))?;
        let mut faults = faults_of_new_metadata(kind, &object);
        faults.extend(rules.faults(Part::Main, &object, None));
        if !faults.is_empty() {
            return Err(Refusal::invalid(kind, name(&object), &faults));
        }
        let key = kind.key(namespace, name(&object));
        if let Some(known) = self.store.get(kind.storage, &key) {
            return Err(Refusal::already_exists(
                kind,
                name(&object),
                is_terminating(known),
            ));
        }
        Ok(self.write(kind, object, author))
    }

    /// A namespaced object needs its namespace, and one that stays.
    fn check_namespace(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let (Some(namespaces), true) = (Kind::stored("namespaces"), kind.namespaced) else {
            return Ok(());
        };
        let wanted = namespace(object);
        let Some(home) = self.store.get("namespaces", wanted) else {
            return Err(Refusal::not_found(namespaces, wanted));
        };
        if is_terminating(home) {
            let why = format!(
                "unable to create new content in namespace {wanted} because it is being terminated"
            );
            let reported = format!("namespace {wanted} is being terminated");
            return Err(Refusal::forbidden_on(kind, name(object), &why).with_cause(
                "NamespaceTerminating",
                &reported,
                "metadata.namespace",
            ));
        }
        Ok(())
    }

    fn begin_life(&mut self, object: &mut Value, author: &Author) {
        let start = text(object, &["metadata", "generateName"]).to_owned();
        if name(object).is_empty() && !start.is_empty() {
            put(object, &["metadata", "name"], self.generator.name(&start));
        }
        put(object, &["metadata", "uid"], self.generator.uid());
        put(object, &["metadata", "creationTimestamp"], author.time());
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "managedFields",
        ] {
            put(object, &["metadata", field], Value::Null);
        }
    }

    /// Changes an object into its desired state. Both are in the stored form.
    pub(crate) fn update(
        &mut self,
        target: &Target,
        author: &Author,
        desired: DesiredState<'_>,
    ) -> Result<Arc<Value>, Refusal> {
        let kind = target.kind;
        let Some(old) = self.store.get(kind.storage, &target.key()).cloned() else {
            return Err(Refusal::not_found(kind, target.name()));
        };
        let mut new = desired(&old)?;
        match_path(&mut new, target.namespace(), target.name.as_deref())?;
        check_version(kind, &mut new, &old)?;
        let part = match target.subresource.as_deref() {
            Some("status") => Part::Status,
            Some("finalize") => Part::Finalize,
            _ => Part::Main,
        };
        inherit_metadata(&mut new, &old);
        let invalid = |faults: &[Fault]| Refusal::invalid(kind, name(&old), faults);
        kind.rules
            .update(part, &mut new, &old, &mut self.surroundings())
            .map_err(|faults| invalid(&faults))?;
        let mut faults = faults_of_updated_metadata(&new, &old);
        faults.extend(kind.rules.faults(part, &new, Some(&old)));
        if !faults.is_empty() {
            return Err(invalid(&faults));
        }
        if new == *old {
            return Ok(old);
        }
        if is_terminating(&new) && !has_finalizers(&new) {
            self.erase(kind, &new, author);
            self.after_removal(kind, &new, author);
            return Ok(Arc::new(new));
        }
        Ok(self.write(kind, new, author))
    }
}

/// A request that names a version means that one and no other.
fn check_version(kind: &Kind, new: &mut Value, old: &Value) -> Result<(), Refusal> {
    let (given, present) = (resource_version(new), resource_version(old));
    if given.is_empty() {
        if !kind.unconditional_update {
            return Err(Refusal::unversioned(kind, name(old)));
        }
        put(new, &["metadata", "resourceVersion"], present);
    } else if given != present {
        return Err(Refusal::modified(kind, name(old)));
    }
    Ok(())
}

/// A request that names a UID means that object and not another of its name.
pub(crate) fn check_uid(kind: &Kind, wanted: &str, object: &Value) -> Result<(), Refusal> {
    let present = uid(object);
    if wanted.is_empty() || wanted == present {
        return Ok(());
    }
    let why = format!(
        "Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
    );
    Err(Refusal::conflict_on(kind, name(object), &why))
}

/// What a change cannot take away from the metadata.
fn inherit_metadata(new: &mut Value, old: &Value) {
    let (metadata, old) = (crate::object::child(new, "metadata"), &old["metadata"]);
    for field in ["creationTimestamp", "generation"] {
        copy(field, old, metadata);
    }
    if !old["deletionTimestamp"].is_null() {
        copy("deletionTimestamp", old, metadata);
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if is_unset(&metadata[field]) {
            copy(field, old, metadata);
        }
    }
    fields(metadata).remove("managedFields");
}
