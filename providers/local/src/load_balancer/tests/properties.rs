//! For any desired and any present state: one plan is enough, and order does not matter.

use cloudkeel_api::{HealthProbe, LoadBalancerSpec};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;

fn health_checks() -> impl Strategy<Value = api::HealthCheck> {
    let probes = prop_oneof![
        Just(HealthProbe::Tcp),
        "/[a-z]{0,5}".prop_map(|path| HealthProbe::Http { path }),
        "/[a-z]{0,5}".prop_map(|path| HealthProbe::Https { path }),
    ];
    let seconds = || option::of((0u64..90).prop_map(Duration::from_secs));
    (
        probes,
        option::of(1u16..),
        seconds(),
        seconds(),
        option::of(1u32..9),
    )
        .prop_map(
            |(probe, port, interval, timeout, retries)| api::HealthCheck {
                probe,
                port,
                interval,
                timeout,
                unhealthy_threshold: retries,
                healthy_threshold: None,
            },
        )
}

fn listeners() -> impl Strategy<Value = Vec<api::Listener>> {
    let protocols = prop_oneof![Just(api::Protocol::Tcp), Just(api::Protocol::Udp)];
    let key = (protocols, 1u16..20);
    btree_map(key, (30_000u16..32_000, health_checks()), 0..4).prop_map(|listeners| {
        let listeners = listeners.into_iter();
        listeners
            .map(
                |((protocol, port), (node_port, health_check))| api::Listener {
                    protocol,
                    node_port: Some(node_port),
                    health_check,
                    ..listener(port)
                },
            )
            .collect()
    })
}

fn targets() -> impl Strategy<Value = BTreeMap<String, api::Target>> {
    let states = prop_oneof![
        Just(api::TargetState::Serving),
        Just(api::TargetState::Draining)
    ];
    let ways = prop_oneof![Just(TargetBy::Machine), Just(TargetBy::Address)];
    btree_map(1u64..8, (states, ways, any::<bool>()), 0..6).prop_map(|targets| {
        let targets = targets.into_iter();
        targets
            .map(|(number, (state, by, resolved))| {
                let (name, mut target) = target(number);
                target.state = state;
                target.by = by;
                if !resolved {
                    target.node.provider_id = None;
                }
                (name, target)
            })
            .collect()
    })
}

fn options() -> impl Strategy<Value = api::Options> {
    let algorithms = prop_oneof![
        Just(api::Algorithm::RoundRobin),
        Just(api::Algorithm::LeastConnections),
        Just(api::Algorithm::SourceIp),
    ];
    let proxies = prop_oneof![Just(api::ProxyProtocol::V1), Just(api::ProxyProtocol::V2)];
    (
        option::of("[a-c]"),
        option::of(any::<bool>()),
        option::of(prop_oneof![Just("small"), Just("large")]),
        option::of(algorithms),
        option::of(option::of(proxies)),
        option::of("[a-c]"),
    )
        .prop_map(
            |(name, internal, size, algorithm, proxy_protocol, hostname)| api::Options {
                name,
                internal,
                size: size.map(str::to_owned),
                algorithm,
                proxy_protocol,
                ip_mode: None,
                keeps_draining: false,
                drain: None,
                hostname,
            },
        )
}

fn specs() -> impl Strategy<Value = LoadBalancerSpec> {
    let families = prop_oneof![
        Just(vec![]),
        Just(vec![IpFamily::V4]),
        Just(vec![IpFamily::V6]),
        Just(vec![IpFamily::V6, IpFamily::V4]),
    ];
    let affinities = option::of((1u64..100).prop_map(Duration::from_secs));
    let ranges = vec((any::<[u8; 4]>(), 0u8..=32), 0..3);
    let protected = option::of(any::<bool>());
    (
        listeners(),
        targets(),
        options(),
        families,
        (affinities, ranges, 1u8.., protected),
    )
        .prop_map(
            |(listeners, targets, options, families, (affinity, ranges, host, protected))| {
                let mut spec = spec(&[], &[]);
                if let Some(protected) = protected {
                    let key = PROTECTED.name().to_owned();
                    spec.balancer_ref
                        .annotations
                        .insert(key, protected.to_string());
                }
                let desired = (host % 2 == 0).then_some(match families.as_slice() {
                    [IpFamily::V6, ..] => [0x2001, 0xdb8, 1, 0, 0, 0, 0, u16::from(host)].into(),
                    _ => std::net::IpAddr::from([198, 18, 1, host]),
                });
                LoadBalancerSpec {
                    listeners,
                    targets: targets.into(),
                    families,
                    address: desired,
                    source_ranges: ranges
                        .into_iter()
                        .map(|(ip, bits)| ipnet::IpNet::new_assert(ip.into(), bits))
                        .collect(),
                    affinity: affinity.map_or(api::Affinity::None, |timeout| {
                        api::Affinity::ClientIp { timeout }
                    }),
                    options,
                    ..spec
                }
            },
        )
}

proptest! {
    // Some properties are about few of the cases that are drawn.
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn plan_apply_plan_is_empty(want in specs(), before in option::of(specs())) {
        let have = before.as_ref().map(built);
        let seen = |balancer: Option<Balancer>| balancer.map_or_else(Observed::default, ours);
        let first = steps(&want, &seen(have.clone()));
        let after = apply(have, &first);
        prop_assert_eq!(steps(&want, &seen(after)), []);
    }

    #[test]
    fn the_order_of_the_spec_does_not_matter(want in specs(), before in specs()) {
        let mut reversed = want.clone();
        reversed.listeners.reverse();
        reversed.source_ranges.reverse();
        let have = ours(built(&before));
        prop_assert_eq!(steps(&want, &have), steps(&reversed, &have));
        let nothing = Observed::default();
        prop_assert_eq!(steps(&want, &nothing), steps(&reversed, &nothing));
    }

    #[test]
    fn the_order_in_the_cloud_does_not_matter(want in specs(), before in specs()) {
        let have = built(&before);
        let mut reversed = have.clone();
        reversed.listeners.reverse();
        reversed.targets.reverse();
        reversed.addresses.reverse();
        prop_assert_eq!(steps(&want, &ours(have)), steps(&want, &ours(reversed)));
    }

    #[test]
    fn who_reaches_it_comes_first_then_targets_and_listeners_and_then_the_rest(
        want in specs(),
        before in option::of(specs()),
    ) {
        let have = before.as_ref().map(built).map_or_else(Observed::default, ours);
        let ranks: Vec<u8> = steps(&want, &have)
            .iter()
            .map(|step| match step {
                Step::Create(_) => None,
                Step::Change { change, .. } => Some(change),
            })
            .map(|change| match change {
                None => 0,
                Some(Change::Adopt(_)) => 1,
                Some(Change::Patch(patch)) => match patch.as_ref() {
                    patch if patch.name.is_some() => 6,
                    patch if patch.kind.is_some() => 7,
                    patch if patch.internal.is_some()
                        || patch.families.is_some()
                        || patch.address.is_some()
                        || patch.source_ranges.is_some() => 2,
                    _ => 5,
                },
                Some(Change::Targets(_)) => 3,
                Some(Change::Listeners(_)) => 4,
                Some(Change::Release(_) | Change::Delete) => 8,
            })
            .collect();
        prop_assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        prop_assert!(!ranks.contains(&8));
    }

    #[test]
    fn no_plan_takes_the_last_target_away_while_a_wanted_one_is_not_resolved(
        want in specs(),
        before in specs(),
    ) {
        let have = built(&before);
        let serves = |b: &Balancer| b.targets.iter().any(|t| t.state == TargetState::Serving);
        let unresolved = !super::targets(&want, &facts()).unresolved.is_empty();
        prop_assume!(unresolved && serves(&have));
        let after = apply(Some(have.clone()), &steps(&want, &ours(have))).unwrap();
        prop_assert!(serves(&after));
    }
}
