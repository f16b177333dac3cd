use std::collections::BTreeSet;

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;

use super::*;

type Present = BTreeMap<u64, TargetState>;

const SERVING: TargetState = TargetState::Serving;
const DRAINING: TargetState = TargetState::Draining;

fn wanted(ids: impl IntoIterator<Item = (u64, TargetState)>) -> DesiredTargets<u64> {
    let place = |(id, state)| {
        let node = format!("node-{id}");
        let zone = None;
        (id, DesiredTarget { node, zone, state })
    };
    DesiredTargets {
        places: ids.into_iter().map(place).collect(),
        unresolved: BTreeMap::new(),
        keeps_draining: false,
    }
}

fn serving(ids: &[u64]) -> impl Iterator<Item = (u64, TargetState)> + '_ {
    ids.iter().map(|id| (*id, SERVING))
}

fn add(target: u64) -> TargetChange<u64> {
    TargetChange::Add {
        target,
        needs_capacity: false,
    }
}

fn remove(target: u64) -> TargetChange<u64> {
    let is_last = false;
    TargetChange::Remove { target, is_last }
}

fn last(target: u64) -> TargetChange<u64> {
    let is_last = true;
    TargetChange::Remove { target, is_last }
}

fn diff(wanted: &DesiredTargets<u64>, present: &[u64], capacity: Capacity) -> TargetDiff<u64> {
    wanted.diff(&serving(present).collect(), 0, capacity, |_| false)
}

#[test]
fn changes_are_gathered_into_calls_that_keep_their_order() {
    let batches = |wanted_ids: &[u64], present: &[u64], limit| {
        let wanted = wanted(serving(wanted_ids));
        diff(&wanted, present, Capacity::of(limit)).batches(2)
    };
    let (add, remove) = (TargetBatch::Add::<u64>, TargetBatch::Remove::<u64>);
    let free = batches(&[1, 2, 3], &[8], 9);
    assert_eq!(free, [add(vec![1, 2]), add(vec![3]), remove(vec![8])]);
    let full = batches(&[1, 2, 3], &[7, 8, 9], 3);
    let expected = [
        remove(vec![7, 8]),
        remove(vec![9]),
        add(vec![1, 2]),
        add(vec![3]),
    ];
    assert_eq!(full, expected);
    assert_eq!(batches(&[1], &[1], 9), []);
}

#[test]
fn targets_are_added_before_others_are_removed_and_then_take_their_places_one_by_one() {
    for (case, present, limit, expected) in [
        (
            "room for one",
            &[1, 8][..],
            3,
            vec![add(2), remove(8), add(3)],
        ),
        (
            "no room",
            &[1, 8, 9],
            3,
            vec![remove(8), add(2), remove(9), add(3)],
        ),
        (
            "room for all",
            &[8, 9],
            25,
            vec![add(1), add(2), add(3), last(8), last(9)],
        ),
        (
            "everything is replaced without room",
            &[7, 8, 9],
            3,
            vec![last(7), add(1), last(8), add(2), last(9), add(3)],
        ),
    ] {
        let found = diff(&wanted(serving(&[1, 2, 3])), present, Capacity::of(limit));
        assert_eq!(found.changes, expected, "{case}");
        assert_eq!(found.left_out, Vec::<String>::new(), "{case}");
    }
}

#[test]
fn a_balancer_that_is_full_takes_one_for_each_that_is_removed() {
    let full = Capacity {
        is_full: true,
        ..Capacity::of(25)
    };
    let found = diff(&wanted(serving(&[1, 2])), &[8], full);
    assert_eq!(found.changes, [last(8), add(1)]);
    assert_eq!(found.left_out, ["node-2"]);
}

#[test]
fn what_only_fits_the_planned_type_says_so() {
    let growing = Capacity {
        planned: 75,
        ..Capacity::of(2)
    };
    let found = diff(&wanted(serving(&[1, 2, 3])), &[1], growing);
    let beyond = TargetChange::Add {
        target: 3,
        needs_capacity: true,
    };
    assert_eq!(found.changes, [add(2), beyond]);
}

#[test]
fn targets_of_another_kind_take_places_and_kept_ones_stay() {
    let wanted = wanted(serving(&[1, 2]));
    let present: Present = serving(&[1, 9]).collect();
    let found = wanted.diff(&present, 1, Capacity::of(3), |target| *target == 9);
    assert_eq!(found.changes, []);
    assert_eq!(found.left_out, ["node-2"]);
}

#[test]
fn draining_targets_drain_once_return_and_are_never_joined() {
    let of = |state, present: &[(u64, TargetState)]| {
        let present: Present = present.iter().copied().collect();
        let wanted = wanted([(1, state), (2, SERVING)]);
        wanted
            .diff(&present, 0, Capacity::UNLIMITED, |_| false)
            .changes
    };
    for (case, state, present, expected) in [
        (
            "begins",
            DRAINING,
            vec![(1, SERVING), (2, SERVING)],
            vec![TargetChange::Drain(1)],
        ),
        (
            "goes on",
            DRAINING,
            vec![(1, DRAINING), (2, SERVING)],
            vec![],
        ),
        (
            "is over",
            SERVING,
            vec![(1, DRAINING), (2, SERVING)],
            vec![add(1)],
        ),
        ("is not joined", DRAINING, vec![(2, SERVING)], vec![]),
    ] {
        assert_eq!(of(state, &present), expected, "{case}");
    }
}

#[test]
fn the_last_targets_stay_while_a_wanted_node_cannot_be_resolved() {
    let mut unresolved = wanted([]);
    unresolved
        .unresolved
        .insert("node-1".to_owned(), "it has no ID".to_owned());
    assert_eq!(diff(&unresolved, &[1], Capacity::UNLIMITED).changes, []);
    assert_eq!(
        diff(&wanted([]), &[1], Capacity::UNLIMITED).changes,
        [last(1)]
    );
    let mut one_left = wanted(serving(&[2]));
    one_left.unresolved.clone_from(&unresolved.unresolved);
    let found = diff(&one_left, &[1, 2], Capacity::UNLIMITED);
    assert_eq!(found.changes, [remove(1)], "another one serves");
}

/// Targets 1 to 9: the first six in zone a, then two in b, one in c.
fn in_zones() -> DesiredTargets<u64> {
    let mut targets = wanted((1..10).map(|id| (id, SERVING)));
    let zones = ["a", "a", "a", "a", "a", "a", "b", "b", "c"];
    for (target, zone) in targets.places.values_mut().zip(zones) {
        target.zone = Some(zone.to_owned());
    }
    targets
}

#[test]
fn where_not_all_fit_zones_are_filled_evenly_and_what_is_there_stays() {
    for (case, present, limit, added) in [
        ("none yet", &[][..], 4, &[1, 7, 9, 2][..]),
        ("one of them", &[], 1, &[1]),
        ("zone a has some", &[1, 2], 5, &[7, 9, 8]),
        ("it is full", &[1, 2, 3, 4], 4, &[]),
        (
            "all fit, in order of names",
            &[],
            9,
            &[1, 2, 3, 4, 5, 6, 7, 8, 9],
        ),
    ] {
        let present = present.iter().map(|id| (*id, SERVING)).collect();
        let found = in_zones().diff(&present, 0, Capacity::of(limit), |_| false);
        let added: Vec<_> = added.iter().map(|id| add(*id)).collect();
        assert_eq!(found.changes, added, "{case}");
        let left_out = 9 - present.len() - added.len();
        assert_eq!(found.left_out.len(), left_out, "{case}");
        assert!(found.left_out.is_sorted(), "{case}");
    }
}

#[test]
fn what_an_earlier_leader_drains_stays_while_that_is_asked_for() {
    for (keeps_draining, expected) in [(true, vec![remove(3)]), (false, vec![remove(2), remove(3)])]
    {
        let mut targets = wanted(serving(&[1]));
        targets.keeps_draining = keeps_draining;
        let present = [(1, SERVING), (2, DRAINING), (3, SERVING)].into();
        let found = targets.diff(&present, 0, Capacity::UNLIMITED, |_| false);
        assert_eq!(found.changes, expected, "{keeps_draining}");
    }
}

proptest! {
    #[test]
    fn the_changes_lead_to_the_desired_targets_and_never_exceed_the_limit(
        ids in btree_set(0u64..12, 0..8),
        present in btree_map(0u64..12, Just(SERVING), 0..8),
        spare in 0usize..4,
    ) {
        let limit = present.len() + spare;
        let wanted = wanted(ids.iter().map(|id| (*id, SERVING)));
        let found = wanted.diff(&present, 0, Capacity::of(limit), |_| false);
        let mut after: BTreeSet<u64> = present.keys().copied().collect();
        for change in &found.changes {
            match change {
                TargetChange::Add { target, .. } => prop_assert!(after.insert(*target)),
                TargetChange::Remove { target, .. } => prop_assert!(after.remove(target)),
                TargetChange::Drain(_) => prop_assert!(false, "nothing drains"),
            }
            prop_assert!(after.len() <= limit);
        }
        prop_assert!(after.is_subset(&ids));
        prop_assert_eq!(after.len() + found.left_out.len(), ids.len());
    }
}
