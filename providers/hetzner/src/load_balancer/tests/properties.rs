//! Whatever is asked for and whatever is there: one plan is enough, and order does not matter.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::super::certificate::Certificates;
use super::super::targets::Dedicated;
use super::model::apply;
use super::*;

/// An annotation that is there or not, with one of some values.
fn annotation(
    key: &'static str,
    values: &'static [&'static str],
) -> impl Strategy<Value = Option<(&'static str, &'static str)>> {
    option::of(proptest::sample::select(values)).prop_map(move |value| Some((key, value?)))
}

fn annotations() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    const BOOL: &[&str] = &["true", "false"];
    let first = (
        annotation("name", &["a", "b"]),
        annotation("algorithm-type", &["round_robin", "least_connections"]),
        annotation("disable-public-network", BOOL),
        annotation("use-private-ip", BOOL),
        annotation("private-ipv4", &["10.0.0.5", "10.0.0.6"]),
        annotation("ipv4-rdns", &["x", "y"]),
        annotation("protocol", &["tcp", "http", "https"]),
        annotation("uses-proxyprotocol", BOOL),
    );
    let second = (
        annotation("http-cookie-name", &["c", "d"]),
        annotation("http-timeout-idle", &["30s", "1m"]),
        annotation("http-sticky-sessions", BOOL),
        annotation("health-check-protocol", &["tcp", "http", "https"]),
        annotation("health-check-port", &["80", "81"]),
        annotation("health-check-interval", &["3s", "30s"]),
        annotation("health-check-http-path", &["/a", "/b"]),
        annotation("http-status-codes", &["200", "2??,3??"]),
    );
    (first, second).prop_map(|(a, b)| {
        let a = [a.0, a.1, a.2, a.3, a.4, a.5, a.6, a.7];
        let b = [b.0, b.1, b.2, b.3, b.4, b.5, b.6, b.7];
        a.into_iter().chain(b).flatten().collect()
    })
}

fn specs() -> impl Strategy<Value = LoadBalancerSpec> {
    let machines = prop_oneof![
        (1u64..8).prop_map(HetznerId::Cloud),
        (20u64..24).prop_map(HetznerId::Robot),
    ];
    (
        btree_map(1u16..20, 30_000u16..30_010, 0..4),
        btree_set(machines, 0..6),
        annotations(),
    )
        .prop_map(|(ports, machines, annotations)| {
            let ports = ports.into_iter();
            let mut spec = LoadBalancerSpec {
                listeners: ports
                    .map(|(port, node_port)| api::Listener {
                        node_port: Some(node_port),
                        ..listener(port)
                    })
                    .collect(),
                targets: machines.into_iter().map(target).collect(),
                ..spec(&[], &[])
            };
            annotate(&mut spec, &annotations);
            spec
        })
}

fn balancers() -> impl Strategy<Value = LoadBalancer> {
    let targets = vec(
        prop_oneof![
            (1u64..9, any::<bool>()).prop_map(|(id, private)| server_target(id, private)),
            (20u8..26).prop_map(|last| ip_target(&format!("192.0.2.{last}"))),
            (20u8..26).prop_map(|last| ip_target(&format!("10.0.0.{last}"))),
            Just(selector_target()),
        ],
        0..4,
    );
    let nets = option::of(prop_oneof![Just(NETWORK), Just(99)]);
    (btree_set(1u16..20, 0..4), targets, nets, any::<bool>()).prop_map(
        |(ports, targets, net, public)| {
            let mut balancer = LoadBalancer {
                services: ports.into_iter().map(service).collect(),
                load_balancer_type: balancer_type(1, "lb11", 5),
                ..balancer()
            };
            let mut seen = BTreeSet::new();
            let is_new = |target: &Target| {
                seen.insert((target.server.map(|s| s.id), target.ip.map(|i| i.ip)))
            };
            balancer.targets = targets.into_iter().filter(is_new).collect();
            balancer.public_net.enabled = public;
            balancer.private_net = net
                .map(|network| BalancerNet {
                    network,
                    ip: "10.0.0.100".parse().unwrap(),
                })
                .into_iter()
                .collect();
            balancer
        },
    )
}

fn observed(balancer: Option<LoadBalancer>, adopted: bool) -> Observed {
    let dedicated = (20u64..24).map(|number| {
        let [.., last] = number.to_be_bytes();
        (number, Some(IpAddr::from([192, 0, 2, last])))
    });
    let found = match balancer {
        Some(balancer) if adopted => Classified::adoptable(balancer),
        Some(balancer) => Classified::ours(balancer),
        None => Classified::default(),
    };
    Observed {
        type_change: match found.balancer() {
            Some(_) => BalancerTypeChange::None,
            None => BalancerTypeChange::To(balancer_type(1, "lb11", 5)),
        },
        certificates: Certificates::Known([9].into()),
        dedicated: Dedicated::Known(dedicated.collect()),
        found,
        ..Observed::default()
    }
}

proptest! {
    #[test]
    fn after_a_plan_there_is_nothing_left_to_do(
        spec in specs(),
        have in option::of(balancers()),
        adopted: bool,
    ) {
        let facts = in_network();
        let mut have = observed(have, adopted);
        let mut rounds = 0;
        loop {
            let found = steps(&spec, &have, &facts);
            if found.is_empty() {
                break;
            }
            rounds += 1;
            // What is made first may have no addresses as targets yet, and what was taken back is struck
            // out when it is done.
            prop_assert!(rounds <= 2, "still to do: {found:?}");
            have = apply(have, &found);
        }
        let settled = have.found.ours.first().expect("it is there");
        let selectors = settled.targets.iter().filter(|t| t.label_selector.is_some()).count();
        prop_assert!(settled.targets.len() <= settled.load_balancer_type.max_targets.max(selectors));
    }

    #[test]
    fn the_order_of_what_is_there_does_not_matter(spec in specs(), have in balancers()) {
        let facts = in_network();
        let forwards = calls(&steps(&spec, &observed(Some(have.clone()), false), &facts));
        let mut backwards = have;
        backwards.services.reverse();
        backwards.targets.reverse();
        let backwards = calls(&steps(&spec, &observed(Some(backwards), false), &facts));
        let sorted = |mut calls: Vec<String>| { calls.sort(); calls };
        prop_assert_eq!(sorted(forwards), sorted(backwards));
    }
}
