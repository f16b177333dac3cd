//! Metrics of calls to clouds, the same for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_api::{BudgetRecord, CallObserver, CallRecord, SharedObserver};

use super::buckets;
use super::catalogue::{Catalogue, Counter, Gauge, Histogram, Labelled, Seconds};

/// A cloud has a few dozen operations. If one reports names with IDs in them by mistake, the rest share one name, so
/// that the number of series stays bounded.
const MOST_OPERATIONS: usize = 200;

/// The name that surplus operations share.
const OTHER_OPERATION: &str = "other";

/// The metrics of all clouds, labelled with their names in the configuration.
#[derive(Debug, Clone)]
pub struct CloudsMetrics {
    calls: Labelled<Counter, 4>,
    durations: Labelled<Histogram, 2>,
    throttled: Labelled<Seconds, 1>,
    remaining: Labelled<Gauge, 1>,
    limit: Labelled<Gauge, 1>,
    spent: Arc<Mutex<BTreeMap<String, Spent>>>,
}

/// The requests sent to a cloud so far, and its remaining budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    /// Attempts at calls.
    pub(crate) calls: u64,
    /// Those of them that could change something.
    pub(crate) changes: u64,
    /// The budget that the cloud reported last.
    pub(crate) budget: Option<BudgetRecord>,
}

impl CloudsMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const CLOUD: [&str; 1] = ["cloud"];
        Self {
            calls: catalogue.counters(
                "cloudkeel_cloud_calls_total",
                ["cloud", "operation", "priority", "result"],
                "Attempts of cloud API calls, by operation, priority and result.",
            ),
            durations: catalogue.histograms(
                "cloudkeel_cloud_call_duration_seconds",
                ["cloud", "operation"],
                buckets::CLOUD_CALL,
                "Seconds from sending a cloud API call until the last byte of its response.",
            ),
            throttled: catalogue.seconds(
                "cloudkeel_cloud_throttled_seconds_total",
                CLOUD,
                "Seconds that calls were delayed to stay within the request budget.",
            ),
            remaining: catalogue.gauges(
                "cloudkeel_cloud_budget_remaining",
                CLOUD,
                "Requests left in the current rate limit window, as the cloud last reported.",
            ),
            limit: catalogue.gauges(
                "cloudkeel_cloud_budget_limit",
                CLOUD,
                "Requests allowed per rate limit window, as the cloud last reported.",
            ),
            spent: Arc::default(),
        }
    }

    /// The requests sent to a cloud so far.
    pub(crate) fn spent(&self, cloud: &str) -> Spent {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.get(cloud).copied().unwrap_or_default()
    }

    /// An observer that counts the calls of one cloud.
    pub fn observer(&self, cloud: &str) -> SharedObserver {
        Arc::new(CloudObserver {
            cloud: cloud.to_owned(),
            metrics: self.clone(),
            operations: Mutex::default(),
        })
    }
}

struct CloudObserver {
    cloud: String,
    metrics: CloudsMetrics,
    operations: Mutex<BTreeSet<String>>,
}

impl CloudObserver {
    /// The operation's name, or the shared one if there are too many.
    fn bounded<'a>(&self, operation: &'a str) -> &'a str {
        let mut known = self
            .operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.contains(operation) {
            return operation;
        }
        if known.len() >= MOST_OPERATIONS {
            return OTHER_OPERATION;
        }
        known.insert(operation.to_owned());
        operation
    }

    fn spend(&self, change: impl FnOnce(&mut Spent)) {
        let spent = &self.metrics.spent;
        let mut spent = spent.lock().unwrap_or_else(PoisonError::into_inner);
        change(spent.entry(self.cloud.clone()).or_default());
    }
}

impl CallObserver for CloudObserver {
    fn call_finished(&self, call: &CallRecord<'_>) {
        let operation = self.bounded(call.operation);
        let result = call.error.map_or("success", |kind| kind.as_str());
        self.metrics
            .calls
            .with([&self.cloud, operation, call.priority.as_str(), result])
            .inc();
        self.metrics
            .durations
            .with([&self.cloud, operation])
            .observe(call.duration.as_secs_f64());
        self.spend(|spent| {
            spent.calls += 1;
            spent.changes += u64::from(call.mutating);
        });
    }

    fn call_delayed(&self, _operation: &str, delay: Duration) {
        self.metrics
            .throttled
            .with([&self.cloud])
            .inc_by(delay.as_secs_f64());
    }

    fn budget_seen(&self, budget: BudgetRecord) {
        self.metrics
            .remaining
            .with([&self.cloud])
            .set(as_float(budget.remaining));
        self.metrics
            .limit
            .with([&self.cloud])
            .set(as_float(budget.limit));
        self.spend(|spent| spent.budget = Some(budget));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "budgets are far below 2^53, and a gauge is a float anyway"
)]
fn as_float(count: u64) -> f64 {
    count as f64
}
