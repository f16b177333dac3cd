//! What the controller remembers of a balancer's targets, and how removed targets drain first. Pure.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use cloudkeel_api::{NodeAddress, NodeFacts, ProviderId, Target, TargetBy, TargetState};
use tokio::time::{Duration, Instant};

/// What distinguishes one target from another. Nothing else about a Node matters to a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetKey {
    pub(crate) provider_id: Option<ProviderId>,
    pub(crate) addresses: Vec<NodeAddress>,
    pub(crate) by: TargetBy,
    pub(crate) state: TargetState,
}

/// The keys of targets, by name of the Node.
pub(crate) type TargetKeys = BTreeMap<String, TargetKey>;

/// Since when targets are no longer chosen, by name of the Node.
pub(crate) type RemovedSince = BTreeMap<String, Instant>;

pub(crate) fn keys_of(targets: &BTreeMap<String, Target>) -> TargetKeys {
    let key = |target: &Target| TargetKey {
        provider_id: target.node.provider_id.clone(),
        addresses: target.node.addresses.clone(),
        by: target.by,
        state: target.state,
    };
    let keys = targets.iter();
    keys.map(|(name, target)| (name.clone(), key(target)))
        .collect()
}

impl TargetKey {
    pub(crate) fn is_serving(&self) -> bool {
        self.state == TargetState::Serving
    }

    /// The facts of a Node that is gone, as far as a balancer needs them.
    pub(super) fn facts(&self, name: &str) -> NodeFacts {
        NodeFacts {
            name: name.to_owned(),
            provider_id: self.provider_id.clone(),
            addresses: self.addresses.clone(),
            ..NodeFacts::default()
        }
    }
}

/// Keeps equal sets once: most balancers of a cloud have the same targets, and there may be a thousand
/// of each.
#[derive(Default)]
pub(super) struct SharedKeys(Vec<Weak<TargetKeys>>);

impl SharedKeys {
    pub(super) fn share(&mut self, keys: TargetKeys) -> Arc<TargetKeys> {
        self.0.retain(|set| set.strong_count() > 0);
        let mut known = self.0.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|set| **set == keys) {
            return known;
        }
        let set = Arc::new(keys);
        self.0.push(Arc::downgrade(&set));
        set
    }
}

/// The applied targets that are no longer chosen and stay for `drain` before they are left out, each in the state that
/// `stays_as` says, and when the first of them is done. `None` leaves one out at once.
///
/// Nothing drains if no other target serves: then it would only cut off those that still could.
pub(super) fn drain_removed(
    chosen: &TargetKeys,
    applied: &TargetKeys,
    removed: &mut RemovedSince,
    now: Instant,
    drain: Duration,
    stays_as: impl Fn(&str) -> Option<TargetState>,
) -> (TargetKeys, Option<Instant>) {
    removed.retain(|name, _| applied.contains_key(name) && !chosen.contains_key(name));
    let mut draining = TargetKeys::new();
    let mut next: Option<Instant> = None;
    if !chosen.values().any(TargetKey::is_serving) {
        return (draining, next);
    }
    for (name, key) in applied {
        let Some(state) = stays_as(name).filter(|_| !chosen.contains_key(name)) else {
            continue;
        };
        let due = *removed.entry(name.clone()).or_insert(now) + drain;
        if due > now {
            let key = key.clone();
            draining.insert(name.clone(), TargetKey { state, ..key });
            next = Some(next.map_or(due, |next| next.min(due)));
        }
    }
    (draining, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn keys(names: &[&str]) -> TargetKeys {
        let key = |name: &&str| TargetKey {
            provider_id: format!("local://p/{name}").parse().ok(),
            addresses: Vec::new(),
            by: TargetBy::Machine,
            state: TargetState::Serving,
        };
        let names = names.iter();
        names.map(|name| ((*name).to_owned(), key(name))).collect()
    }

    fn states(keys: &TargetKeys) -> Vec<(&str, TargetState)> {
        let states = keys.iter();
        states
            .map(|(name, key)| (name.as_str(), key.state))
            .collect()
    }

    /// Adds those that drain for 30 seconds. Returns when the first of them is done.
    fn drain(
        chosen: &mut TargetKeys,
        applied: &TargetKeys,
        removed: &mut RemovedSince,
        now: Instant,
    ) -> Option<Instant> {
        let stays_as = |_: &str| Some(TargetState::Draining);
        let (draining, next) = drain_removed(chosen, applied, removed, now, 30 * SECOND, stays_as);
        chosen.extend(draining);
        next
    }

    #[tokio::test(start_paused = true)]
    async fn a_removed_target_drains_for_its_time_and_is_then_left_out() {
        use TargetState::{Draining, Serving};
        let start = Instant::now();
        let at = |seconds: u32| start + seconds * SECOND;
        let applied = keys(&["a", "b"]);
        let mut removed = RemovedSince::new();

        let mut chosen = keys(&["a", "c"]);
        let next = drain(&mut chosen, &applied, &mut removed, at(0));
        let drained = [("a", Serving), ("b", Draining), ("c", Serving)];
        assert_eq!(states(&chosen), drained);
        assert_eq!(next, Some(start + 30 * SECOND));

        let applied = chosen;
        let mut chosen = keys(&["a", "c"]);
        let next = drain(&mut chosen, &applied, &mut removed, at(29));
        assert_eq!(chosen, applied, "nothing differs meanwhile");
        assert_eq!(next, Some(start + 30 * SECOND), "its time does not grow");

        let mut chosen = keys(&["a", "c"]);
        let next = drain(&mut chosen, &applied, &mut removed, at(30));
        assert_eq!(states(&chosen), [("a", Serving), ("c", Serving)]);
        assert_eq!(next, None);

        let applied = chosen.clone();
        drain(&mut chosen, &applied, &mut removed, at(31));
        assert!(removed.is_empty(), "nothing is remembered for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_comes_back_serves_again_and_gets_its_full_time_later() {
        let start = Instant::now();
        let applied = keys(&["a", "b"]);
        let mut removed = RemovedSince::new();
        drain(&mut keys(&["a"]), &applied, &mut removed, start);
        let mut back = keys(&["a", "b"]);
        drain(&mut back, &applied, &mut removed, start + 20 * SECOND);
        assert!(removed.is_empty());
        let later = start + 40 * SECOND;
        let next = drain(&mut keys(&["a"]), &applied, &mut removed, later);
        assert_eq!(next, Some(start + 70 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_drains_if_no_target_is_left() {
        let applied = keys(&["a", "b"]);
        let mut chosen = TargetKeys::new();
        let mut removed = RemovedSince::new();
        let next = drain(&mut chosen, &applied, &mut removed, Instant::now());
        assert_eq!((chosen.len(), next), (0, None));
    }

    #[test]
    fn equal_sets_are_kept_once_and_forgotten_with_their_last_user() {
        let mut sets = SharedKeys::default();
        let first = sets.share(keys(&["a", "b"]));
        let same = sets.share(keys(&["a", "b"]));
        let other = sets.share(keys(&["a"]));
        assert!(Arc::ptr_eq(&first, &same) && !Arc::ptr_eq(&first, &other));
        drop((first, same, other));
        sets.share(TargetKeys::new());
        assert_eq!(sets.0.len(), 1);
    }
}
