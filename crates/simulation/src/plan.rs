//! What happens in a run: drawn from a seed before it begins, so that it can be printed, replayed and
//! made shorter.

use std::fmt;
use std::time::Duration;

use crate::action::Action;
use crate::managers::LEASE_DURATION;
use crate::rng::Rng;
use crate::scenarios;
use crate::topology::Topology;

/// How long things may happen.
pub(crate) const FAULT_PERIOD: Duration = Duration::from_mins(30);

/// One thing that happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimedAction {
    /// When, since the beginning.
    pub(crate) at: Duration,
    /// What.
    pub(crate) action: Action,
}

/// Everything that happens, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) topology: Topology,
    pub(crate) actions: Vec<TimedAction>,
}

impl Plan {
    /// The plan that belongs to a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let topology = Topology::of_seed(seed);
        let count = rng.between(6, 36);
        let mut actions: Vec<_> = (0..count)
            .map(|_| TimedAction {
                at: rng.time(FAULT_PERIOD),
                action: Action::random(&mut rng, topology.machines),
            })
            .collect();
        actions.extend(scenarios::random(&mut rng));
        actions.extend(scenarios::of_processes(&mut rng));
        actions.extend(scenarios::of_services(&mut rng));
        if topology.first_machines == 0 {
            actions.extend(scenarios::first_machines(&mut rng));
        }
        let layout = topology.layout;
        if layout.has_several() {
            for timed in &mut actions {
                let action = timed.action.clone();
                timed.action = action.among_accounts(&mut rng, layout);
            }
            actions.extend(scenarios::of_accounts(&mut rng, layout));
        }
        actions.sort_by_key(|timed| timed.at);
        Self { topology, actions }
    }

    /// Whether a leader stands still for longer than its lease lasts.
    pub(crate) fn freezes_a_leader(&self) -> bool {
        let past_lease = |lasts: Duration| lasts > LEASE_DURATION.unsigned_abs();
        let freezes = |timed: &TimedAction| match timed.action {
            Action::FreezeLeader { lasts } => past_lease(lasts),
            _ => false,
        };
        self.actions.iter().any(freezes)
    }

    /// Whether this happens.
    pub(crate) fn has(&self, action: &Action) -> bool {
        self.actions.iter().any(|timed| timed.action == *action)
    }

    /// Whether this happens to all machines that are mostly there from the start.
    pub(crate) fn has_all(&self, action: impl Fn(usize) -> Action) -> bool {
        let happens = |wanted: &Action| self.actions.iter().any(|timed| timed.action == *wanted);
        scenarios::FIRST_MACHINES
            .map(action)
            .all(|action| happens(&action))
    }

    /// How many things happen.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether nothing happens.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The same without what happens from `start` on, for `count` things.
    pub(crate) fn without(&self, start: usize, count: usize) -> Self {
        let kept = |place: &usize| !(start..start + count).contains(place);
        let actions = self.actions.iter().enumerate();
        Self {
            topology: self.topology,
            actions: actions
                .filter(|(place, _)| kept(place))
                .map(|(_, timed)| timed.clone())
                .collect(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:?}", self.topology)?;
        for timed in &self.actions {
            let seconds = timed.at.as_secs_f64();
            writeln!(f, "  {seconds:>7.1} s  {}", timed.action)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_plan_and_another_seed_another() {
        assert_eq!(Plan::of_seed(7), Plan::of_seed(7));
        assert_ne!(Plan::of_seed(7), Plan::of_seed(8));
    }

    #[test]
    fn actions_are_in_order_and_within_the_time_of_faults() {
        for seed in 0..50 {
            let plan = Plan::of_seed(seed);
            assert!(!plan.is_empty());
            assert!(plan.actions.is_sorted_by_key(|timed| timed.at));
            assert!(plan.actions.iter().all(|h| h.at <= FAULT_PERIOD));
        }
    }

    #[test]
    fn a_part_can_be_left_out() {
        let plan = Plan::of_seed(3);
        let shorter = plan.without(1, 2);
        assert_eq!(shorter.len(), plan.len() - 2);
        assert_eq!(shorter.actions[0], plan.actions[0]);
        assert_eq!(shorter.actions[1], plan.actions[3]);
    }
}
