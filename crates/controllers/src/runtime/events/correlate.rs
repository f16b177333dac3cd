//! Merges and limits events, as Go's client does it, so that `kubectl describe` stays readable.

use std::collections::BTreeMap;

use cloudkeel_api::Subject;
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
/// How many different Events a writer remembers.
const MEMORY: usize = 1024;

/// What to do with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Correlated {
    /// Write a new one: this, which may be combined from similar ones.
    Create(Reported),
    /// Count up the one that was written before.
    Repeat {
        /// As it was written.
        reported: Reported,
        /// The name it was written under.
        name: String,
        /// How often it has happened.
        count: i32,
    },
    /// Too many: nothing is written.
    Drop,
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
    written: BTreeMap<Reported, Written>,
    similar: BTreeMap<Reported, Similar>,
    allowances: BTreeMap<(&'static str, Subject), Allowance>,
    pruned: Timestamp,
}

impl Correlator {
    /// Decides what to do with an event now.
    pub(super) fn classify(&mut self, reported: &Reported, now: Timestamp) -> Correlated {
        self.forget_old(now);
        if !self.allow(reported, now) {
            return Correlated::Drop;
        }
        let mut reported = reported.clone();
        if self.has_too_many_like(&reported, now) {
            let message = &mut reported.event.message;
            message.insert_str(0, "(combined from similar events): ");
        }
        match self.written.get_mut(&reported) {
            Some(written) => {
                written.count = written.count.saturating_add(1);
                written.at = now;
                Correlated::Repeat {
                    name: written.name.clone(),
                    count: written.count,
                    reported,
                }
            }
            None => Correlated::Create(reported),
        }
    }

    /// Remembers under which name an event was written.
    pub(super) fn remember(&mut self, reported: Reported, name: String, at: Timestamp) {
        let count = 1;
        self.written.insert(reported, Written { name, count, at });
    }

    /// Forgets an event that has expired in the cluster, so that the next one is written anew.
    pub(super) fn forget(&mut self, reported: &Reported) {
        self.written.remove(reported);
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

    fn has_too_many_like(&mut self, reported: &Reported, now: Timestamp) -> bool {
        let mut kind = reported.clone();
        let message = std::mem::take(&mut kind.event.message);
        let similar = self.similar.entry(kind).or_insert(Similar {
            messages: Vec::new(),
            at: now,
        });
        if now.duration_since(similar.at) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.at = now;
        if !similar.messages.contains(&message) && similar.messages.len() <= SIMILAR_LIMIT {
            similar.messages.push(message);
        }
        similar.messages.len() > SIMILAR_LIMIT
    }

    /// Keeps memory bounded: what was not repeated for an hour is gone from the cluster as well.
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

    /// Classifies and remembers, and says in short what was decided.
    fn decision(correlator: &mut Correlator, reported: &Reported, now: Timestamp) -> String {
        match correlator.classify(reported, now) {
            Correlated::Create(reported) => {
                let text = format!("create {}", reported.event.message);
                correlator.remember(reported, "name".into(), now);
                text
            }
            Correlated::Repeat { count, .. } => format!("repeat {count}"),
            Correlated::Drop => "drop".into(),
        }
    }

    #[test]
    fn the_same_event_again_is_counted() {
        let mut correlator = Correlator::default();
        let decisions: Vec<_> = (0..3)
            .map(|i| decision(&mut correlator, &event("n", "m"), at(i)))
            .collect();
        assert_eq!(decisions, ["create m", "repeat 2", "repeat 3"]);
    }

    #[test]
    fn many_similar_events_are_combined_and_a_pause_ends_it() {
        let mut correlator = Correlator::default();
        let decisions: Vec<_> = (0..12)
            .map(|i| decision(&mut correlator, &event("n", &format!("m{i}")), at(i)))
            .collect();
        assert_eq!(decisions[9], "create m9");
        assert_eq!(decisions[10], "create (combined from similar events): m10");
        let later = decision(&mut correlator, &event("n", "m99"), at(5_000));
        assert_eq!(later, "create m99");
    }

    #[test]
    fn an_object_gets_only_so_many_and_others_are_not_affected() {
        let mut correlator = Correlator::default();
        let dropped = (0..30)
            .filter(|_| decision(&mut correlator, &event("n", "m"), at(0)) == "drop")
            .count();
        assert_eq!(dropped, 5);
        assert_eq!(
            decision(&mut correlator, &event("other", "m"), at(0)),
            "create m"
        );
        assert_eq!(
            decision(&mut correlator, &event("n", "m"), at(301)),
            "repeat 26"
        );
        assert_eq!(decision(&mut correlator, &event("n", "m"), at(302)), "drop");
    }

    #[test]
    fn memory_stays_bounded() {
        let mut correlator = Correlator::default();
        for i in 0..20_000 {
            decision(&mut correlator, &event(&format!("n{i}"), "m"), at(i));
        }
        let kept =
            correlator.written.len() + correlator.similar.len() + correlator.allowances.len();
        assert!(kept <= 4 * MEMORY, "{kept}");
    }
}
