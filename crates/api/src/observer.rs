//! Observes every call to a cloud.

use std::sync::Arc;
use std::time::Duration;

use crate::ErrorKind;

/// The priority of a call. When the budget runs low, lower priorities wait first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Periodic refreshes: may wait until the budget has recovered.
    Background,
    /// Normal work.
    #[default]
    Normal,
    /// New Services, new Nodes, confirmations before a deletion: they may use the reserve.
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
    /// Its priority.
    pub priority: Priority,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The kind of error, if it failed.
    pub error: Option<ErrorKind>,
    /// From sending to the last byte of the response.
    pub duration: Duration,
    /// Which attempt this was, counted from 1.
    pub attempt: u32,
}

/// The remaining request budget of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRecord {
    /// Requests allowed per window.
    pub limit: u64,
    /// Requests left in it.
    pub remaining: u64,
}

/// Observes the calls to a cloud. The manager turns them into metrics.
pub trait CallObserver: Send + Sync {
    /// An attempt ended.
    fn call_finished(&self, call: &CallRecord<'_>);
    /// A call was delayed this long to respect the budget.
    fn call_delayed(&self, operation: &str, delay: Duration);
    /// The cloud reported its remaining budget.
    fn budget_seen(&self, budget: BudgetRecord);
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn call_finished(&self, _call: &CallRecord<'_>) {}
    fn call_delayed(&self, _operation: &str, _delay: Duration) {}
    fn budget_seen(&self, _budget: BudgetRecord) {}
}

/// An observer shared by all clients of one cloud.
pub type SharedObserver = Arc<dyn CallObserver>;
