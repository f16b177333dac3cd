//! Merges and limits events, as Go's client does it, so that `kubectl describe` stays readable.

use std::collections::BTreeMap;

use cloudkeel_api::{Severity, Subject};
use jiff::{SignedDuration, Timestamp};

use super::Reported;

/// How many events of a kind are shown one by one before they are combined.
const SIMILAR_LIMIT: usize = 10;
/// How long similar events count together.
const SIMILAR_WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// How many events an object may get in a burst.
const BURST: f64 = 25.0;
/// After that, one per this many seconds.
const REFILL_SECONDS: f64 = 300.0;
/// How many different events are remembered.
const MEMORY: usize = 4096;

/// What to do with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Correlated {
    /// Write a new one.
    Create {
        /// The key to remember its name under.
        key: EventKey,
    },
    /// Count up the one that was written before.
    Repeat {
        /// The key its name was remembered under.
        key: EventKey,
        /// The name it was written under.
        name: String,
        /// How often it has happened.
        count: i32,
    },
    /// Too many: nothing is written.
    Drop,
}

/// What makes two events the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventKey {
    source: &'static str,
    subject: Subject,
    warning: bool,
    reason: String,
    message: String,
}

impl EventKey {
    /// Its text, perhaps combined from similar events.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

#[derive(Debug)]
struct Written {
    name: String,
    count: i32,
    at: Timestamp,
}

#[derive(Debug)]
struct Similar {
    messages: Vec<String>,
    at: Timestamp,
}

#[derive(Debug)]
struct Allowance {
    tokens: f64,
    at: Timestamp,
}

/// Remembers what was written, to merge what comes next.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    written: BTreeMap<EventKey, Written>,
    similar: BTreeMap<EventKey, Similar>,
    allowances: BTreeMap<(&'static str, Subject), Allowance>,
    pruned: Timestamp,
}

impl Correlator {
    /// Decides what to do with an event now.
    pub(super) fn judge(&mut self, reported: &Reported, now: Timestamp) -> Correlated {
        self.forget_old(now);
        if !self.allow(reported, now) {
            return Correlated::Drop;
        }
        let mut key = key_of(reported);
        if self.has_too_many_like(&key, now) {
            key.message = format!("(combined from similar events): {}", key.message);
        }
        match self.written.get_mut(&key) {
            Some(written) => {
                written.count = written.count.saturating_add(1);
                written.at = now;
                Correlated::Repeat {
                    name: written.name.clone(),
                    count: written.count,
                    key,
                }
            }
            None => Correlated::Create { key },
        }
    }

    /// Remembers under which name an event was written.
    pub(super) fn remember(&mut self, key: EventKey, name: String, now: Timestamp) {
        self.written.insert(
            key,
            Written {
                name,
                count: 1,
                at: now,
            },
        );
    }

    /// Forgets an event that has expired in the cluster, so that the next one is written anew.
    pub(super) fn forget(&mut self, key: &EventKey) {
        self.written.remove(key);
    }

    fn allow(&mut self, reported: &Reported, now: Timestamp) -> bool {
        let place = (reported.source, reported.event.subject.clone());
        let allowance = self.allowances.entry(place).or_insert(Allowance {
            tokens: BURST,
            at: now,
        });
        let elapsed = now.duration_since(allowance.at).as_secs_f64().max(0.0);
        allowance.tokens = (allowance.tokens + elapsed / REFILL_SECONDS).min(BURST);
        allowance.at = now;
        let allowed = allowance.tokens >= 1.0;
        if allowed {
            allowance.tokens -= 1.0;
        }
        allowed
    }

    fn has_too_many_like(&mut self, key: &EventKey, now: Timestamp) -> bool {
        let kind = EventKey {
            message: String::new(),
            ..key.clone()
        };
        let similar = self.similar.entry(kind).or_insert(Similar {
            messages: Vec::new(),
            at: now,
        });
        if now.duration_since(similar.at) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.at = now;
        if !similar.messages.contains(&key.message) && similar.messages.len() <= SIMILAR_LIMIT {
            similar.messages.push(key.message.clone());
        }
        similar.messages.len() > SIMILAR_LIMIT
    }

    /// Keeps memory bounded: what nobody repeated for an hour is gone from the cluster as well.
    fn forget_old(&mut self, now: Timestamp) {
        let kept = self.written.len() + self.similar.len() + self.allowances.len();
        if kept >= 4 * MEMORY {
            // A storm of different events within the hour: start afresh rather than grow.
            *self = Self::default();
        } else if kept >= MEMORY && now.duration_since(self.pruned) > SignedDuration::from_mins(1) {
            self.pruned = now;
            let recent = |at: Timestamp| now.duration_since(at) < SignedDuration::from_hours(1);
            self.written.retain(|_, written| recent(written.at));
            self.similar.retain(|_, similar| recent(similar.at));
            self.allowances.retain(|_, allowance| recent(allowance.at));
        }
    }
}

fn key_of(reported: &Reported) -> EventKey {
    EventKey {
        source: reported.source,
        subject: reported.event.subject.clone(),
        warning: reported.event.severity == Severity::Warning,
        reason: reported.event.reason.to_string(),
        message: reported.event.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::Event;

    use super::*;

    fn event(node: &str, message: &str) -> Reported {
        let subject = Subject::Node {
            name: node.into(),
            uid: "u".into(),
        };
        Reported {
            source: "test",
            event: Event::warning(subject, "Reason", message),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Judges and remembers, and says in a word what was decided.
    fn word(correlator: &mut Correlator, reported: &Reported, now: Timestamp) -> String {
        match correlator.judge(reported, now) {
            Correlated::Create { key } => {
                let text = format!("create {}", key.message());
                correlator.remember(key, "name".into(), now);
                text
            }
            Correlated::Repeat { count, .. } => format!("repeat {count}"),
            Correlated::Drop => "drop".into(),
        }
    }

    #[test]
    fn the_same_event_again_is_counted() {
        let mut correlator = Correlator::default();
        let words: Vec<_> = (0..3)
            .map(|i| word(&mut correlator, &event("n", "m"), at(i)))
            .collect();
        assert_eq!(words, ["create m", "repeat 2", "repeat 3"]);
    }

    #[test]
    fn many_similar_events_are_combined_and_a_pause_ends_it() {
        let mut correlator = Correlator::default();
        let words: Vec<_> = (0..12)
            .map(|i| word(&mut correlator, &event("n", &format!("m{i}")), at(i)))
            .collect();
        assert_eq!(words[9], "create m9");
        assert_eq!(words[10], "create (combined from similar events): m10");
        let later = word(&mut correlator, &event("n", "m99"), at(5_000));
        assert_eq!(later, "create m99");
    }

    #[test]
    fn an_object_gets_only_so_many_and_others_are_not_affected() {
        let mut correlator = Correlator::default();
        let dropped = (0..30)
            .filter(|_| word(&mut correlator, &event("n", "m"), at(0)) == "drop")
            .count();
        assert_eq!(dropped, 5);
        assert_eq!(
            word(&mut correlator, &event("other", "m"), at(0)),
            "create m"
        );
        assert_eq!(
            word(&mut correlator, &event("n", "m"), at(301)),
            "repeat 26"
        );
        assert_eq!(word(&mut correlator, &event("n", "m"), at(302)), "drop");
    }

    #[test]
    fn memory_stays_bounded() {
        let mut correlator = Correlator::default();
        for i in 0..20_000 {
            word(&mut correlator, &event(&format!("n{i}"), "m"), at(i));
        }
        let kept =
            correlator.written.len() + correlator.similar.len() + correlator.allowances.len();
        assert!(kept <= 4 * MEMORY, "{kept}");
    }
}
