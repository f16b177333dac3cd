//! Events: where users look first.

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

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Severity {
    /// For the record.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something worth telling about a Node or a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// About what.
    pub subject: Subject,
    /// How much it matters.
    pub severity: Severity,
    /// A stable word in `CamelCase`, which alerts and scripts match on.
    pub reason: Cow<'static, str>,
    /// A sentence with the cause and, if there is one, the next retry.
    pub message: String,
}

impl Event {
    /// For the record.
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

    /// Somebody should look.
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

/// Takes events. Never blocks and never fails: repeats are merged and the overflow is dropped by
/// the one who writes them to the cluster.
pub trait EventSink: Send + Sync {
    /// Tells.
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

/// Keeps events in memory, for tests and for `plan`, which shows what would be told.
#[derive(Debug, Default)]
pub struct CollectedEvents(Mutex<Vec<Event>>);

impl CollectedEvents {
    /// Everything told so far, which is then forgotten.
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
