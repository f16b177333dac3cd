//! Quotas of the account, and the room of security groups.

use cloudkeel_api::{ErrorKind, HealthState};
use cloudkeel_toolkit::TargetBatch;
use ipnet::IpNet;

use super::super::limits::{Quotas, defaults, fit};
use super::*;

fn quotas(all: &[(&str, usize)]) -> Quotas {
    let own = |(name, most): &(&str, usize)| ((*name).to_owned(), *most);
    all.iter().map(own).collect()
}

/// So many Nodes, alternately in two zones.
fn places(count: usize) -> BTreeMap<String, DesiredTarget> {
    let place = |number: usize| {
        let target = DesiredTarget {
            node: format!("node-{number:02}"),
            zone: Some(["a", "b"][number % 2].to_owned()),
            state: TargetState::Serving,
        };
        (format!("i-{number:02}"), target)
    };
    (1..=count).map(place).collect()
}

fn messages(have: &Observed) -> Vec<&str> {
    let over = have.over_limits.iter();
    over.map(|it| {
        assert_eq!(it.kind, ErrorKind::LimitExceeded);
        it.message.as_str()
    })
    .collect()
}

#[test]
fn of_too_many_targets_those_that_serve_stay_and_the_rest_is_spread_over_zones() {
    for (kind, name) in [
        ("classic", "classic-registered-instances"),
        ("nlb", "targets-per-network-load-balancer"),
    ] {
        let spec = service(&[("type", kind)]);
        let mut have = match kind {
            "nlb" => settled_network(&spec),
            _ => settled(&spec),
        };
        have.targets.wanted.places = places(6);
        let present = ["i-02".to_owned(), "i-04".to_owned()];
        for group in have.network.iter_mut().flat_map(|it| &mut it.groups) {
            group.targets = present
                .iter()
                .map(|id| registered(id, HealthState::Healthy))
                .collect();
        }
        if let Some(classic) = &mut have.classic {
            classic.balancer.instances = present.clone().into();
        }
        let mut desired = have.desired.clone().unwrap();
        fit(&mut desired, &mut have, &quotas(&[(name, 4)]));
        let batches = have.targets.diff(present.clone()).batches(9);
        // Zone b has none yet.
        let added = ["i-01", "i-03"].map(str::to_owned).to_vec();
        assert_eq!(batches, [TargetBatch::Add(added)], "{kind}");
        let over = messages(&have);
        assert_eq!(over.len(), 1, "{kind}: {over:?}");
        assert!(
            over[0].contains("at most 4 targets: 2 Nodes"),
            "{kind}: {over:?}"
        );
        // Once they serve, nothing changes any more.
        let settled = ["i-01", "i-02", "i-03", "i-04"].map(str::to_owned);
        assert_eq!(have.targets.diff(settled).batches(9), [], "{kind}");
    }
}

#[test]
fn a_full_balancer_takes_a_new_target_only_after_an_old_one_left() {
    let mut have = settled_network(&service(&[NLB]));
    have.targets.wanted.places = places(2);
    have.targets.limit = 2;
    let present = ["i-01", "i-09"].map(str::to_owned);
    have.network.as_mut().unwrap().groups[0].targets = present
        .iter()
        .map(|id| registered(id, HealthState::Healthy))
        .collect();
    let steps = nlb_plan::plan(&have.desired.clone().unwrap(), &have, &facts()).unwrap();
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("deregister i-09"), "{texts:?}");
    assert!(texts[1].starts_with("register i-02"), "{texts:?}");
}

#[test]
fn of_too_many_ports_those_that_are_served_stay() {
    for (kind, name) in [
        ("classic", "classic-listeners"),
        ("nlb", "listeners-per-network-load-balancer"),
    ] {
        let mut spec = service(&[("type", kind)]);
        let mut have = match kind {
            "nlb" => settled_network(&spec),
            _ => settled(&spec),
        };
        spec.listeners = [78, 79, 80, 81]
            .map(|port| Listener::tcp(port, 30_000 + port))
            .into();
        let mut desired = Desired::of(&spec, &facts()).unwrap();
        fit(&mut desired, &mut have, &quotas(&[(name, 3)]));
        let served: Vec<_> = desired.ports.iter().map(|port| port.port).collect();
        assert_eq!(served, [78, 79, 80], "{kind}");
        let over = messages(&have);
        assert!(
            over[0].contains("at most 3 listeners; not served: 81/TCP"),
            "{over:?}"
        );
    }
}

#[test]
fn quotas_that_may_not_be_read_leave_nothing_out() {
    let mut have = settled_network(&service(&[NLB]));
    have.targets.wanted.places = places(900);
    let mut desired = have.desired.clone().unwrap();
    fit(&mut desired, &mut have, &Quotas::new());
    assert_eq!(have.targets.diff([]).changes.len(), 900);
    assert!(messages(&have).is_empty());
}

#[test]
fn a_quota_of_zones_counts_for_each_zone_of_the_balancer() {
    let mut have = settled_network(&service(&[NLB]));
    let zone = have.subnets.as_ref().unwrap()[0].clone();
    have.subnets = Ok(vec![zone.clone(), zone]);
    let mut desired = have.desired.clone().unwrap();
    let of_zone = (
        "targets-per-availability-zone-per-network-load-balancer",
        500,
    );
    for (all, expected) in [(3000, 1000), (700, 700)] {
        let all = ("targets-per-network-load-balancer", all);
        fit(&mut desired, &mut have, &quotas(&[of_zone, all]));
        assert_eq!(have.targets.limit, expected);
    }
    let of = |kind| {
        let limits = defaults(kind);
        (limits.targets, limits.listeners, limits.rules)
    };
    assert_eq!(of(BalancerType::Nlb), (Some(3000), Some(50), Some(60)));
    assert_eq!(of(BalancerType::Classic), (Some(1000), Some(100), Some(60)));
}

#[test]
fn rules_of_nodes_are_joined_before_their_group_is_full() {
    let mut spec = service(&[NLB]);
    spec.listeners = [80, 81, 82]
        .map(|port| Listener::tcp(port, 30_000 + port))
        .into();
    let ranges = (0..16).map(|n| format!("192.0.2.{n}/32").parse::<IpNet>().unwrap());
    spec.source_ranges = ranges.collect();
    let desired = Desired::of(&spec, &facts()).unwrap();
    let have = settled_network(&service(&[NLB]));
    let ports = nlb::mappings(&desired, &have.service, TargetType::Instance, &facts());
    let subnets = have.subnets.clone().unwrap();
    let rules = |room| nlb::node_rules(&name(), &ports, &desired.ranges, &subnets, room);
    // Three ports and ICMP of each range; three ports for checks.
    assert_eq!(rules(67).len(), 67);
    // One range of ports for one network of clients, for ICMP, and for checks.
    assert_eq!(rules(66).len(), 3, "{:?}", rules(66));
    let steps = nlb_plan::plan(&desired, &have, &facts()).unwrap();
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert!(
        texts.contains(&"add 3 rules to security group sg-nodes".to_owned()),
        "{texts:?}"
    );
}
