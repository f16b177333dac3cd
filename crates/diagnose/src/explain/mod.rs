//! The story of one object: whose it is and why, what the cloud has, what differs, and what happens next.

mod deletion;
mod node;
mod service;

use serde::Serialize;

pub use deletion::{Condition, Met};
pub use node::explain_node;
pub use service::explain_service;

use crate::finding::Finding;
use crate::snapshot::{EventState, Snapshot};
use crate::text::age;

/// The latest Events are enough.
const MOST_EVENTS: usize = 10;

/// The story of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Such as `Node web-1`.
    pub object: String,
    /// What is known, by topic.
    pub sections: Vec<Section>,
    /// The conditions of a deletion, with this Node's values; empty where there is no question of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletion: Vec<Condition>,
    /// What the controllers do next.
    pub next: NextStep,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// Recent Events, the latest first.
    pub events: Vec<String>,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What is known, in one sentence each.
    pub lines: Vec<String>,
}

impl Section {
    const fn new(title: &'static str, lines: Vec<String>) -> Self {
        Self { title, lines }
    }
}

/// What the controllers do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextStep {
    /// What.
    pub what: String,
    /// When, if anything is going to happen by itself.
    pub when: Option<String>,
}

impl NextStep {
    fn new(what: impl Into<String>, when: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            when: Some(when.into()),
        }
    }

    fn never(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            when: None,
        }
    }
}

/// Nothing happens without a leader, whatever would be next.
fn unless_led(snapshot: &Snapshot, next: NextStep) -> NextStep {
    let is_led = snapshot
        .lease()
        .is_some_and(|lease| lease.is_fresh(snapshot.now));
    if is_led || !snapshot.settings.elects || snapshot.leases.is_err() {
        return next;
    }
    let lease = &snapshot.settings.lease;
    NextStep::never(format!(
        "nothing: no replica holds the lease {lease}. A leader would: {}",
        next.what
    ))
}

fn events_about(snapshot: &Snapshot, kind: &str, namespace: &str, name: &str) -> Vec<String> {
    let events = snapshot.events.as_deref().unwrap_or_default().iter();
    let mut events: Vec<&EventState> = events
        .filter(|event| event.is_about(kind, namespace, name))
        .collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.last));
    let line = |event: &&EventState| {
        let times = match event.count {
            0 | 1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let ago = age(event.last, snapshot.now);
        format!("{ago} ago{times}  {}: {}", event.reason, event.message)
    };
    events.iter().take(MOST_EVENTS).map(line).collect()
}

#[cfg(test)]
mod tests;
