//! Which targets a balancer gets.

use std::collections::BTreeSet;

use cloudkeel_api::AddressKind;
use cloudkeel_toolkit::{Capacity, Sharing, TargetChange, TargetDiff};

use super::super::targets::{Dedicated, TargetAt};
use super::*;

fn asked(pairs: &[(&str, &str)]) -> Desired {
    let mut spec = spec(&[80], &[]);
    annotate(&mut spec, pairs);
    Desired::of(&spec, &BalancerDefaults::default())
}

fn server(id: u64) -> TargetAt {
    TargetAt::Server(id)
}

fn ip(text: &str) -> TargetAt {
    TargetAt::Ip(text.parse().unwrap())
}

fn with(ids: impl IntoIterator<Item = HetznerId>) -> LoadBalancerSpec {
    LoadBalancerSpec {
        targets: ids.into_iter().map(target).collect(),
        ..spec(&[80], &[])
    }
}

fn places(wanted: &Wanted) -> Vec<TargetAt> {
    wanted.targets.places.keys().copied().collect()
}

/// An account with one dedicated server, and its address.
fn account(address: Option<&str>) -> Dedicated {
    let address = address.map(|text| text.parse().unwrap());
    Dedicated::Known(BTreeMap::from([(9, address)]))
}

fn reasons(wanted: &Wanted) -> Vec<&str> {
    wanted.events.iter().map(|event| &*event.reason).collect()
}

#[test]
fn nodes_of_others_are_left_out_and_reported() {
    for (case, id) in [
        ("another cloud's", Some("aws:///eu-west-1a/i-0abc")),
        ("no number", Some("hcloud://x")),
        ("none yet", None),
    ] {
        let mut desired = with([HetznerId::Cloud(1), HetznerId::Cloud(2)]);
        let other = desired.targets.get_mut("node-2").unwrap();
        other.node.provider_id = id.map(|id| id.parse().unwrap());
        let wanted = Wanted::of(&desired, &asked(&[]), &Dedicated::Off);
        assert_eq!(places(&wanted), [server(1)], "{case}");
        assert_eq!(reasons(&wanted), ["UnknownProviderIDPrefix"], "{case}");
        assert_eq!(wanted.targets.unresolved.len(), 1, "{case}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn dedicated_servers_are_reached_by_the_address_that_is_known() {
    let known = || account(Some("192.0.2.9"));
    let private = [("use-private-ip", "true")];
    for (case, pairs, dedicated, has_internal, expected, events) in [
        ("public", &[][..], known(), true, Some("192.0.2.9"), vec![]),
        ("private", &private, known(), true, Some("10.0.0.9"), vec![]),
        (
            "private, but the Node has no such address",
            &private,
            known(),
            false,
            Some("192.0.2.9"),
            vec!["InternalIPNotConfigured"],
        ),
        (
            "Robot does not know it",
            &[],
            Dedicated::Known(BTreeMap::new()),
            true,
            None,
            vec!["ServerNotFound"],
        ),
        (
            "it has no IPv4 address",
            &[],
            account(None),
            true,
            None,
            vec!["ServerNotFound"],
        ),
        (
            "private without credentials",
            &private,
            Dedicated::NoCredentials,
            true,
            Some("10.0.0.9"),
            vec![],
        ),
        (
            "private without credentials and address",
            &private,
            Dedicated::NoCredentials,
            false,
            None,
            vec!["InternalIPNotConfigured", "ServerNotFound"],
        ),
        (
            "public without credentials",
            &[],
            Dedicated::NoCredentials,
            true,
            None,
            vec!["ServerNotFound"],
        ),
        (
            "Robot is off",
            &[],
            Dedicated::Off,
            true,
            None,
            vec!["ServerNotFound"],
        ),
        (
            "Robot does not answer",
            &[],
            Dedicated::Unknown("x".into()),
            true,
            None,
            vec![],
        ),
    ] {
        let mut desired = with([HetznerId::Robot(9)]);
        if !has_internal {
            let target = desired.targets.get_mut("node-9").unwrap();
            let addresses = &mut target.node.addresses;
            addresses.retain(|address| address.kind != AddressKind::InternalIp);
        }
        let wanted = Wanted::of(&desired, &asked(pairs), &dedicated);
        assert_eq!(places(&wanted), expected.map(ip).as_slice(), "{case}");
        assert_eq!(reasons(&wanted), events, "{case}");
    }
}

#[test]
fn nodes_of_other_clouds_are_reached_by_address() {
    let mut desired = with([HetznerId::Cloud(1)]);
    let other = desired.targets.get_mut("node-1").unwrap();
    other.by = TargetBy::Address;
    let address = NodeAddress::external("192.0.2.7".parse().unwrap());
    other.node.addresses.push(address);
    let public = Wanted::of(&desired, &asked(&[]), &Dedicated::Off);
    assert_eq!(places(&public), [ip("192.0.2.7")]);
    let private = asked(&[("use-private-ip", "true")]);
    let private = Wanted::of(&desired, &private, &Dedicated::Off);
    assert_eq!(places(&private), [ip("10.0.0.1")]);
}

fn differ(wanted: &Wanted, have: Vec<Target>, capacity: Capacity) -> TargetDiff<TargetAt> {
    let have = LoadBalancer {
        targets: have,
        ..balancer()
    };
    wanted.diff(&have, capacity, &Sharing::default())
}

fn wanted(ids: impl IntoIterator<Item = u64>) -> Wanted {
    let spec = with(ids.into_iter().map(HetznerId::Cloud));
    Wanted::of(&spec, &asked(&[]), &Dedicated::Off)
}

fn add(id: u64) -> TargetChange<TargetAt> {
    TargetChange::Add {
        target: server(id),
        needs_capacity: false,
    }
}

fn remove(target: TargetAt) -> TargetChange<TargetAt> {
    let is_last = false;
    TargetChange::Remove { target, is_last }
}

fn last(id: u64) -> TargetChange<TargetAt> {
    TargetChange::Remove {
        target: server(id),
        is_last: true,
    }
}

fn removed(found: &TargetDiff<TargetAt>) -> Vec<TargetAt> {
    let changes = found.changes.iter();
    let removed = changes.filter_map(|change| match change {
        TargetChange::Remove { target, .. } => Some(*target),
        TargetChange::Add { .. } | TargetChange::Drain(_) => None,
    });
    removed.collect()
}

#[test]
fn targets_come_before_others_go_and_then_take_their_places_one_by_one() {
    let have = |ids: &[u64]| ids.iter().map(|id| server_target(*id, false)).collect();
    for (case, present, most, expected) in [
        (
            "room for one",
            &[1, 8][..],
            3,
            vec![add(2), remove(server(8)), add(3)],
        ),
        (
            "no room",
            &[1, 8, 9],
            3,
            vec![remove(server(8)), add(2), remove(server(9)), add(3)],
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
        let found = differ(&wanted([1, 2, 3]), have(present), Capacity::of(most));
        assert_eq!(found.changes, expected, "{case}");
        assert_eq!(found.left_out, Vec::<String>::new(), "{case}");
    }
}

#[test]
fn at_the_limit_who_is_there_stays_and_the_choice_is_the_same_every_time() {
    let have = vec![
        server_target(5, false),
        server_target(4, false),
        selector_target(),
    ];
    let found = differ(&wanted([1, 2, 3, 4, 5]), have, Capacity::of(4));
    assert_eq!(found.changes, [add(1)], "by the Node's name");
    assert_eq!(found.left_out, ["node-2", "node-3"]);
    let have: Vec<_> = [5, 4, 1].map(|id| server_target(id, false)).into();
    let have = have.into_iter().chain([selector_target()]).collect();
    let found = differ(&wanted([1, 2, 3, 4, 5]), have, Capacity::of(4));
    assert_eq!(found.changes, []);
}

#[test]
fn what_only_fits_a_bigger_type_waits_for_it() {
    let room = Capacity {
        planned: 75,
        ..Capacity::of(2)
    };
    let found = differ(&wanted([1, 2, 3]), vec![server_target(1, false)], room);
    let beyond = TargetChange::Add {
        target: server(3),
        needs_capacity: true,
    };
    assert_eq!(found.changes, [add(2), beyond]);
}

#[test]
fn a_balancer_that_is_full_takes_one_for_each_that_goes() {
    let full = Capacity {
        is_full: true,
        ..Capacity::of(25)
    };
    let found = differ(&wanted([1, 2]), vec![server_target(8, false)], full);
    assert_eq!(found.changes, [last(8), add(1)]);
    assert_eq!(found.left_out, ["node-2"]);
}

#[test]
fn servers_are_retargeted_unless_they_are_known_not_to_be_in_the_network() {
    let have = LoadBalancer {
        targets: vec![server_target(1, false), server_target(2, false)],
        ..balancer()
    };
    let spec = with([HetznerId::Cloud(1), HetznerId::Cloud(2)]);
    let mut private = spec.clone();
    annotate(&mut private, &[("use-private-ip", "true")]);
    let have = Observed {
        outside: BTreeSet::from([2]),
        ..ours(attached(LoadBalancer {
            services: vec![service(80)],
            ..have
        }))
    };
    let found = changes(steps(&private, &have, &in_network()));
    let expected = Change::Retarget {
        at: server(1),
        private: true,
    };
    assert_eq!(found, [expected]);
    assert_eq!(
        steps(&spec, &have, &in_network()),
        [],
        "they are reached as they should"
    );
}

#[test]
fn the_last_targets_stay_while_it_is_not_known_whose_they_are() {
    let mut desired = with([HetznerId::Cloud(1)]);
    desired.targets.get_mut("node-1").unwrap().node.provider_id = None;
    let unresolved = Wanted::of(&desired, &asked(&[]), &Dedicated::Off);
    let have = vec![server_target(1, false)];
    let found = differ(&unresolved, have.clone(), Capacity::of(25));
    assert_eq!(found.changes, []);
    let found = differ(&wanted([]), have, Capacity::of(25));
    assert_eq!(found.changes, [last(1)]);
}

#[test]
fn addresses_that_are_not_wanted_go_but_not_while_a_wanted_one_is_in_doubt() {
    let have = vec![ip_target("192.0.2.8"), server_target(1, false)];
    let found = differ(&wanted([1]), have.clone(), Capacity::of(25));
    assert_eq!(found.changes, [remove(ip("192.0.2.8"))]);
    let desired = with([HetznerId::Cloud(1), HetznerId::Robot(9)]);
    for (case, dedicated, stays) in [
        ("Robot is silent", Dedicated::Unknown("x".into()), true),
        (
            "the account does not show it",
            Dedicated::Known(BTreeMap::new()),
            true,
        ),
        ("it has no IPv4 address", account(None), false),
        ("it has another address", account(Some("192.0.2.9")), false),
    ] {
        let wanted = Wanted::of(&desired, &asked(&[]), &dedicated);
        let found = differ(&wanted, have.clone(), Capacity::of(25));
        assert_eq!(removed(&found).is_empty(), stays, "{case}");
    }
}

#[test]
fn the_public_address_stays_beside_the_private_one_as_long_as_the_public_side_is_open() {
    let known = account(Some("192.0.2.9"));
    let desired = with([HetznerId::Robot(9)]);
    let have = vec![ip_target("192.0.2.9"), ip_target("10.0.0.9")];
    let open = asked(&[("use-private-ip", "true")]);
    let open = Wanted::of(&desired, &open, &known);
    let found = differ(&open, have.clone(), Capacity::of(25));
    assert_eq!((found.changes, found.left_out), (vec![], vec![]));
    let closed = asked(&[
        ("use-private-ip", "true"),
        ("disable-public-network", "true"),
    ]);
    let closed = Wanted::of(&desired, &closed, &known);
    let found = differ(&closed, have, Capacity::of(25));
    assert_eq!(removed(&found), [ip("192.0.2.9")]);
}
