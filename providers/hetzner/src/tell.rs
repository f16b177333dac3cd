//! Events, told once: what has not changed is not worth a write per look.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_api::{Event, SharedEvents, Subject};
use tokio::time::Instant;

/// The same is told again after this long, before Kubernetes has forgotten it.
const AGAIN: Duration = Duration::from_mins(30);

/// How many are remembered; more than that are told afresh.
const REMEMBERED: usize = 10_000;

/// Tells events, but the same only now and then.
pub(crate) struct Teller {
    events: SharedEvents,
    told: Mutex<BTreeMap<(Subject, String, String), Instant>>,
}

impl Teller {
    pub(crate) fn new(events: SharedEvents) -> Self {
        Self {
            events,
            told: Mutex::default(),
        }
    }

    /// Tells it, unless it was told lately.
    pub(crate) fn tell(&self, event: Event) {
        if self.is_news(&event) {
            self.events.emit(event);
        }
    }

    fn is_news(&self, event: &Event) -> bool {
        let key = (
            event.subject.clone(),
            event.reason.to_string(),
            event.message.clone(),
        );
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(&key).is_some_and(|at| at.elapsed() < AGAIN) {
            return false;
        }
        if told.len() >= REMEMBERED {
            told.clear();
        }
        told.insert(key, Instant::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cloudkeel_api::{CollectedEvents, NodeFacts};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_told_again_only_after_a_while() {
        let events = Arc::new(CollectedEvents::default());
        let teller = Teller::new(Arc::<CollectedEvents>::clone(&events));
        let node = NodeFacts::default();
        let tell = |message: &str| teller.tell(Event::warning(&node, "Reason", message));
        for message in ["one", "two", "one", "two"] {
            tell(message);
        }
        assert_eq!(events.take().len(), 2);
        tokio::time::advance(AGAIN).await;
        tell("two");
        assert_eq!(events.take().len(), 1);
    }
}
