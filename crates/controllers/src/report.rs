//! What a controller tells about itself to people who ask.

pub(crate) mod balancers;
mod holdings;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

pub use holdings::{
    BalancerReport, BalancerState, Holdings, RouteReport, RouteUse, TargetReport, TargetUse,
    WaitingNode,
};

/// How a controller stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    /// Its queue.
    pub queue: QueueReport,
    /// What it waits for, for people; at most [`MOST_NAMED`](Self::MOST_NAMED) of a kind.
    pub waits_for: Vec<String>,
    /// How deletions stand, by cloud. Only the lifecycle controller has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<DeletionReport>,
}

impl ControllerReport {
    /// Of many things that are waited for, so many are named and the rest is counted.
    pub const MOST_NAMED: usize = 10;

    /// Adds what is waited for; of many, the first and how many more.
    pub(crate) fn wait_for(&mut self, mut things: Vec<String>) {
        let more = things.len().saturating_sub(Self::MOST_NAMED);
        things.truncate(Self::MOST_NAMED);
        self.waits_for.extend(things);
        if more > 0 {
            self.waits_for.push(format!("and {more} more"));
        }
    }
}

/// How a queue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueReport {
    /// Keys that could be worked on now.
    pub ready: usize,
    /// Keys in work.
    pub working: usize,
    /// Keys that wait for their time.
    pub delayed: usize,
}

/// How deletions of a cloud's Nodes stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    /// The cloud.
    pub cloud: String,
    /// Why none is deleted, if that is so.
    pub stopped: Option<StopReport>,
    /// How fast they go.
    pub pace: PaceReport,
}

/// Why deletions are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StopReport {
    /// What makes no sense.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// What a person can do about it.
    pub what_to_do: &'static str,
}

/// How fast deletions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaceReport {
    /// How many may go at once after a pause.
    pub burst: u64,
    /// How many may go right now.
    pub left: u64,
    /// How many wait for their turn.
    pub waiting: usize,
    /// Seconds between two turns.
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
        let mut report = ControllerReport::default();
        report.wait_for((0..13).map(|number| format!("n{number}")).collect());
        assert_eq!(report.waits_for.len(), 11);
        assert_eq!(report.waits_for.last().unwrap(), "and 3 more");
    }
}
