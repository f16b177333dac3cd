//! The latest events of this process, for people who look at it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cloudkeel_api::{Severity, Subject};
use jiff::Timestamp;
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
    /// What tells it from the others of this process.
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

/// An event that is being sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// The component that reports it.
    pub source: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Its reason.
    pub reason: &'a str,
    /// Such as `Node/web-1`.
    pub object: &'a str,
    /// Its sentence.
    pub message: &'a str,
    /// How often it has happened.
    pub count: i32,
    /// When.
    pub at: Timestamp,
}

/// Remembers the latest events, and never more than [`MOST`].
#[derive(Debug, Default)]
pub struct RecentEvents(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    /// Newest first.
    events: VecDeque<RecentEvent>,
    next_id: u64,
}

impl RecentEvents {
    /// The latest first.
    pub fn all(&self) -> Vec<RecentEvent> {
        self.lock().events.iter().cloned().collect()
    }

    /// An event of the recorder is sent, for the so-manieth time.
    pub(super) fn note(&self, reported: &Reported, message: &str, count: i32, at: Timestamp) {
        let Reported { source, event } = reported;
        self.tell(&Sent {
            source,
            severity: event.severity,
            reason: &event.reason,
            object: &name_of(&event.subject),
            message,
            count,
            at,
        });
    }

    /// An event is sent. The same one again takes the place of the one before.
    pub fn tell(&self, sent: &Sent<'_>) {
        let (message, _) = sent
            .message
            .split_at(sent.message.floor_char_boundary(LONGEST));
        let mut shelf = self.lock();
        let is_same = |known: &RecentEvent| {
            (known.source, known.severity) == (sent.source, sent.severity)
                && known.reason == sent.reason
                && known.object == sent.object
                && known.message == message
        };
        let known = shelf.events.iter().position(is_same);
        let known = known.and_then(|place| shelf.events.remove(place));
        let id = known.map_or(shelf.next_id, |known| known.id);
        shelf.next_id = shelf.next_id.max(id + 1);
        shelf.events.push_front(RecentEvent {
            id,
            at: sent.at,
            source: sent.source,
            severity: sent.severity,
            reason: sent.reason.to_owned(),
            object: sent.object.to_owned(),
            message: message.to_owned(),
            count: sent.count,
        });
        shelf.events.truncate(MOST);
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(subject: &Subject) -> String {
    match subject {
        Subject::Node { name, .. } => format!("Node/{name}"),
        Subject::Service(service) => format!("Service/{service}"),
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
        recent.note(&event(message), message, count, at);
    }

    #[test]
    fn the_latest_come_first_and_a_repeat_is_counted_in_its_place() {
        let recent = RecentEvents::default();
        note(&recent, "one", 1, 1);
        note(&recent, "two", 1, 2);
        note(&recent, "one", 2, 3);
        let all = recent.all();
        let told: Vec<_> = all
            .iter()
            .map(|event| (event.id, event.message.as_str(), event.count))
            .collect();
        assert_eq!(told, [(0, "one", 2), (1, "two", 1)]);
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
