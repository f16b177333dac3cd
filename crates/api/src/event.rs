//! Events on Nodes and Services.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::{NodeFacts, ServiceRef, Shared};

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// A Node.
    Node {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// A Service.
    Service(ServiceRef),
}

impl From<&Shared<NodeFacts>> for Subject {
    fn from(node: &Shared<NodeFacts>) -> Self {
        Self::from(&**node)
    }
}

impl From<&NodeFacts> for Subject {
    fn from(node: &NodeFacts) -> Self {
        Self::Node {
            name: node.name.clone(),
            uid: node.uid.clone(),
        }
    }
}

impl From<&ServiceRef> for Subject {
    fn from(service: &ServiceRef) -> Self {
        Self::Service(service.clone())
    }
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Severity {
    /// `Normal`
    Normal,
    /// `Warning`
    Warning,
}

/// An event about a Node or a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The object.
    pub subject: Subject,
    /// The type.
    pub severity: Severity,
    /// The reason: a stable word in `CamelCase`, which alerts and scripts match on.
    pub reason: Cow<'static, str>,
    /// The message: one sentence with the cause and, if there is one, the next retry.
    pub message: String,
}

impl Event {
    /// A `Normal` event.
    pub fn normal(
        subject: impl Into<Subject>,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            severity: Severity::Normal,
            reason: Cow::Borrowed(reason),
            message: message.into(),
        }
    }

    /// A `Warning` event.
    pub fn warning(
        subject: impl Into<Subject>,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(subject, reason, message)
        }
    }
}

/// Takes events. Never blocks and never fails: the writer merges repeats and drops the overflow.
pub trait EventSink: Send + Sync {
    /// Records an event.
    fn emit(&self, event: Event);
}

/// A sink shared by all parts of a provider.
pub type SharedEvents = Arc<dyn EventSink>;

/// Drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _event: Event) {}
}

/// Keeps events in memory, for tests and for `plan`, which shows what would be recorded.
#[derive(Debug, Default)]
pub struct CollectedEvents(Mutex<Vec<Event>>);

impl CollectedEvents {
    /// Returns all events so far and forgets them.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl EventSink for CollectedEvents {
    fn emit(&self, event: Event) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event);
    }
}
