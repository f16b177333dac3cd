//! What was asked of the emulator: counted by kind, and in order.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::fault::Fault;
use super::operation::Operation;
use crate::simulated_cloud::{CallOutcome, go_duration};

/// How often what was asked for. Every call counts, also one that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallCounts {
    by_operation: BTreeMap<Operation, u64>,
}

impl CallCounts {
    /// Calls of one kind.
    pub fn of(&self, operation: Operation) -> u64 {
        self.by_operation.get(&operation).copied().unwrap_or(0)
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.by_operation.values().sum()
    }

    /// Calls that only look.
    pub fn reads(&self) -> u64 {
        self.total() - self.mutations()
    }

    /// Calls that could change something.
    pub fn mutations(&self) -> u64 {
        let mutating = |(operation, _): &(Operation, u64)| operation.is_mutating();
        self.iter().filter(mutating).map(|(_, count)| count).sum()
    }

    /// Every kind of call that was made, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, u64)> {
        self.by_operation
            .iter()
            .map(|(operation, count)| (*operation, *count))
    }
}

/// One call, as the log shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedCall {
    /// Counted from 1; also in the correlation ID.
    pub number: u64,
    /// When it arrived, since the emulator was made.
    #[serde(with = "go_duration")]
    pub at: Duration,
    /// The token that it carried, or the Robot user.
    pub token: String,
    /// What was asked for.
    pub operation: Operation,
    /// The thing that it was about, if it was about a single one.
    pub resource: Option<String>,
    /// The query.
    pub query: String,
    /// The body, if it was JSON.
    pub body: Value,
    /// The fault that it met.
    pub fault: Option<Fault>,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// The ID that the answer to a call carries.
pub(super) fn correlation_id(number: u64) -> String {
    format!("{number:016x}")
}

/// Counts calls, and keeps the last of them in order.
#[derive(Debug, Default)]
pub(super) struct CallLog {
    counts: CallCounts,
    entries: VecDeque<LoggedCall>,
    made: u64,
}

impl CallLog {
    /// The number of a call that has just arrived.
    pub(super) const fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(super) fn arrive(&mut self, entry: LoggedCall, capacity: usize) {
        *self.counts.by_operation.entry(entry.operation).or_default() += 1;
        self.entries.push_back(entry);
        while self.entries.len() > capacity {
            self.entries.pop_front();
        }
    }

    fn entry(&mut self, number: u64) -> Option<&mut LoggedCall> {
        let found = self.entries.binary_search_by_key(&number, |e| e.number);
        self.entries.get_mut(found.ok()?)
    }

    pub(super) fn meet(&mut self, number: u64, fault: &Fault) {
        if let Some(entry) = self.entry(number) {
            entry.fault = Some(fault.clone());
        }
    }

    pub(super) fn end(&mut self, number: u64, outcome: CallOutcome) {
        if let Some(entry) = self.entry(number) {
            entry.outcome = outcome;
        }
    }

    pub(super) const fn counts(&self) -> &CallCounts {
        &self.counts
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &LoggedCall> {
        self.entries.iter()
    }

    /// Starts counting and logging afresh. Correlation IDs go on.
    pub(super) fn reset(&mut self) {
        self.counts = CallCounts::default();
        self.entries.clear();
    }
}
