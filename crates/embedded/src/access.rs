//! Who asks, and whether they may.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::request::Target;
use crate::store::Verb;

/// A bearer token that cannot be guessed, not even from the seed.
pub(crate) fn new_token() -> String {
    Uuid::new_v4().simple().to_string()
}

/// A user whom the API knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the user; for a client in process, the name of the client.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Identity {
    /// An administrator of this name.
    pub fn admin(name: impl Into<String>) -> Self {
        Self::new(name, &["system:masters"])
    }

    /// A user in these groups, besides the one of all who are known.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        let all = ["system:authenticated"];
        let groups = groups.iter().chain(&all);
        Self {
            name: name.into(),
            groups: groups.map(|group| (*group).to_owned()).collect(),
        }
    }

    /// The user that a service account is.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let everywhere = "system:serviceaccounts";
        let here = format!("system:serviceaccounts:{namespace}");
        Self::new(
            format!("system:serviceaccount:{namespace}:{name}"),
            &[everywhere, &here],
        )
    }

    pub(crate) fn user_info(&self) -> Value {
        json!({"username": self.name, "groups": self.groups})
    }
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// The verb as roles spell it.
    pub verb: String,
    /// The group of the resource; empty for the core.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// A part of it, such as `status`; empty for the object itself.
    pub subresource: String,
    /// Empty for all of them.
    pub namespace: String,
    /// Empty for all of them.
    pub name: String,
}

impl Attributes {
    pub(crate) fn new(verb: Verb, target: &Target) -> Self {
        Self {
            verb: verb.as_str().to_owned(),
            group: target.kind.group.to_owned(),
            resource: target.kind.plural.to_owned(),
            subresource: target.subresource.clone().unwrap_or_default(),
            namespace: target.namespace().to_owned(),
            name: target.name().to_owned(),
        }
    }

    /// What a review asks about.
    pub(crate) fn of_review(attributes: &Value) -> Self {
        let of = |key: &str| attributes[key].as_str().unwrap_or_default().to_owned();
        Self {
            verb: of("verb"),
            group: of("group"),
            resource: of("resource"),
            subresource: of("subresource"),
            namespace: of("namespace"),
            name: of("name"),
        }
    }
}

/// Decides who may do what. There is no engine for roles here: roles are kept but not enforced.
pub trait Authorizer: Send + Sync {
    /// Whether a user may do something.
    fn allows(&self, who: &Identity, what: &Attributes) -> bool;
}

/// Allows everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn allows(&self, _who: &Identity, _what: &Attributes) -> bool {
        true
    }
}
