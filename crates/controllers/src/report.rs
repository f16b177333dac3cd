//! What the controllers report about themselves, for `/status` and the page.

pub(crate) mod balancers;
pub(crate) mod routes;
mod status;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::runtime::Cache;
use crate::view::View;

pub use status::{
    BalancerReport, BalancerState, HealthReport, ManagedResources, RouteReport, RouteUse,
    TargetReport, TargetUse, WaitingNode,
};

/// The state of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    /// Its queue.
    pub queue: QueueReport,
    /// What it waits for, for people; at most [`MOST_NAMED`](Self::MOST_NAMED) of a kind.
    pub waits_for: Vec<String>,
    /// Deletions of Nodes, by cloud. Only the lifecycle controller has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<DeletionReport>,
    /// Nodes that are deleted soon. Only the lifecycle controller has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_deletions: Vec<PendingDeletion>,
    /// What it has made in the clouds and what waits, without asking them. `/status` shows it for all controllers at
    /// once.
    #[serde(skip)]
    pub managed: ManagedResources,
}

impl ControllerReport {
    /// Of many, so many are named and the rest is counted.
    pub const MOST_NAMED: usize = 10;

    /// A controller that waits for these things; of many, the first are named and the rest is counted.
    pub(crate) fn new(queue: QueueReport, waits_for: impl IntoIterator<Item = String>) -> Self {
        let mut waits_for: Vec<_> = waits_for.into_iter().collect();
        let more = truncate(&mut waits_for, Self::MOST_NAMED);
        waits_for.extend((more > 0).then(|| format!("and {more} more")));
        Self {
            queue,
            waits_for,
            ..Self::default()
        }
    }

    /// The same for one that waits for a first list besides, until that is here.
    pub(crate) fn after_first_list<V: View>(mut self, of: &Cache<V>) -> Self {
        if !of.has_synced() {
            let first = format!("the first list of {}", V::KIND);
            self.waits_for.insert(0, first);
        }
        self
    }
}

/// Keeps the first of many, and says how many more there were.
pub(crate) fn truncate<T>(list: &mut Vec<T>, most: usize) -> usize {
    let more = list.len().saturating_sub(most);
    list.truncate(most);
    more
}

/// A Node whose instance was not found, and that is deleted if nothing speaks against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingDeletion {
    /// The Node.
    pub node: String,
    /// How many more look-ups have to confirm that the instance is gone; none if only its turn is left to wait for.
    pub confirmations: u32,
}

/// The state of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueReport {
    /// Keys that can be worked on now.
    pub ready: usize,
    /// Keys that are being worked on.
    pub working: usize,
    /// Keys that wait for a retry.
    pub delayed: usize,
    /// How often work on a key panicked, since this process leads.
    pub panics: u64,
    /// The key of the last of them, and what it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_panic: Option<String>,
}

/// The state of deletions of a cloud's Nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    /// The cloud.
    pub cloud: String,
    /// Why none is deleted, if that is so.
    pub stopped: Option<StopReport>,
    /// How many may be deleted, and when.
    #[serde(rename = "pace")]
    pub limiter: LimiterReport,
}

/// Why deletions are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StopReport {
    /// What contradicts what.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// What the operator can do about it.
    pub what_to_do: &'static str,
}

/// The state of the deletion limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimiterReport {
    /// The burst.
    pub burst: u64,
    /// How many may be deleted now.
    pub left: u64,
    /// How many wait.
    pub waiting: usize,
    /// Seconds between two deletions after the burst.
    #[serde(rename = "intervalSeconds", serialize_with = "seconds")]
    pub interval: Duration,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_things_the_first_are_named_and_the_rest_is_counted() {
        let waits_for = (0..13).map(|number| format!("n{number}"));
        let report = ControllerReport::new(QueueReport::default(), waits_for);
        assert_eq!(report.waits_for.len(), 11);
        assert_eq!(report.waits_for.last().unwrap(), "and 3 more");
    }
}
