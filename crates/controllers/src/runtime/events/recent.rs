//! The latest Events of this process, for the page and `/status`.

use std::collections::VecDeque;

use cloudkeel_api::{Severity, Subject};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;

use super::Reported;

/// How many are remembered. What is older stands in the cluster.
const MOST: usize = 100;

/// The API server takes no longer message.
const LONGEST: usize = 1024;

/// An event that was sent to the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentEvent {
    /// Unique in this process.
    pub id: u64,
    /// When it happened last.
    pub at: Timestamp,
    /// The component that reports it.
    pub source: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Its reason.
    pub reason: String,
    /// `Node/web-1` or `Service/shop/web`.
    pub object: String,
    /// Its sentence.
    pub message: String,
    /// How often it has happened.
    pub count: i32,
}

/// Remembers the latest Events, and never more than [`MOST`].
#[derive(Debug, Default)]
pub struct RecentEvents(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    /// Newest first.
    events: VecDeque<RecentEvent>,
    next_id: u64,
}

impl RecentEvents {
    /// The latest first.
    pub fn all(&self) -> Vec<RecentEvent> {
        self.0.lock().events.iter().cloned().collect()
    }

    /// Records an Event that is being sent; its ID is set here. The same one again takes the place of the one before.
    pub fn record(&self, mut event: RecentEvent) {
        let end = event.message.floor_char_boundary(LONGEST);
        event.message.truncate(end);
        let mut recent = self.0.lock();
        let is_same = |known: &RecentEvent| {
            (known.source, known.severity) == (event.source, event.severity)
                && known.reason == event.reason
                && known.object == event.object
                && known.message == event.message
        };
        let known = recent.events.iter().position(is_same);
        let known = known.and_then(|index| recent.events.remove(index));
        event.id = known.map_or(recent.next_id, |known| known.id);
        recent.next_id = recent.next_id.max(event.id + 1);
        recent.events.push_front(event);
        recent.events.truncate(MOST);
    }

    /// Records an Event of the recorder.
    pub(super) fn note(&self, reported: &Reported, count: i32, at: Timestamp) {
        let Reported { source, event } = reported;
        self.record(RecentEvent {
            id: 0,
            at,
            source,
            severity: event.severity,
            reason: event.reason.to_string(),
            object: match &event.subject {
                Subject::Node { name, .. } => format!("Node/{name}"),
                Subject::Service(service) => format!("Service/{service}"),
            },
            message: event.message.clone(),
            count,
        });
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{Event, ServiceRef};

    use super::*;

    fn event(message: &str) -> Reported {
        let subject = Subject::Service(ServiceRef {
            namespace: "shop".into(),
            name: "web".into(),
            uid: "u".into(),
        });
        Reported {
            source: "test",
            event: Event::warning(subject, "Reason", message),
        }
    }

    fn note(recent: &RecentEvents, message: &str, count: i32, second: i64) {
        let at = Timestamp::from_second(second).unwrap();
        recent.note(&event(message), count, at);
    }

    #[test]
    fn the_latest_come_first_and_a_repeat_is_counted_in_its_place() {
        let recent = RecentEvents::default();
        note(&recent, "one", 1, 1);
        note(&recent, "two", 1, 2);
        note(&recent, "one", 2, 3);
        let all = recent.all();
        let recorded: Vec<_> = all
            .iter()
            .map(|event| (event.id, event.message.as_str(), event.count))
            .collect();
        assert_eq!(recorded, [(0, "one", 2), (1, "two", 1)]);
        assert_eq!(all[0].object, "Service/shop/web");
        assert_eq!(all[0].at, Timestamp::from_second(3).unwrap());
    }

    #[test]
    fn only_so_many_are_kept_and_none_is_longer_than_the_cluster_takes() {
        let recent = RecentEvents::default();
        for number in 0..1000 {
            note(&recent, &format!("{number} {}", "ü".repeat(1000)), 1, 0);
        }
        let all = recent.all();
        assert_eq!(all.len(), MOST);
        assert!(all[0].message.starts_with("999 "));
        assert!(all.iter().all(|event| event.message.len() <= LONGEST));
    }
}
