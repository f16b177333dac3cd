//! A change that was carried out.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow many.
    Watch,
    /// Make a new one.
    Create,
    /// Replace one.
    Update,
    /// Change a part of one.
    Patch,
    /// Remove one.
    Delete,
    /// Remove many.
    DeleteCollection,
}

impl Verb {
    /// The name in roles and reviews.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it may change something.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A change that was carried out, and who asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The version that it made.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// When the client sent the request. A request may be on its way for long.
    pub sent_at: Timestamp,
    /// The client that asked.
    pub by: Arc<str>,
    /// What it asked for.
    pub verb: Verb,
    /// The plural name of the resource; events are always `events`.
    pub resource: &'static str,
    /// `status`, if the request was about that.
    pub subresource: Option<String>,
    /// Empty for what is in no namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The object before; `None` if it is new.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` if it is gone.
    pub after: Option<Arc<Value>>,
}

impl Commit {
    /// Where the object is or was kept.
    pub(crate) fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}
