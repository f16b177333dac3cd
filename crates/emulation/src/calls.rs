//! Calls that a cloud got: counted by operation, and in order.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::go_duration;

/// How often a cloud was called for what. Every call counts, also one that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCounts<O> {
    by_operation: BTreeMap<O, u64>,
    mutations: u64,
}

impl<O> Default for CallCounts<O> {
    fn default() -> Self {
        Self {
            by_operation: BTreeMap::new(),
            mutations: 0,
        }
    }
}

impl<O: Ord + Clone> CallCounts<O> {
    /// Calls of one kind.
    pub fn of<Q: Borrow<O>>(&self, operation: Q) -> u64 {
        let count = self.by_operation.get(operation.borrow());
        count.copied().unwrap_or(0)
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.by_operation.values().sum()
    }

    /// Calls that only read.
    pub fn reads(&self) -> u64 {
        self.total() - self.mutations()
    }

    /// Calls that could change something.
    pub const fn mutations(&self) -> u64 {
        self.mutations
    }

    /// Every kind of call that was made, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (O, u64)> {
        self.by_operation
            .iter()
            .map(|(operation, count)| (operation.clone(), *count))
    }
}

impl<O: Ord + Clone + Serialize> Serialize for CallCounts<O> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut counts = to.serialize_struct("CallCounts", 3)?;
        counts.serialize_field("reads", &self.reads())?;
        counts.serialize_field("mutations", &self.mutations())?;
        counts.serialize_field("byOperation", &self.by_operation)?;
        counts.end()
    }
}

/// One call, as the log shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedCall<O, F> {
    /// Counted from 1.
    pub number: u64,
    /// The ID that the answer carries.
    pub request_id: String,
    /// When it arrived, since the cloud was made.
    #[serde(with = "go_duration")]
    pub at: Duration,
    /// The token that it carried, or its user.
    pub token: String,
    /// What was asked for.
    pub operation: O,
    /// The resource that it was about, if it was about a single one.
    pub resource: Option<String>,
    /// The query.
    pub query: String,
    /// The body, if it was JSON or a form and the caller was admitted.
    pub body: Value,
    /// The fault that it met.
    pub fault: Option<F>,
    /// What came of it.
    pub outcome: CallOutcome,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallOutcome {
    /// There is no answer yet, or the caller left before there was one.
    Unanswered,
    /// This HTTP status.
    Status(u16),
    /// The connection broke before anything happened.
    BrokenBefore,
    /// The connection broke after it had happened.
    BrokenAfter,
}

/// Counts calls, and keeps the last of them in order.
#[derive(Debug)]
pub struct CallLog<O, F> {
    counts: CallCounts<O>,
    entries: VecDeque<LoggedCall<O, F>>,
    made: u64,
}

impl<O, F> Default for CallLog<O, F> {
    fn default() -> Self {
        Self {
            counts: CallCounts::default(),
            entries: VecDeque::new(),
            made: 0,
        }
    }
}

impl<O: Ord + Clone, F: Clone> CallLog<O, F> {
    /// The number of a call that has just arrived.
    pub(super) const fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(super) fn add(&mut self, entry: LoggedCall<O, F>, is_mutating: bool, capacity: usize) {
        let operation = entry.operation.clone();
        *self.counts.by_operation.entry(operation).or_default() += 1;
        self.counts.mutations += u64::from(is_mutating);
        self.entries.push_back(entry);
        while self.entries.len() > capacity {
            self.entries.pop_front();
        }
    }

    fn entry(&mut self, number: u64) -> Option<&mut LoggedCall<O, F>> {
        let found = self.entries.binary_search_by_key(&number, |e| e.number);
        self.entries.get_mut(found.ok()?)
    }

    pub(super) fn set_body(&mut self, number: u64, body: Value) {
        if let Some(entry) = self.entry(number) {
            entry.body = body;
        }
    }

    pub(super) fn set_fault(&mut self, number: u64, fault: &F) {
        if let Some(entry) = self.entry(number) {
            entry.fault = Some(fault.clone());
        }
    }

    pub(super) fn set_outcome(&mut self, number: u64, outcome: CallOutcome) {
        if let Some(entry) = self.entry(number) {
            entry.outcome = outcome;
        }
    }

    /// How often what was asked for.
    pub const fn counts(&self) -> &CallCounts<O> {
        &self.counts
    }

    /// Every call in order, as far back as the log reaches.
    pub fn to_vec(&self) -> Vec<LoggedCall<O, F>> {
        self.entries.iter().cloned().collect()
    }

    /// Starts counting and logging afresh. Numbers go on.
    pub fn reset(&mut self) {
        self.counts = CallCounts::default();
        self.entries.clear();
    }
}
