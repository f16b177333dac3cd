//! What the shared machinery tells about every call to a cloud.

use std::sync::Arc;
use std::time::Duration;

use crate::ErrorKind;

/// How urgent a call is. When the budget runs low, the less urgent wait first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Periodic refreshes: may wait until the budget has recovered.
    Background,
    /// Ordinary work.
    #[default]
    Normal,
    /// New Services, new Nodes, proofs before a deletion: served from the reserve if need be.
    Urgent,
}

impl Priority {
    /// The stable name used in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Normal => "normal",
            Self::Urgent => "urgent",
        }
    }
}

/// One finished attempt at a cloud call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord<'a> {
    /// The operation by its stable name, with IDs left out: `GET /servers/{id}`.
    pub operation: &'a str,
    /// Whether the call could change anything.
    pub mutating: bool,
    /// How urgent it was.
    pub priority: Priority,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What went wrong, if anything.
    pub error: Option<ErrorKind>,
    /// From sending to the last byte of the answer.
    pub duration: Duration,
    /// Which attempt this was, counted from 1.
    pub attempt: u32,
}

/// What is left of a credential's request budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRecord {
    /// Requests allowed per window.
    pub limit: u64,
    /// Requests left in it.
    pub remaining: u64,
}

/// Receives what happens on the way to the cloud. The manager turns it into metrics.
pub trait CallObserver: Send + Sync {
    /// An attempt ended.
    fn call_finished(&self, call: &CallRecord<'_>);
    /// A call was held back for this long to respect the budget.
    fn call_delayed(&self, operation: &str, delay: Duration);
    /// The cloud told what is left.
    fn budget_seen(&self, budget: BudgetRecord);
}

/// An observer that looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn call_finished(&self, _call: &CallRecord<'_>) {}
    fn call_delayed(&self, _operation: &str, _delay: Duration) {}
    fn budget_seen(&self, _budget: BudgetRecord) {}
}

/// An observer shared by all clients of one cloud.
pub type SharedObserver = Arc<dyn CallObserver>;
