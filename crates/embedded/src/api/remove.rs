//! Deleting objects, and what follows from it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::state::{Author, State};
use crate::kinds::{KINDS, Kind};
use crate::object::{
    has_finalizers, is_terminating, name, namespace, put, resource_version, text, uid,
};
use crate::refusal::Refusal;
use crate::store::Verb;

/// What a deletion insists on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    uid: String,
    resource_version: String,
}

impl Conditions {
    pub(crate) fn of(options: &Value) -> Self {
        let of = |key: &str| text(options, &["preconditions", key]).to_owned();
        Self {
            uid: of("uid"),
            resource_version: of("resourceVersion"),
        }
    }

    fn check(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let (wanted, present) = (&self.uid, uid(object));
        if !wanted.is_empty() && wanted != present {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({present}). The object might have been deleted and then recreated"
            );
            return Err(Refusal::unmet(kind, name(object), &why));
        }
        let (wanted, present) = (&self.resource_version, resource_version(object));
        if !wanted.is_empty() && wanted != present {
            let why = format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({present}). The object might have been modified"
            );
            return Err(Refusal::unmet(kind, name(object), &why));
        }
        Ok(())
    }
}

/// What a deletion came to.
pub(crate) enum Removed {
    /// It is gone; this is what it was.
    Gone(Value),
    /// It waits for its finalizers.
    Waiting(Arc<Value>),
}

impl State {
    /// Deletes an object, or sets its deletion timestamp if finalizers are left.
    pub(crate) fn delete(
        &mut self,
        kind: &Kind,
        key: &str,
        conditions: &Conditions,
        author: &Author,
    ) -> Result<Removed, Refusal> {
        let Some(object) = self.store.get(kind.storage, key).cloned() else {
            let name = key.rsplit('/').next().unwrap_or_default();
            return Err(Refusal::not_found(kind, name));
        };
        conditions.check(kind, &object)?;
        if !has_finalizers(&object) {
            let gone = self.erase(kind, &object, author);
            self.after_removal(kind, &object, author);
            return Ok(Removed::Gone(gone));
        }
        if is_terminating(&object) {
            return Ok(Removed::Waiting(object));
        }
        let mut marked = (*object).clone();
        put(
            &mut marked,
            &["metadata", "deletionTimestamp"],
            author.time(),
        );
        if kind.storage == "namespaces" {
            put(&mut marked, &["status", "phase"], "Terminating");
        } else {
            put(&mut marked, &["metadata", "deletionGracePeriodSeconds"], 0);
        }
        let marked = self.write(kind, marked, author);
        if kind.storage == "namespaces" {
            self.empty_namespace(name(&marked), author);
        }
        Ok(Removed::Waiting(marked))
    }

    /// What the API server and the namespace controller do when an object is gone.
    pub(crate) fn after_removal(&mut self, kind: &Kind, object: &Value, author: &Author) {
        if author.dry_run || !kind.namespaced {
            return;
        }
        let home = namespace(object);
        if kind.storage == "services"
            && let Some(endpoints) = Kind::stored("endpoints")
            && let Some(old) = self
                .store
                .get("endpoints", &endpoints.key(home, name(object)))
                .cloned()
        {
            self.erase(endpoints, &old, author);
        }
        if self
            .store
            .get("namespaces", home)
            .is_some_and(|home| is_terminating(home))
        {
            self.close_namespace(home, author);
        }
    }

    /// Deletes everything in a namespace that is to go, as the namespace controller would.
    fn empty_namespace(&mut self, home: &str, author: &Author) {
        if author.dry_run {
            return;
        }
        let by_itself = Author::internal("namespace-controller", Verb::Delete, author.at);
        for kind in primary_kinds() {
            let prefix = format!("{home}/");
            let keys: Vec<_> = self
                .store
                .under(kind.storage, &prefix)
                .map(|object| kind.key(home, name(object)))
                .collect();
            for key in keys {
                // It may be gone with another, which is what is wanted.
                let _ = self.delete(kind, &key, &Conditions::default(), &by_itself);
            }
        }
        self.close_namespace(home, author);
    }

    /// Removes a namespace that is to go and empty.
    fn close_namespace(&mut self, home: &str, author: &Author) {
        let prefix = format!("{home}/");
        let is_empty =
            primary_kinds().all(|kind| self.store.under(kind.storage, &prefix).next().is_none());
        let Some(kind) = Kind::stored("namespaces") else {
            return;
        };
        if let Some(namespace) = self.store.get("namespaces", home).cloned()
            && is_empty
        {
            let by_itself = Author::internal("namespace-controller", Verb::Delete, author.at);
            self.erase(kind, &namespace, &by_itself);
        }
    }
}

/// One resource for each kind of objects in namespaces.
fn primary_kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| {
        kind.namespaced
            && Kind::stored(kind.storage).is_some_and(|first| std::ptr::eq(first, *kind))
    })
}

/// The answer to a deletion of a kind that does not show what it was.
pub(crate) fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = kind.details(name(object), kind.plural);
    put(&mut details, &["uid"], uid(object));
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
