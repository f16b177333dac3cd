//! A client on a scripted transport, with a paused clock and a recording observer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudkeel_api::{BudgetRecord, CallObserver, CallRecord, ErrorKind, Priority, TokioClock};
use jiff::Timestamp;

use crate::testing::{Reply, Script};
use crate::{Client, ClientBuilder, CodeTable, Jitter};

pub(super) const START: i64 = 1_800_000_000;

/// Records what it observes.
#[derive(Default)]
pub(super) struct RecordingObserver {
    pub(super) calls: Mutex<Vec<Call>>,
    pub(super) delays: Mutex<Vec<(String, Duration)>>,
    pub(super) budgets: Mutex<Vec<BudgetRecord>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) operation: String,
    pub(super) mutating: bool,
    pub(super) priority: Priority,
    pub(super) status: Option<u16>,
    pub(super) error: Option<ErrorKind>,
    pub(super) duration: Duration,
    pub(super) attempt: u32,
}

impl CallObserver for RecordingObserver {
    fn call_finished(&self, call: &CallRecord<'_>) {
        self.calls.lock().unwrap().push(Call {
            operation: call.operation.to_owned(),
            mutating: call.mutating,
            priority: call.priority,
            status: call.status,
            error: call.error,
            duration: call.duration,
            attempt: call.attempt,
        });
    }

    fn call_delayed(&self, operation: &str, delay: Duration) {
        let mut delays = self.delays.lock().unwrap();
        delays.push((operation.to_owned(), delay));
    }

    fn budget_seen(&self, budget: BudgetRecord) {
        self.budgets.lock().unwrap().push(budget);
    }
}

pub(super) struct Stage {
    pub(super) script: Arc<Script>,
    pub(super) observer: Arc<RecordingObserver>,
    pub(super) client: Client,
}

pub(super) fn stage(replies: impl IntoIterator<Item = Reply>) -> Stage {
    stage_with(replies, |builder| builder)
}

pub(super) fn stage_with(
    replies: impl IntoIterator<Item = Reply>,
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Stage {
    let script = Script::new(replies);
    let observer = Arc::new(RecordingObserver::default());
    let start = Timestamp::from_second(START).unwrap();
    let builder = Client::builder("https://api.example.com/v1")
        .transport(Arc::clone(&script) as _)
        .observer(Arc::clone(&observer) as _)
        .clock(Arc::new(TokioClock::starting_at(start)))
        .jitter(Jitter::seeded(7))
        .error_map(
            CodeTable::new("/error/code", "/error/message")
                .on("locked", ErrorKind::Busy)
                .on(
                    "rate_limit_exceeded",
                    ErrorKind::Throttled { retry_after: None },
                ),
        );
    let client = adjust(builder).build().unwrap();
    Stage {
        script,
        observer,
        client,
    }
}

impl Stage {
    pub(super) fn sent(&self) -> usize {
        self.script.seen().len()
    }
}
