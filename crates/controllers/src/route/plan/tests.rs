//! Tables of routes and Nodes, and what is planned for them.

use cloudkeel_api::{NodeAddress, NodeFacts, Route, RouteTarget};

use super::*;

const V4: &str = "10.244.0.0/16";
const V6: &str = "fd00:244::/48";

/// A cluster and the routes of its cloud, put together by a row.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) nodes: Vec<(NodeFacts, Ownership)>,
    pub(super) routes: Vec<Route>,
}

impl Scene {
    /// A Node of ours, with an address that ends like its first network.
    fn own(self, name: &str, cidrs: &[&str]) -> Self {
        self.with(name, cidrs, Ownership::Own)
    }

    fn foreign(self, name: &str, cidrs: &[&str]) -> Self {
        self.with(name, cidrs, Ownership::Foreign)
    }

    fn with(mut self, name: &str, cidrs: &[&str], ownership: Ownership) -> Self {
        let last = self.nodes.len() + 1;
        let node = NodeFacts {
            name: name.into(),
            uid: format!("uid-{name}"),
            addresses: vec![NodeAddress::internal(
                format!("10.0.0.{last}").parse().unwrap(),
            )],
            pod_cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
            ..NodeFacts::default()
        };
        self.nodes.push((node, ownership));
        self
    }

    /// A route to a Node, or to a name that no Node has.
    fn route(mut self, destination: &str, to: &str) -> Self {
        let node = self.nodes.iter().find(|(node, _)| node.name == to);
        let unknown = NodeFacts {
            name: to.into(),
            ..NodeFacts::default()
        };
        let target = RouteTarget::node(node.map_or(&unknown, |(node, _)| node));
        self.routes.push(Route {
            name: format!("route-{}", self.routes.len()),
            destination: destination.parse().unwrap(),
            target,
            blackhole: false,
            follows_addresses: false,
        });
        self
    }

    fn elsewhere(mut self, destination: &str) -> Self {
        self = self.route(destination, "unknown");
        self.change_last(|route| route.target = RouteTarget::Elsewhere { hop: "x".into() })
    }

    fn blackhole(self, destination: &str, to: &str) -> Self {
        self.route(destination, to)
            .change_last(|route| route.blackhole = true)
    }

    /// A route whose addresses are part of it.
    fn followed(self, destination: &str, to: &str, by: &[&str]) -> Self {
        self.route(destination, to).change_last(|route| {
            route.follows_addresses = true;
            let RouteTarget::Node { addresses, .. } = &mut route.target else {
                panic!("a route to a Node");
            };
            *addresses = by.iter().map(|ip| ip.parse().unwrap()).collect();
        })
    }

    fn change_last(mut self, change: impl FnOnce(&mut Route)) -> Self {
        change(self.routes.last_mut().unwrap());
        self
    }

    pub(super) fn plan(&self, confirmed: bool) -> Plan {
        let cluster_cidrs = [V4, V6].map(|cidr| cidr.parse().unwrap());
        let nodes = self.nodes.iter();
        let nodes: Vec<_> = nodes
            .map(|(facts, ownership)| (facts, *ownership))
            .collect();
        plan(&cluster_cidrs, &self.routes, &nodes, |_| confirmed)
    }
}

fn changes(plan: &Plan) -> Vec<String> {
    plan.changes.iter().map(ToString::to_string).collect()
}

/// What a Node's condition becomes if all changes succeed.
fn network(plan: &Plan, name: &str) -> Option<Network> {
    let node = plan.nodes.iter().find(|node| node.name == name).unwrap();
    node.network(|_| Some(true))
}

const A4: &str = "10.244.1.0/24";
const A6: &str = "fd00:244:0:1::/64";
const B4: &str = "10.244.2.0/24";
const B6: &str = "fd00:244:0:2::/64";

fn two() -> Scene {
    Scene::default().own("a", &[A4]).own("b", &[B4])
}

fn dual() -> Scene {
    Scene::default().own("a", &[A4, A6]).own("b", &[B4, B6])
}

fn check_first_look(case: &str, scene: &Scene, expected: &[&str]) {
    let plan = scene.plan(false);
    assert_eq!(changes(&plan), expected, "{case}");
    assert!(plan.suspects.is_empty(), "{case}");
}

#[test]
fn every_network_of_every_node_gets_one_route() {
    for (case, scene, expected) in [
        (
            "none is there",
            two(),
            &[
                "create route 10.244.1.0/24 to a",
                "create route 10.244.2.0/24 to b",
            ][..],
        ),
        ("all are there", two().route(A4, "a").route(B4, "b"), &[]),
        (
            "some are there",
            two().route(B4, "b"),
            &["create route 10.244.1.0/24 to a"],
        ),
        (
            "swapped",
            two().route(A4, "b").route(B4, "a"),
            &[
                "delete route 10.244.1.0/24 to b",
                "delete route 10.244.2.0/24 to a",
                "create route 10.244.1.0/24 to a",
                "create route 10.244.2.0/24 to b",
            ],
        ),
    ] {
        check_first_look(case, &scene, expected);
    }
}

#[test]
fn both_families_of_a_node_get_their_routes() {
    for (case, scene, expected) in [
        (
            "dual stack, none",
            dual(),
            &[
                "create route 10.244.1.0/24 to a",
                "create route fd00:244:0:1::/64 to a",
                "create route 10.244.2.0/24 to b",
                "create route fd00:244:0:2::/64 to b",
            ][..],
        ),
        (
            "dual stack, all",
            dual()
                .route(A4, "a")
                .route(A6, "a")
                .route(B4, "b")
                .route(B6, "b"),
            &[],
        ),
        (
            "dual stack, one family is missing",
            dual().route(A4, "a").route(A6, "a").route(B4, "b"),
            &["create route fd00:244:0:2::/64 to b"],
        ),
        (
            "dual stack, swapped in one family",
            dual()
                .route(A4, "a")
                .route(B6, "a")
                .route(B4, "b")
                .route(A6, "b"),
            &[
                "delete route fd00:244:0:2::/64 to a",
                "delete route fd00:244:0:1::/64 to b",
                "create route fd00:244:0:1::/64 to a",
                "create route fd00:244:0:2::/64 to b",
            ],
        ),
    ] {
        check_first_look(case, &scene, expected);
    }
}

#[test]
fn a_network_is_one_route_and_only_once_its_node_is_known() {
    for (case, scene, expected) in [
        (
            "the same network twice in one node",
            Scene::default().own("a", &[A4, A4]),
            &["create route 10.244.1.0/24 to a"][..],
        ),
        (
            "another spelling of the same network",
            Scene::default().own("a", &["10.244.1.7/24"]).route(A4, "a"),
            &[],
        ),
        (
            "a node without a network",
            Scene::default()
                .own("a", &[A4])
                .own("b", &[])
                .route(A4, "a"),
            &[],
        ),
        (
            "a node that is not initialised",
            Scene::default().with("a", &[A4], Ownership::Uninitialized),
            &[],
        ),
    ] {
        check_first_look(case, &scene, expected);
    }
}

#[test]
fn a_route_that_follows_addresses_is_replaced_when_they_change() {
    let replaced = [
        "delete route 10.244.1.0/24 to a",
        "create route 10.244.1.0/24 to a",
    ];
    let moved = |by: &[&str]| Scene::default().own("a", &[A4]).followed(A4, "a", by);
    let two_addresses = |by: &[&str]| {
        let mut scene = moved(by);
        let second = NodeAddress::internal("10.0.0.9".parse().unwrap());
        scene.nodes[0].0.addresses.push(second);
        scene
    };
    let without_addresses = || {
        let mut scene = moved(&["10.0.0.1"]);
        scene.nodes[0].0.addresses = vec![NodeAddress::hostname("a")];
        scene
    };
    for (case, scene, expected) in [
        ("the same", moved(&["10.0.0.1"]), &[][..]),
        ("another", moved(&["10.0.0.7"]), &replaced),
        ("listed without addresses", moved(&[]), &replaced),
        ("one more", moved(&["10.0.0.1", "10.0.0.9"]), &replaced),
        (
            "in another order",
            two_addresses(&["10.0.0.9", "10.0.0.1"]),
            &[],
        ),
        ("one fewer", two_addresses(&["10.0.0.9"]), &replaced),
        ("the node's are not known", without_addresses(), &[]),
        (
            "the route does not follow them",
            moved(&["10.0.0.7"]).change_last(|route| route.follows_addresses = false),
            &[],
        ),
    ] {
        assert_eq!(changes(&scene.plan(false)), expected, "{case}");
    }
}

#[test]
fn what_leads_nowhere_is_deleted_once_a_second_look_confirms_it() {
    let settled = || two().route(A4, "a").route(B4, "b");
    let left_over = "10.244.9.0/24";
    let nothing: &[&str] = &[];
    let gone: &[&str] = &["delete route 10.244.9.0/24 to x"];
    for (case, scene, first, second) in [
        ("to no Node", settled().elsewhere(left_over), nothing, gone),
        (
            "to a name that no node has",
            settled().route(left_over, "x"),
            nothing,
            gone,
        ),
        (
            "a blackhole",
            settled().blackhole(left_over, "x"),
            nothing,
            gone,
        ),
        (
            "more than a node has",
            settled().route(left_over, "a"),
            nothing,
            &["delete route 10.244.9.0/24 to a"],
        ),
        (
            "a blackhole where a node's route should be",
            two().blackhole(A4, "a").route(B4, "b"),
            nothing,
            &[
                "delete route 10.244.1.0/24 to a",
                "create route 10.244.1.0/24 to a",
            ],
        ),
        (
            "a route to another gateway in the way of a Node",
            two().elsewhere(A4).route(B4, "b"),
            nothing,
            &[
                "delete route 10.244.1.0/24 to x",
                "create route 10.244.1.0/24 to a",
            ],
        ),
        (
            "an old one beside the right one",
            settled().elsewhere(A4),
            nothing,
            &["delete route 10.244.1.0/24 to x"],
        ),
        (
            "a wrong node beside one in doubt",
            two().elsewhere(A4).route(A4, "b").route(B4, "b"),
            nothing,
            &[
                "delete route 10.244.1.0/24 to x",
                "delete route 10.244.1.0/24 to b",
                "create route 10.244.1.0/24 to a",
            ],
        ),
    ] {
        let (before, after) = (scene.plan(false), scene.plan(true));
        assert_eq!(changes(&before), first, "{case}, first list");
        assert!(before.has_unconfirmed, "{case}");
        assert_eq!(changes(&after), second, "{case}, confirmed");
        assert!(!after.has_unconfirmed, "{case}");
    }
}

#[test]
fn only_what_lies_in_the_cluster_cidr_is_ever_deleted() {
    for (case, destination, deleted) in [
        ("the first block", "10.244.0.0/24", true),
        ("a block in the middle", "10.244.128.0/24", true),
        ("the last block", "10.244.255.0/24", true),
        ("the whole", "10.244.0.0/16", true),
        ("before it", "10.243.255.0/24", false),
        ("after it", "10.245.0.0/24", false),
        ("wider, with the same beginning", "10.244.0.0/15", false),
        ("wider, around it", "10.0.0.0/8", false),
        ("everything", "0.0.0.0/0", false),
        ("IPv6, the first block", "fd00:244::/64", true),
        ("IPv6, the last block", "fd00:244:0:ffff::/64", true),
        ("IPv6, beside it", "fd00:245::/64", false),
    ] {
        // The network of the only Node must not be touched by the widest of them.
        let scene = Scene::default().own("a", &["192.168.0.0/24"]);
        let scene = scene.route("192.168.0.0/24", "a").elsewhere(destination);
        let plan = scene.plan(true);
        assert_eq!(plan.changes.len(), usize::from(deleted), "{case}: {plan:?}");
    }
}

#[test]
fn nodes_that_are_not_ours_keep_their_routes_and_their_networks() {
    let ours = || Scene::default().own("a", &[A4]);
    for (case, scene) in [
        (
            "a route to a foreign node",
            ours().foreign("f", &[B4]).route(B4, "f"),
        ),
        (
            "a route to a foreign node that does not have this network",
            ours().foreign("f", &[]).route(B4, "f"),
        ),
        (
            "its network, to no known Node",
            ours().foreign("f", &[B4]).elsewhere(B4),
        ),
        (
            "a part of its network",
            ours().foreign("f", &[B4]).elsewhere("10.244.2.128/25"),
        ),
        (
            "a network around its own",
            ours().foreign("f", &[B4]).elsewhere("10.244.2.0/23"),
        ),
        (
            "its network, to one of our nodes",
            ours().foreign("f", &[B4]).route(B4, "a"),
        ),
        (
            "a blackhole to it",
            ours().foreign("f", &[B4]).blackhole(B4, "f"),
        ),
        (
            "the network of a node that is not initialised",
            ours()
                .with("f", &[B4], Ownership::Uninitialized)
                .elsewhere(B4),
        ),
    ] {
        let plan = scene.route(A4, "a").plan(true);
        assert_eq!(changes(&plan), [""; 0], "{case}");
        let planned: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(planned, ["a"], "{case}: nothing is said about others");
    }
}

#[test]
fn without_a_node_of_ours_nothing_is_deleted() {
    let scene = Scene::default().own("a", &[]).foreign("f", &[B4]);
    let plan = scene.elsewhere(A4).plan(true);
    assert!(plan.changes.is_empty() && plan.suspects.is_empty());
}

#[test]
fn a_network_that_two_nodes_have_goes_to_one_of_them() {
    let desired = |plan: &Plan, name: &str| {
        let node = plan.nodes.iter().find(|node| node.name == name).unwrap();
        node.networks[0].1.clone()
    };
    let with = |name: &str| NetworkPlan::Conflict { with: name.into() };
    let both = || Scene::default().own("a", &[A4]).own("b", &[A4]);
    for (case, scene, a, b) in [
        (
            "the first of them",
            both(),
            NetworkPlan::Create(0),
            with("a"),
        ),
        (
            "who has it already",
            both().route(A4, "b"),
            with("b"),
            NetworkPlan::Keep,
        ),
        (
            "a foreign Node",
            both().foreign("f", &["10.244.0.0/22"]),
            with("f"),
            with("f"),
        ),
    ] {
        let plan = scene.plan(true);
        assert_eq!((desired(&plan, "a"), desired(&plan, "b")), (a, b), "{case}");
    }
    let plan = both().plan(true);
    assert_eq!(network(&plan, "a"), Some(Network::Available));
    assert_eq!(network(&plan, "b"), Some(Network::Unavailable));
}

#[test]
fn the_condition_follows_from_all_networks_of_a_node() {
    let (good, bad) = (Some(Network::Available), Some(Network::Unavailable));
    let none = || Scene::default().own("a", &[]).own("b", &[B4]);
    for (case, scene, expected) in [
        ("kept", two().route(A4, "a"), good),
        ("made", two(), good),
        ("a suspect in the way", two().elsewhere(A4), None),
        ("a blackhole in doubt", two().blackhole(A4, "a"), None),
        ("contested", two().foreign("f", &[A4]), bad),
        ("one of two contested", dual().foreign("f", &[A6]), bad),
        ("one of two in doubt", dual().elsewhere(A6), None),
        ("no network and no route", none(), None),
        ("no network but a route", none().route(A4, "a"), bad),
    ] {
        assert_eq!(network(&scene.plan(false), "a"), expected, "{case}");
    }
    let node = &dual().plan(false).nodes[0];
    for (case, second, expected) in [
        ("all are made", Some(true), good),
        ("one fails", Some(false), bad),
        ("one is created by another component", None, None),
    ] {
        let made = |change| if change == 1 { second } else { Some(true) };
        assert_eq!(node.network(made), expected, "{case}");
    }
}

#[test]
fn a_new_route_carries_all_that_a_cloud_needs_to_make_it() {
    let mut scene = Scene::default().own("a", &["10.244.1.9/24"]);
    scene.nodes[0].0.provider_id = "local://p/1".parse().ok();
    let plan = scene.plan(false);
    let RouteChange::Create(route) = &plan.changes[0] else {
        panic!("{plan:?}");
    };
    assert_eq!(route.destination, A4.parse().unwrap());
    assert_eq!(route.target, RouteTarget::node(&scene.nodes[0].0));
}
