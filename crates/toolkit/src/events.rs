//! Records an Event about a state once, not with every observation of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_api::{Event, SharedEvents, Subject};
use tokio::time::Instant;

/// The same event is recorded again after this long, before Kubernetes has deleted it.
const REPEAT_AFTER: Duration = Duration::from_mins(30);

/// How many events are remembered; beyond that all are recorded afresh.
const REMEMBERED: usize = 10_000;

/// Records events, but the same only once in half an hour.
pub struct EventRecorder {
    events: SharedEvents,
    recorded: Mutex<BTreeMap<(Subject, String, String), Instant>>,
}

impl EventRecorder {
    /// Records to this sink.
    pub fn new(events: SharedEvents) -> Self {
        Self {
            events,
            recorded: Mutex::default(),
        }
    }

    /// Records an event, unless the same was recorded lately.
    pub fn record(&self, event: Event) {
        if self.is_new(&event) {
            self.events.emit(event);
        }
    }

    /// Records a warning.
    pub fn warn(
        &self,
        subject: impl Into<Subject>,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.record(Event::warning(subject, reason, message));
    }

    fn is_new(&self, event: &Event) -> bool {
        let key = (
            event.subject.clone(),
            event.reason.to_string(),
            event.message.clone(),
        );
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recorded.get(&key);
        if at.is_some_and(|at| at.elapsed() < REPEAT_AFTER) {
            return false;
        }
        if recorded.len() >= REMEMBERED {
            recorded.clear();
        }
        recorded.insert(key, Instant::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cloudkeel_api::{CollectedEvents, NodeFacts};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_event_is_recorded_again_only_after_a_while() {
        let events = Arc::new(CollectedEvents::default());
        let recorder = EventRecorder::new(Arc::<CollectedEvents>::clone(&events));
        let node = NodeFacts::default();
        for message in ["one", "two", "one", "two"] {
            recorder.warn(&node, "Reason", message);
        }
        assert_eq!(events.take().len(), 2);
        tokio::time::advance(REPEAT_AFTER).await;
        recorder.warn(&node, "Reason", "two");
        assert_eq!(events.take().len(), 1);
    }
}
