//! The decisions of a candidate and of a leader, as a function of what was observed and when.

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::{Record, stored};

/// A record, and since when it has been observed unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// What the lease says.
    pub record: Record,
    /// When it was first observed like this, by the monotonic clock.
    pub since: Instant,
}

impl Observation {
    /// When the lease may be taken, unless it changes before.
    pub fn expires(&self) -> Instant {
        self.since + self.record.lease_duration()
    }

    /// The observation after another read: its age starts anew only if the record changed.
    pub(super) fn seeing(seen: Option<Self>, record: Option<Record>, now: Instant) -> Option<Self> {
        let record = record?;
        match seen {
            Some(seen) if seen.record == record => Some(seen),
            _ => Some(Self { record, since: now }),
        }
    }
}

/// The current time: one clock to measure with, one to write down.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// For durations.
    pub monotonic: Instant,
    /// For the record.
    pub wall: Timestamp,
}

/// What this candidate would write about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its identity.
    pub identity: String,
    /// How long others have to wait for it.
    pub lease_seconds: i32,
}

/// The position before the decision.
#[derive(Debug, Clone, Copy)]
pub enum Role<'a> {
    /// Not leading.
    Candidate,
    /// Leading, and this is the last record it wrote.
    Leader(&'a Record),
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// There is no lease: create it with this record.
    Create(Record),
    /// The lease is held by this candidate: write this record.
    Renew(Record),
    /// The lease was released or has expired: write this record.
    TakeOver(Record),
    /// Another candidate holds the lease.
    Wait {
        /// Its identity.
        holder: String,
        /// Until when, if it does not change.
        until: Instant,
    },
    /// This candidate led, but no longer holds the lease.
    StepDown {
        /// The holder; empty if there is none.
        holder: String,
    },
}

/// Decides. The lease of another candidate is valid for its duration since *this* candidate observed its record
/// change, whatever the times in it are.
pub fn decide(seen: Option<&Observation>, role: Role<'_>, now: Moment, me: &Candidate) -> Action {
    let Some(seen) = seen else {
        return Action::Create(match role {
            Role::Candidate => me.takes(None, now.wall),
            Role::Leader(ours) => me.renews(ours, now.wall),
        });
    };
    let record = &seen.record;
    match role {
        _ if record.holder == me.identity => Action::Renew(me.renews(record, now.wall)),
        Role::Leader(_) => Action::StepDown {
            holder: record.holder.clone(),
        },
        Role::Candidate if record.is_released() || now.monotonic >= seen.expires() => {
            Action::TakeOver(me.takes(Some(record), now.wall))
        }
        Role::Candidate => Action::Wait {
            holder: record.holder.clone(),
            until: seen.expires(),
        },
    }
}

impl Candidate {
    /// The record of a new holder.
    fn takes(&self, from: Option<&Record>, now: Timestamp) -> Record {
        Record {
            holder: self.identity.clone(),
            lease_seconds: self.lease_seconds,
            acquired: Some(stored(now)),
            renewed: Some(stored(now)),
            transitions: from.map_or(0, |record| record.transitions.saturating_add(1)),
        }
    }

    /// The record of the same holder, later.
    pub(super) fn renews(&self, ours: &Record, now: Timestamp) -> Record {
        Record {
            holder: self.identity.clone(),
            lease_seconds: self.lease_seconds,
            renewed: Some(stored(now)),
            ..ours.clone()
        }
    }
}

/// The record of a released lease: any candidate may take it at once.
pub(super) fn released(ours: &Record, now: Timestamp) -> Record {
    Record {
        holder: String::new(),
        lease_seconds: 1,
        acquired: Some(stored(now)),
        renewed: Some(stored(now)),
        transitions: ours.transitions,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const EPOCH: i64 = 1_770_000_000;

    fn wall(seconds: i64) -> Timestamp {
        Timestamp::from_second(EPOCH + seconds).unwrap()
    }

    fn me() -> Candidate {
        Candidate {
            identity: "me".to_owned(),
            lease_seconds: 15,
        }
    }

    fn held_by(holder: &str) -> Record {
        Record {
            holder: holder.to_owned(),
            lease_seconds: 15,
            acquired: Some(wall(-100)),
            renewed: Some(wall(-1)),
            transitions: 4,
        }
    }

    fn mine(acquired: i64, transitions: i32) -> Record {
        Record {
            holder: "me".to_owned(),
            lease_seconds: 15,
            acquired: Some(wall(acquired)),
            renewed: Some(wall(0)),
            transitions,
        }
    }

    /// A record that was first observed `age` milliseconds ago.
    fn seen(record: Record, age: u64, now: Instant) -> Observation {
        let since = now.checked_sub(Duration::from_millis(age)).unwrap();
        Observation { record, since }
    }

    fn now() -> Moment {
        Moment {
            monotonic: Instant::now() + Duration::from_hours(1),
            wall: wall(0),
        }
    }

    #[test]
    fn a_candidate_takes_what_is_free_and_waits_for_the_rest() {
        let now = now();
        let instant = now.monotonic;
        let wait = |left| Action::Wait {
            holder: "other".to_owned(),
            until: instant + Duration::from_millis(left),
        };
        let released = Record {
            lease_seconds: 1,
            ..held_by("")
        };
        let clocks_apart = Record {
            renewed: Some(wall(-86_400)),
            ..held_by("other")
        };
        let endless = Record {
            lease_seconds: 0,
            ..held_by("other")
        };
        for (case, seen, action) in [
            ("no lease", None, Action::Create(mine(0, 0))),
            (
                "just seen",
                Some(seen(held_by("other"), 0, instant)),
                wait(15_000),
            ),
            (
                "almost expired",
                Some(seen(held_by("other"), 14_999, instant)),
                wait(1),
            ),
            (
                "expired",
                Some(seen(held_by("other"), 15_000, instant)),
                Action::TakeOver(mine(0, 5)),
            ),
            (
                "old by its own clock only",
                Some(seen(clocks_apart, 0, instant)),
                wait(15_000),
            ),
            (
                "released",
                Some(seen(released, 0, instant)),
                Action::TakeOver(mine(0, 5)),
            ),
            (
                "without a duration",
                Some(seen(endless, 0, instant)),
                Action::TakeOver(mine(0, 5)),
            ),
            (
                "ours, though the answer was lost",
                Some(seen(held_by("me"), 0, instant)),
                Action::Renew(mine(-100, 4)),
            ),
        ] {
            let decided = decide(seen.as_ref(), Role::Candidate, now, &me());
            assert_eq!(decided, action, "{case}");
        }
    }

    #[test]
    fn a_leader_keeps_its_lease_but_never_takes_it_back() {
        let now = now();
        let ours = mine(-50, 4);
        let step_down = |holder: &str| Action::StepDown {
            holder: holder.to_owned(),
        };
        for (case, seen, action) in [
            (
                "deleted by another client",
                None,
                Action::Create(mine(-50, 4)),
            ),
            (
                "still ours",
                Some(seen(held_by("me"), 0, now.monotonic)),
                Action::Renew(mine(-100, 4)),
            ),
            (
                "ours and older than its duration",
                Some(seen(held_by("me"), 60_000, now.monotonic)),
                Action::Renew(mine(-100, 4)),
            ),
            (
                "held by another",
                Some(seen(held_by("other"), 0, now.monotonic)),
                step_down("other"),
            ),
            (
                "held by another, expired",
                Some(seen(held_by("other"), 60_000, now.monotonic)),
                step_down("other"),
            ),
            (
                "released by another",
                Some(seen(held_by(""), 0, now.monotonic)),
                step_down(""),
            ),
        ] {
            let decided = decide(seen.as_ref(), Role::Leader(&ours), now, &me());
            assert_eq!(decided, action, "{case}");
        }
    }

    #[test]
    fn the_age_of_an_observation_starts_anew_only_with_a_change() {
        let start = Instant::now();
        let later = start + Duration::from_secs(9);
        let first = Observation::seeing(None, Some(held_by("a")), start);
        let same = Observation::seeing(first.clone(), Some(held_by("a")), later).unwrap();
        assert_eq!(same.since, start);
        let renewed = Record {
            renewed: Some(wall(5)),
            ..held_by("a")
        };
        let changed = Observation::seeing(first.clone(), Some(renewed), later).unwrap();
        assert_eq!(changed.since, later);
        assert_eq!(Observation::seeing(first, None, later), None, "deleted");
    }

    #[test]
    fn a_released_lease_keeps_its_count_and_can_be_had_at_once() {
        assert_eq!(
            released(&held_by("me"), wall(3)),
            Record {
                holder: String::new(),
                lease_seconds: 1,
                acquired: Some(wall(3)),
                renewed: Some(wall(3)),
                transitions: 4,
            }
        );
    }
}
