//! What holds for every plan.

use std::collections::BTreeSet;

use cloudkeel_api::{NodeAddress, NodeFacts, Route, RouteTarget};
use proptest::prelude::*;

use super::tests::Scene;
use super::*;

/// Sixteen small networks, half of them in the cluster CIDRs, and a wide one around some.
fn destination() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        8 => (0_u8..8).prop_map(|block| format!("10.244.{block}.0/24")),
        3 => (0_u8..4).prop_map(|block| format!("10.245.{block}.0/24")),
        3 => (0_u8..4).prop_map(|block| format!("fd00:244:0:{block}::/64")),
        1 => Just("10.244.0.0/22".to_owned()),
        1 => Just("10.244.0.0/15".to_owned()),
    ]
    .prop_map(|text| text.parse().unwrap())
}

fn node(index: usize) -> impl Strategy<Value = (NodeFacts, Ownership)> {
    let ownership = prop_oneof![
        4 => Just(Ownership::Own),
        1 => Just(Ownership::Uninitialized),
        2 => Just(Ownership::Foreign),
    ];
    let networks = proptest::collection::vec(destination(), 0..3);
    (ownership, networks, 0_u8..3).prop_map(move |(ownership, pod_cidrs, host)| {
        let ip = format!("10.0.{index}.{host}").parse().unwrap();
        let facts = NodeFacts {
            name: format!("node-{index}"),
            uid: format!("uid-{index}"),
            addresses: vec![NodeAddress::internal(ip)],
            pod_cidrs,
            ..NodeFacts::default()
        };
        (facts, ownership)
    })
}

fn route() -> impl Strategy<Value = Route> {
    // Indexes beyond the last Node are names that no Node has.
    let target = prop_oneof![
        4 => (0_usize..7, 0_u8..3).prop_map(|(index, host)| RouteTarget::Node {
            name: format!("node-{index}"),
            uid: String::new(),
            provider_id: None,
            addresses: vec![format!("10.0.{index}.{host}").parse().unwrap()],
        }),
        1 => Just(RouteTarget::Elsewhere { hop: "x".into() }),
    ];
    let flags = (proptest::bool::weighted(0.2), any::<bool>());
    (destination(), target, flags).prop_map(|(destination, target, flags)| Route {
        name: String::new(),
        destination,
        target,
        blackhole: flags.0,
        follows_addresses: flags.1,
    })
}

fn scene() -> impl Strategy<Value = Scene> {
    let nodes: Vec<_> = (0..5).map(node).collect();
    let routes = proptest::collection::vec(route(), 0..10);
    (nodes, routes).prop_map(|(nodes, mut routes)| {
        for (index, route) in routes.iter_mut().enumerate() {
            route.name = format!("route-{index}");
        }
        Scene { nodes, routes }
    })
}

/// A cloud that applies every change.
fn apply(routes: &mut Vec<Route>, plan: &Plan) {
    for change in &plan.changes {
        match change {
            RouteChange::Delete(route) => routes.retain(|known| known != route),
            RouteChange::Create(route) => routes.push(Route {
                name: format!("made-{}", routes.len()),
                ..route.clone()
            }),
        }
    }
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

fn is_delete(change: &RouteChange) -> bool {
    matches!(change, RouteChange::Delete(_))
}

fn route_of(change: &RouteChange) -> &Route {
    match change {
        RouteChange::Create(route) | RouteChange::Delete(route) => route,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn once_applied_there_is_nothing_left_to_do(mut scene in scene()) {
        let plan = scene.plan(true);
        apply(&mut scene.routes, &plan);
        let again = scene.plan(true);
        prop_assert_eq!(&again.changes, &vec![]);
        prop_assert!(again.suspects.is_empty());
        for node in &again.nodes {
            let settled = |(_, desired): &(IpNet, NetworkPlan)| !matches!(desired, NetworkPlan::Create(_) | NetworkPlan::Wait);
            prop_assert!(node.networks.iter().all(settled), "{:?}", node);
        }
    }

    #[test]
    fn nothing_outside_the_cluster_cidrs_is_deleted(scene in scene(), confirmed in any::<bool>()) {
        let cluster = ["10.244.0.0/16", "fd00:244::/48"].map(|c| c.parse::<IpNet>().unwrap());
        for change in scene.plan(confirmed).changes.iter().filter(|c| is_delete(c)) {
            let destination = route_of(change).destination;
            prop_assert!(cluster.iter().any(|c| c.contains(&destination)), "{}", change);
        }
    }

    #[test]
    fn networks_of_other_nodes_are_never_touched(scene in scene(), confirmed in any::<bool>()) {
        let others = || scene.nodes.iter().filter(|(_, s)| *s != Ownership::Own);
        for change in &scene.plan(confirmed).changes {
            let route = route_of(change);
            for (node, _) in others() {
                let is_theirs = |cidr| overlap(cidr, &route.destination);
                prop_assert!(!node.pod_cidrs.iter().any(is_theirs), "{}", change);
                prop_assert_ne!(route.target.node_name(), Some(node.name.as_str()));
            }
        }
    }

    #[test]
    fn at_first_sight_nothing_is_deleted_but_to_be_replaced(scene in scene()) {
        let plan = scene.plan(false);
        let made: BTreeSet<_> = plan
            .changes
            .iter()
            .filter(|change| !is_delete(change))
            .map(|change| route_of(change).destination)
            .collect();
        let served = |destination: &IpNet| {
            let networks = plan.nodes.iter().flat_map(|node| &node.networks);
            let mut kept = networks.filter(|(_, desired)| *desired == NetworkPlan::Keep);
            kept.any(|(network, _)| network == destination)
        };
        for change in plan.changes.iter().filter(|c| is_delete(c)) {
            let route = route_of(change);
            prop_assert!(!route.blackhole && route.target.node_name().is_some());
            prop_assert!(
                made.contains(&route.destination) || served(&route.destination),
                "{}", change
            );
        }
    }

    #[test]
    fn deletions_come_first_and_no_route_is_changed_twice(scene in scene()) {
        let plan = scene.plan(true);
        let kinds: Vec<_> = plan.changes.iter().map(|change| !is_delete(change)).collect();
        prop_assert!(kinds.is_sorted());
        let distinct: BTreeSet<_> = plan.changes.iter().map(|change| {
            let route = route_of(change);
            (is_delete(change), route.name.clone(), route.destination)
        }).collect();
        prop_assert_eq!(distinct.len(), plan.changes.len());
    }
}
