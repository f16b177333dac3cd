//! The state of a Service's load balancer, from what the controller reports.

use serde::{Deserialize, Serialize};

use crate::{Level, TargetRow};

/// The state of a Service's sync, as `/status` spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SyncState {
    /// The last sync failed, and is retried.
    Failing,
    /// The cloud is still working on it.
    Waiting,
    /// The Service is paused.
    Paused,
    /// It is being synced.
    Working,
    /// It is in its desired state.
    Settled,
}

/// The state of a Service that another controller handles, or none.
const NOT_SERVED: &str = "not served here";

/// How many targets a cloud finds unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unhealthy {
    /// None, or the cloud does not say.
    #[default]
    None,
    /// Some, although all should be healthy.
    Some,
    /// All.
    All,
}

/// What the state of a Service depends on.
#[derive(Debug, Clone, Copy)]
pub struct ServiceFacts<'a> {
    /// Whether it needs a load balancer.
    pub is_wanted: bool,
    /// Whether a cloud here serves its class.
    pub is_served: bool,
    /// Whether it has an address.
    pub has_address: bool,
    /// What the service controller reports; `None` if it has not synced it yet.
    pub sync: Option<SyncState>,
    /// Its targets, if they are known, and those that are not shown.
    pub targets: Option<(&'a [TargetRow], u64)>,
    /// How many of all its targets are unhealthy.
    pub unhealthy: Unhealthy,
}

impl ServiceFacts<'_> {
    /// The state as text, and its severity.
    pub fn state(self) -> (&'static str, Level) {
        use SyncState::{Failing, Paused, Settled, Waiting, Working};
        if self.is_wanted && !self.is_served && self.sync.is_none() {
            return (NOT_SERVED, Level::Neutral);
        }
        match (self.is_wanted, self.has_address, self.sync) {
            (false, _, Some(Paused)) => ("paused, is not removed", Level::Warning),
            (true, true, Some(Paused)) => ("in service, paused", Level::Warning),
            (true, false, Some(Paused)) => ("paused", Level::Warning),
            (false, _, Some(Failing)) => ("cannot be removed", Level::Bad),
            (false, _, _) => ("is being removed", Level::Neutral),
            (true, true, Some(Failing)) => ("in service, sync fails", Level::Bad),
            (true, false, Some(Failing)) => ("sync fails", Level::Bad),
            (true, true, _) if self.is_empty() => ("in service, no targets", Level::Bad),
            (true, true, _) if self.all_targets_are_out() => {
                ("in service, no target serves", Level::Bad)
            }
            (true, true, _) if self.unhealthy == Unhealthy::Some => {
                ("in service, targets unhealthy", Level::Warning)
            }
            (true, true, Some(Waiting)) => ("in service, waits", Level::Warning),
            (true, true, Some(Working)) => ("in service, changes", Level::Good),
            (true, true, Some(Settled) | None) => ("in service", Level::Good),
            (true, false, Some(Waiting)) => ("waits", Level::Warning),
            (true, false, _) => ("pending", Level::Neutral),
        }
    }

    /// Before the first sync no targets are known either.
    fn is_empty(self) -> bool {
        let is_settled = self.sync == Some(SyncState::Settled);
        is_settled && matches!(self.targets, Some(([], 0)))
    }

    /// Only if every target is shown, and none of them gets traffic.
    fn all_targets_are_out(self) -> bool {
        let is_out = |target: &TargetRow| matches!(target.level, Level::Bad | Level::Warning);
        let all_shown = matches!(self.targets, Some((targets, 0)) if !targets.is_empty() && targets.iter().all(is_out));
        all_shown || self.unhealthy == Unhealthy::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Level::{Bad, Good, Neutral, Warning};
    use SyncState::{Failing, Paused, Settled, Waiting, Working};

    fn facts(is_wanted: bool, has_address: bool, sync: Option<SyncState>) -> ServiceFacts<'static> {
        ServiceFacts {
            is_wanted,
            is_served: true,
            has_address,
            sync,
            targets: None,
            unhealthy: Unhealthy::None,
        }
    }

    #[test]
    fn a_service_is_as_good_as_its_last_sync() {
        for (wanted, address, sync, state, level) in [
            (true, false, None, "pending", Neutral),
            (true, false, Some(Working), "pending", Neutral),
            (true, false, Some(Waiting), "waits", Warning),
            (true, false, Some(Failing), "sync fails", Bad),
            (true, true, Some(Paused), "in service, paused", Warning),
            (true, false, Some(Paused), "paused", Warning),
            (false, true, Some(Paused), "paused, is not removed", Warning),
            (true, true, None, "in service", Good),
            (true, true, Some(Settled), "in service", Good),
            (true, true, Some(Working), "in service, changes", Good),
            (true, true, Some(Waiting), "in service, waits", Warning),
            (true, true, Some(Failing), "in service, sync fails", Bad),
            (false, true, Some(Failing), "cannot be removed", Bad),
            (false, true, Some(Waiting), "is being removed", Neutral),
            (false, false, None, "is being removed", Neutral),
        ] {
            let facts = facts(wanted, address, sync);
            assert_eq!(facts.state(), (state, level), "{facts:?}");
        }
    }

    #[test]
    fn unhealthy_targets_are_a_problem_and_worse_if_all_are() {
        for (unhealthy, state, level) in [
            (Unhealthy::None, "in service", Good),
            (Unhealthy::Some, "in service, targets unhealthy", Warning),
            (Unhealthy::All, "in service, no target serves", Bad),
        ] {
            let facts = ServiceFacts {
                unhealthy,
                ..facts(true, true, Some(Settled))
            };
            assert_eq!(facts.state(), (state, level));
        }
    }

    #[test]
    fn a_service_of_another_controller_is_not_pending() {
        for (sync, state) in [(None, NOT_SERVED), (Some(Failing), "sync fails")] {
            let facts = ServiceFacts {
                is_served: false,
                ..facts(true, false, sync)
            };
            assert_eq!(facts.state().0, state);
        }
    }

    #[test]
    fn a_service_whose_targets_all_are_out_is_not_in_service() {
        let none_serves = "in service, no target serves";
        for (case, sync, targets, hidden, state) in [
            (
                "no targets",
                Some(Settled),
                &[][..],
                0,
                "in service, no targets",
            ),
            ("not synced yet", None, &[], 0, "in service"),
            ("one is well", Some(Settled), &[Good, Bad], 0, "in service"),
            (
                "one may become so",
                Some(Settled),
                &[Neutral, Bad],
                0,
                "in service",
            ),
            (
                "others are not shown",
                Some(Settled),
                &[Bad],
                3,
                "in service",
            ),
            (
                "all are out",
                Some(Settled),
                &[Warning, Bad],
                0,
                none_serves,
            ),
            ("while it changes", Some(Working), &[Bad], 0, none_serves),
        ] {
            let targets: Vec<_> = targets
                .iter()
                .map(|level| TargetRow {
                    level: *level,
                    ..TargetRow::default()
                })
                .collect();
            let facts = ServiceFacts {
                targets: Some((&targets, hidden)),
                ..facts(true, true, sync)
            };
            assert_eq!(facts.state().0, state, "{case}");
        }
    }
}
