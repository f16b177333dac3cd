//! Which resources there are, and how each of them behaves.

mod names;
mod table;
mod typed;

use serde_json::{Value, json};

pub(crate) use names::{LabelName, NameRule};
pub(crate) use table::KINDS;

use crate::refusal::Refusal;
use crate::rules::Rules;

/// One resource of the API.
#[expect(clippy::struct_field_names, reason = "`kind` is what the API calls it")]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) short: &'static [&'static str],
    pub(crate) namespaced: bool,
    /// Where its objects are kept; two resources with the same are views of one.
    pub(crate) storage: &'static str,
    pub(crate) subresources: &'static [&'static str],
    /// A PUT to a name that is free creates.
    pub(crate) create_on_update: bool,
    /// A PUT without a version overwrites.
    pub(crate) unconditional_update: bool,
    /// A deletion answers with the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    pub(crate) names: NameRule,
    /// The object as its Go type would write it down again.
    pub(crate) retype: fn(&Value) -> serde_json::Result<Value>,
    pub(crate) rules: &'static dyn Rules,
}

impl Kind {
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// The resource that a kind of stored objects is first of all.
    pub(crate) fn stored(storage: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.storage == storage)
    }

    /// Whether all of them may be removed at once. The API server does not do that to namespaces.
    pub(crate) fn deletes_collections(&self) -> bool {
        self.storage != "namespaces"
    }

    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `leases.coordination.k8s.io`
    pub(crate) fn qualified_plural(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// `Lease.coordination.k8s.io`
    pub(crate) fn qualified_kind(&self) -> String {
        qualified(self.kind, self.group)
    }

    /// What a `Status` says about one object.
    pub(crate) fn details(&self, name: &str, kind: &str) -> Value {
        let mut details = json!({"kind": kind});
        if !name.is_empty() {
            crate::object::put(&mut details, &["name"], name);
        }
        if !self.group.is_empty() {
            crate::object::put(&mut details, &["group"], self.group);
        }
        details
    }

    /// Where an object of this kind is kept.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        }
    }

    /// An object as it would come back from the Go type, and the paths of what its type does not have. Wrong types
    /// are refused.
    pub(crate) fn canonical(&self, mut object: Value) -> Result<(Value, Vec<String>), Refusal> {
        typed::drop_nulls(&mut object);
        if let Some(why) = typed::misread_moment(&object) {
            return Err(self.unreadable(&why));
        }
        let mut typed =
            (self.retype)(&object).map_err(|error| self.unreadable(&error.to_string()))?;
        let unknown = typed::missing(&object, &typed);
        typed::drop_empty(&mut typed);
        Ok((typed, unknown))
    }

    /// 400 for an object that is not of this kind.
    pub(crate) fn unreadable(&self, why: &str) -> Refusal {
        let (kind, version) = (self.kind, self.version);
        Refusal::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
    }
}

fn qualified(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}
