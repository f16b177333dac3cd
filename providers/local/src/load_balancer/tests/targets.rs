//! Which targets there are, and how they come and go.

use super::*;

/// `1 2d ?` are machine 1, machine 2 draining, and a node that cannot be resolved.
fn read_targets(text: &str) -> DesiredTargets<TargetAt> {
    let mut targets = DesiredTargets::default();
    let wanted = |state| DesiredTarget {
        node: String::new(),
        zone: None,
        state,
    };
    for word in text.split_whitespace() {
        let number = |digits: &str| TargetAt::Machine(digits.parse().unwrap());
        match word.strip_suffix('d') {
            _ if word == "?" => {
                targets.unresolved.insert("node".into(), "why".into());
            }
            Some(digits) => {
                let place = number(digits);
                let state = api::TargetState::Draining;
                targets.places.insert(place, wanted(state));
            }
            None => {
                let state = api::TargetState::Serving;
                targets.places.insert(number(word), wanted(state));
            }
        }
    }
    targets
}

/// `+1 ~2 -3` are: add machine 1, drain 2, remove 3.
fn written(change: &TargetChange) -> String {
    let signed = |sign: char, places: &[TargetAt]| -> Vec<String> {
        let places = places.iter();
        places
            .map(|at| format!("{sign}{at}").replace("machine ", ""))
            .collect()
    };
    let parts = [
        signed('+', &change.add),
        signed('~', &change.drain),
        signed('-', &change.remove),
    ];
    parts.concat().join(" ")
}

#[test]
fn targets_are_added_drained_and_removed_in_one_go() {
    for (case, want, have, expected) in [
        ("settled", "1", "1", ""),
        ("settled and draining", "1 2d", "1 2d", ""),
        ("all at once", "1 2d", "2 3", "+1 ~2 -3"),
        ("drained and gone", "1", "1 2d", "-2"),
        ("serving again", "1", "1d", "+1"),
        ("leaving and never there", "1d", "", ""),
        ("really nothing wanted", "", "1", "-1"),
        ("wanted but not resolved", "?", "1", ""),
        ("only draining ones resolved", "1d ?", "1 2", ""),
        ("one resolved serves", "2 ?", "1", "+2 -1"),
    ] {
        let have = read_targets(have).places.into_iter();
        let have: Vec<_> = have.map(|(at, target)| wire(at, target.state)).collect();
        let exclusive = Sharing::default();
        let diff = target_diff(&read_targets(want), &have, &exclusive, &facts());
        let change = target_change(diff);
        assert_eq!(written(&change), expected, "{case}");
    }
}

fn wire(at: TargetAt, state: api::TargetState) -> Target {
    match state {
        api::TargetState::Serving => serving(at),
        api::TargetState::Draining => draining(at),
    }
}

fn only_target(node: NodeFacts, by: TargetBy, facts: &Facts) -> DesiredTargets<TargetAt> {
    let target = api::Target {
        node: node.into(),
        by,
        state: api::TargetState::Draining,
    };
    let mut spec = spec(&[80], &[]);
    spec.targets.insert("n".into(), target);
    targets(&spec, facts)
}

#[test]
fn targets_are_reached_by_machine_or_by_address() {
    let no_drain = without(|f| f.drain = false);
    let by_ip = draining(TargetAt::Ip([10, 0, 0, 1].into()));
    let machine = TargetAt::Machine(1);
    for (case, by, facts, expected) in [
        ("by machine", TargetBy::Machine, facts(), draining(machine)),
        ("by address", TargetBy::Address, facts(), by_ip),
        ("no draining", TargetBy::Machine, no_drain, serving(machine)),
    ] {
        let places = only_target(node(1), by, &facts).places.into_iter();
        let found: Vec<_> = places.map(|(at, target)| wire(at, target.state)).collect();
        assert_eq!(found, [expected], "{case}");
    }
}

#[test]
fn a_target_that_cannot_be_reached_says_why() {
    use TargetBy::{Address, Machine};
    let with_id = |id: &str| NodeFacts {
        provider_id: id.parse().ok(),
        ..node(1)
    };
    let no_address = NodeFacts {
        addresses: vec![],
        ..node(1)
    };
    let no_addresses = without(|f| f.targets_by_address = false);
    for (case, node, by, facts, why) in [
        ("no ID", with_id(""), Machine, facts(), "no provider ID"),
        (
            "other cloud",
            with_id("x://1"),
            Machine,
            facts(),
            "local://",
        ),
        (
            "other project",
            with_id("local://x/1"),
            Machine,
            facts(),
            "another project",
        ),
        ("no address", no_address, Address, facts(), "no address"),
        (
            "not here",
            node(1),
            Address,
            no_addresses,
            "only takes machines",
        ),
    ] {
        let DesiredTargets {
            places, unresolved, ..
        } = only_target(node, by, &facts);
        assert!(places.is_empty(), "{case}");
        assert!(unresolved["n"].contains(why), "{case}: {unresolved:?}");
    }
}

#[test]
fn machines_that_the_cloud_does_not_know_are_left_out() {
    let spec = spec(&[80], &[1, 2]);
    let mut desired = Desired::of(&spec, &facts());
    desired.leave_out(&BTreeSet::from([2]));
    let mut have = Observed {
        desired: Some(desired),
        ..Observed::default()
    };
    let planned = steps(&spec, &have);
    let [Step::Create(new)] = planned.as_slice() else {
        panic!("{planned:?}");
    };
    assert_eq!(new.targets, [serving(TargetAt::Machine(1))]);

    let mut balancer = built(&spec);
    balancer.targets = vec![serving(TargetAt::Machine(1))];
    have.found = Classified::ours(balancer);
    assert_eq!(steps(&spec, &have), []);
}
