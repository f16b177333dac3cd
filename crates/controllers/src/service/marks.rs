//! What is remembered of a balancer's targets, and how those that leave are let go. Pure.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use cloudkeel_api::{
    AddressKind, NodeAddress, NodeFacts, ProviderId, Shared, Target, TargetBy, TargetState,
};
use tokio::time::{Duration, Instant};

use crate::report::TargetUse;

/// What tells one target from another. Everything else about a Node is of no interest to a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    provider_id: Option<ProviderId>,
    addresses: Vec<NodeAddress>,
    by: TargetBy,
    state: TargetState,
}

/// Targets by name of the Node.
pub(super) type Marks = BTreeMap<String, Mark>;

pub(super) fn marks_of(targets: &BTreeMap<String, Target>) -> Marks {
    targets
        .iter()
        .map(|(name, target)| (name.clone(), Mark::from(target)))
        .collect()
}

impl From<&Target> for Mark {
    fn from(target: &Target) -> Self {
        Self {
            provider_id: target.node.provider_id.clone(),
            addresses: target.node.addresses.clone(),
            by: target.by,
            state: target.state,
        }
    }
}

impl Mark {
    /// The machine that it means to the cloud, if it has an ID.
    pub(super) const fn provider_id(&self) -> Option<&ProviderId> {
        self.provider_id.as_ref()
    }

    /// Why the cloud cannot find it yet: a provider adds such a target once it can be found.
    pub(super) fn unresolved(&self) -> Option<TargetUse> {
        let is_address = |address: &NodeAddress| address.kind != AddressKind::Hostname;
        match self.by {
            TargetBy::Machine if self.provider_id.is_none() => Some(TargetUse::NoProviderId),
            TargetBy::Address if !self.addresses.iter().any(is_address) => {
                Some(TargetUse::NoAddress)
            }
            TargetBy::Machine | TargetBy::Address => None,
        }
    }
}

/// A target, or what is remembered of it.
pub(super) trait Aimed: From<Target> {
    fn is_serving(&self) -> bool;
}

impl Aimed for Target {
    fn is_serving(&self) -> bool {
        self.state == TargetState::Serving
    }
}

impl From<Target> for Mark {
    fn from(target: Target) -> Self {
        Self::from(&target)
    }
}

impl Aimed for Mark {
    fn is_serving(&self) -> bool {
        self.state == TargetState::Serving
    }
}

/// Keeps equal sets once: most balancers of a cloud have the same targets, and there may be a
/// thousand of each.
#[derive(Default)]
pub(super) struct MarkSets(Vec<Weak<Marks>>);

impl MarkSets {
    pub(super) fn keep(&mut self, marks: Marks) -> Arc<Marks> {
        self.0.retain(|set| set.strong_count() > 0);
        let known = self.0.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.into_iter().find(|set| **set == marks) {
            return known;
        }
        let set = Arc::new(marks);
        self.0.push(Arc::downgrade(&set));
        set
    }
}

/// Since when Nodes are on their way out of a balancer, by name.
pub(super) type Leaving = BTreeMap<String, Instant>;

/// Targets that leave.
pub(super) struct Drained<T> {
    /// Those that are still to be drained.
    pub(super) targets: Vec<(String, T)>,
    /// When the first of them has had its time.
    pub(super) next: Option<Instant>,
}

impl<T> Default for Drained<T> {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            next: None,
        }
    }
}

/// Lets targets go that are no longer chosen: those that served until now are drained for a while
/// before they are left out.
///
/// Nothing is drained if nobody else serves: then it makes no difference but to those who are cut off.
pub(super) fn let_go<T: Aimed>(
    chosen: &BTreeMap<String, T>,
    applied: &Marks,
    leaving: &mut Leaving,
    facts: impl Fn(&str) -> Option<Shared<NodeFacts>>,
    patience: Patience,
) -> Drained<T> {
    let is_served = chosen.values().any(Aimed::is_serving);
    leaving.retain(|name, _| applied.contains_key(name) && !chosen.contains_key(name));
    let mut drained = Drained::default();
    if !is_served {
        return drained;
    }
    for (name, mark) in applied {
        if chosen.contains_key(name) {
            continue;
        }
        let since = *leaving.entry(name.clone()).or_insert(patience.now);
        let due = since + patience.drain;
        if let Some(node) = facts(name).filter(|_| due > patience.now) {
            let state = TargetState::Draining;
            let by = mark.by;
            let target = Target { node, by, state };
            drained.targets.push((name.clone(), target.into()));
            drained.next = Some(drained.next.map_or(due, |next| next.min(due)));
        }
    }
    drained
}

/// How long a target may take to leave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) now: Instant,
    pub(super) drain: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Shared<NodeFacts> {
        let facts = NodeFacts {
            name: name.to_owned(),
            provider_id: format!("local://p/{name}").parse().ok(),
            ..NodeFacts::default()
        };
        facts.into()
    }

    fn targets(names: &[&str]) -> BTreeMap<String, Target> {
        let target = |name: &&str| Target {
            node: node(name),
            by: TargetBy::Machine,
            state: TargetState::Serving,
        };
        names
            .iter()
            .map(|name| ((*name).to_owned(), target(name)))
            .collect()
    }

    fn states(targets: &BTreeMap<String, Target>) -> Vec<(&str, TargetState)> {
        let states = targets.iter();
        states.map(|(name, t)| (name.as_str(), t.state)).collect()
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// Adds those that are drained. Returns when the first of them has had its time.
    fn let_go(
        chosen: &mut BTreeMap<String, Target>,
        applied: &Marks,
        leaving: &mut Leaving,
        facts: impl Fn(&str) -> Option<Shared<NodeFacts>>,
        patience: Patience,
    ) -> Option<Instant> {
        let drained = super::let_go(chosen, applied, leaving, facts, patience);
        chosen.extend(drained.targets);
        drained.next
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_is_drained_for_its_time_and_then_left_out() {
        use TargetState::{Draining, Serving};
        let start = Instant::now();
        let at = |seconds: u32| Patience {
            now: start + seconds * SECOND,
            drain: 30 * SECOND,
        };
        let applied = marks_of(&targets(&["a", "b"]));
        let known = |name: &str| Some(node(name));
        let mut leaving = Leaving::new();

        let mut chosen = targets(&["a", "c"]);
        let next = let_go(&mut chosen, &applied, &mut leaving, known, at(0));
        let drained = [("a", Serving), ("b", Draining), ("c", Serving)];
        assert_eq!(states(&chosen), drained);
        assert_eq!(next, Some(start + 30 * SECOND));

        let applied = marks_of(&chosen);
        let mut chosen = targets(&["a", "c"]);
        let next = let_go(&mut chosen, &applied, &mut leaving, known, at(29));
        assert_eq!(marks_of(&chosen), applied, "nothing differs meanwhile");
        assert_eq!(next, Some(start + 30 * SECOND), "its time does not grow");

        let mut chosen = targets(&["a", "c"]);
        let next = let_go(&mut chosen, &applied, &mut leaving, known, at(30));
        assert_eq!(states(&chosen), [("a", Serving), ("c", Serving)]);
        assert_eq!(next, None);

        let applied = marks_of(&chosen);
        let_go(&mut chosen, &applied, &mut leaving, known, at(31));
        assert!(leaving.is_empty(), "nothing is remembered for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_serves_again_and_gets_its_full_time_later() {
        let start = Instant::now();
        let patience = |now| Patience {
            now,
            drain: 30 * SECOND,
        };
        let applied = marks_of(&targets(&["a", "b"]));
        let known = |name: &str| Some(node(name));
        let mut leaving = Leaving::new();
        let_go(
            &mut targets(&["a"]),
            &applied,
            &mut leaving,
            known,
            patience(start),
        );
        let mut back = targets(&["a", "b"]);
        let later = start + 20 * SECOND;
        let_go(&mut back, &applied, &mut leaving, known, patience(later));
        assert!(leaving.is_empty());
        let next = let_go(
            &mut targets(&["a"]),
            &applied,
            &mut leaving,
            known,
            patience(start + 40 * SECOND),
        );
        assert_eq!(next, Some(start + 70 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_drains_if_nobody_is_left_or_nothing_is_known() {
        let patience = Patience {
            now: Instant::now(),
            drain: 30 * SECOND,
        };
        let applied = marks_of(&targets(&["a", "b"]));
        for (case, names, known) in [
            ("nobody is left", &[][..], true),
            ("nobody knows the leaving one", &["a"], false),
        ] {
            let mut chosen = targets(names);
            let facts = |name: &str| known.then(|| node(name));
            let next = let_go(&mut chosen, &applied, &mut Leaving::new(), facts, patience);
            assert_eq!(chosen.len(), names.len(), "{case}");
            assert_eq!(next, None, "{case}");
        }
    }

    #[test]
    fn equal_sets_are_kept_once_and_forgotten_with_their_last_user() {
        let mut sets = MarkSets::default();
        let first = sets.keep(marks_of(&targets(&["a", "b"])));
        let same = sets.keep(marks_of(&targets(&["a", "b"])));
        let other = sets.keep(marks_of(&targets(&["a"])));
        assert!(Arc::ptr_eq(&first, &same) && !Arc::ptr_eq(&first, &other));
        drop((first, same, other));
        sets.keep(Marks::new());
        assert_eq!(sets.0.len(), 1);
    }
}
