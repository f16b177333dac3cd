//! Targets by address: Nodes of other clouds behind a network load balancer.

use std::collections::BTreeMap;

use cloudkeel_api::{AddressKind, NodeAddress, NodeFacts, Target, TargetBy};
use ipnet::IpNet;

use super::super::targets::{Reach, Targets, refusal, unmet_ranges};
use super::*;
use crate::client::Call;
use crate::wire::{Ec2Instance, Interface};

/// The instance of this cloud's Node.
fn own_instance() -> Ec2Instance {
    Ec2Instance {
        id: "i-1".to_owned(),
        state: "running".to_owned(),
        interfaces: vec![Interface {
            private_ips: vec!["10.0.0.7".to_owned()],
            ..Interface::default()
        }],
        ..Ec2Instance::default()
    }
}

fn node(name: &str, id: &str, address: &str, by: TargetBy) -> (String, Target) {
    let address = NodeAddress::new(AddressKind::InternalIp, address.to_owned());
    let facts = NodeFacts {
        name: name.to_owned(),
        provider_id: id.parse().ok(),
        addresses: vec![address],
        ..NodeFacts::default()
    };
    let target = Target {
        by,
        ..Target::machine(facts)
    };
    (name.to_owned(), target)
}

fn own() -> (String, Target) {
    node("own", "aws:///a/i-1", "10.0.0.7", TargetBy::Machine)
}

fn foreign(address: &str) -> (String, Target) {
    node("far", "vsphere://1-2", address, TargetBy::Address)
}

/// What becomes of Nodes behind a balancer that has groups of this type, and no security group.
fn targets(
    annotations: &[(&str, &str)],
    change: impl FnOnce(&mut LoadBalancerSpec),
    nodes: &[(String, Target)],
    present: Option<TargetType>,
) -> Targets {
    let mut spec = service(annotations);
    spec.targets = nodes.iter().cloned().collect::<BTreeMap<_, _>>().into();
    change(&mut spec);
    let desired = Desired::of(&spec, &facts()).unwrap();
    let subnets = [Subnet {
        cidr: "10.0.0.0/24".to_owned(),
        ..Subnet::default()
    }];
    let reach = Reach {
        instances: &[own_instance()],
        subnets: &subnets,
        present,
        refusal: refusal(&desired, present, None, false),
    };
    reach.targets(&spec)
}

fn narrow(spec: &mut LoadBalancerSpec) {
    spec.source_ranges = ["192.0.2.0/24".parse::<IpNet>().unwrap()].into();
}

fn udp(spec: &mut LoadBalancerSpec) {
    spec.listeners[0].protocol = Protocol::Udp;
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn one_node_of_another_cloud_makes_all_targets_addresses() {
    use TargetType::{Instance, Ip};
    type Change = fn(&mut LoadBalancerSpec);
    type Row<'a> = (
        &'a str,
        &'a [(&'a str, &'a str)],
        Change,
        Vec<(String, Target)>,
        Option<TargetType>,
        (TargetType, &'a [&'a str], &'a [&'a str], &'a str),
    );
    let plain: Change = |_| {};
    let far = || foreign("192.168.7.7");
    let rows: [Row<'_>; 11] = [
        (
            "own ones",
            &[NLB],
            plain,
            vec![own()],
            Some(Ip),
            (Instance, &["i-1"], &[], ""),
        ),
        (
            "both",
            &[NLB],
            plain,
            vec![own(), far()],
            Some(Instance),
            (Ip, &["10.0.0.7", "192.168.7.7"], &["192.168.7.7"], ""),
        ),
        (
            "inside the VPC",
            &[NLB],
            plain,
            vec![foreign("10.0.0.99")],
            None,
            (Ip, &["10.0.0.99"], &[], ""),
        ),
        (
            "no Node keeps the type",
            &[NLB],
            plain,
            vec![],
            Some(Ip),
            (Ip, &[], &[], ""),
        ),
        (
            "no Node at first",
            &[NLB],
            plain,
            vec![],
            None,
            (Instance, &[], &[], ""),
        ),
        (
            "a public address",
            &[NLB],
            plain,
            vec![own(), foreign("203.0.113.9")],
            None,
            (Ip, &["10.0.0.7"], &[], "203.0.113.9 is a public address"),
        ),
        (
            "IPv6 alone",
            &[NLB],
            plain,
            vec![foreign("fd00::7")],
            None,
            (Ip, &[], &[], "it has no IPv4 address, only fd00::7"),
        ),
        (
            "classic",
            &[],
            plain,
            vec![own(), far()],
            None,
            (Instance, &["i-1"], &[], "a classic load balancer"),
        ),
        (
            "UDP",
            &[NLB],
            udp,
            vec![own(), far()],
            None,
            (Instance, &["i-1"], &[], "UDP does not"),
        ),
        (
            "source ranges that nothing would hold",
            &[NLB],
            narrow,
            vec![own(), far()],
            Some(Instance),
            (Instance, &["i-1"], &[], "source ranges hold"),
        ),
        (
            "source ranges of one that has addresses already",
            &[NLB],
            narrow,
            vec![own(), far()],
            Some(Ip),
            (Ip, &["10.0.0.7", "192.168.7.7"], &["192.168.7.7"], ""),
        ),
    ];
    for (case, annotations, change, nodes, present, expected) in rows {
        let found = targets(annotations, change, &nodes, present);
        let places: Vec<_> = found.wanted.places.keys().map(String::as_str).collect();
        let outside: Vec<_> = found.outside.iter().map(String::as_str).collect();
        let (target_type, wanted, far, refused) = expected;
        assert_eq!(
            (found.target_type, places.as_slice()),
            (target_type, wanted),
            "{case}"
        );
        assert_eq!(outside, far, "{case}");
        let why = found.refused.get("far").map_or("", String::as_str);
        assert!(
            why.starts_with(refused) && why.is_empty() == refused.is_empty(),
            "{case}: {why}"
        );
        assert!(
            found.wanted.unresolved.is_empty(),
            "{case}: nothing waits for it"
        );
    }
}

#[test]
fn a_node_that_has_no_id_or_address_yet_is_waited_for() {
    // A new Node of this cloud behind a classic balancer, whose Nodes are configured to be reached by address.
    let mut new = own();
    (new.1.by, new.1.node.provider_id) = (TargetBy::Address, None);
    let found = targets(&[], |_| {}, &[new], None);
    assert!(found.refused.is_empty() && found.wanted.unresolved.contains_key("own"));
    let mut far = foreign("192.168.7.7");
    far.1.node.addresses.clear();
    let found = targets(&[NLB], |_| {}, &[own(), far], None);
    assert_eq!(found.target_type, TargetType::Ip);
    assert!(found.refused.is_empty() && found.wanted.unresolved.contains_key("far"));
}

#[test]
fn a_fargate_node_is_no_target_and_nothing_waits_for_it() {
    let fargate = node(
        "pod",
        "aws:///a/fargate-10.0.0.9",
        "10.0.0.9",
        TargetBy::Machine,
    );
    let found = targets(&[NLB], |_| {}, &[own(), fargate], None);
    assert_eq!(found.wanted.places.len(), 1);
    assert!(found.refused.is_empty() && found.wanted.unresolved.is_empty());
}

fn called<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Vec<String> {
    let calls = calls.into_iter();
    calls.map(|call| call.action.to_owned()).collect()
}

/// A balancer of instances, of which a Node of another cloud becomes a target.
fn with_foreign_target() -> Observed {
    let spec = service(&[NLB]);
    let mut have = settled_network(&spec);
    let found = targets(
        &[NLB],
        |_| {},
        &[own(), foreign("192.168.7.7")],
        Some(TargetType::Instance),
    );
    have.targets = Targets {
        node_groups: have.targets.node_groups.clone(),
        ..found
    };
    have
}

#[test]
fn another_type_of_targets_is_a_new_group_that_has_them_before_it_serves() {
    let have = with_foreign_target();
    let desired = have.desired.clone().unwrap();
    let steps = nlb_plan::plan(&desired, &have, &facts()).unwrap();
    assert_eq!(
        called(&steps[0].calls),
        ["CreateTargetGroup", "RegisterTargets", "ModifyListener"],
        "{steps:?}"
    );
    let of = |call: &Call, key: &str| {
        let found = call.params.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.clone())
    };
    let [create, register, _] = &steps[0].calls[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(of(create, "TargetType").as_deref(), Some("ip"));
    let old = &have.network.as_ref().unwrap().groups[0].group.name;
    assert_ne!(of(create, "Name").as_ref(), Some(old));
    for (place, id, zone) in [(1, "192.168.7.7", Some("all")), (2, "10.0.0.7", None)] {
        let member = format!("Targets.member.{place}");
        assert_eq!(of(register, &format!("{member}.Id")).as_deref(), Some(id));
        let found = of(register, &format!("{member}.AvailabilityZone"));
        assert_eq!(found.as_deref(), zone, "{id}");
    }
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert!(texts[1].starts_with("delete target group"), "{texts:?}");
    // Nodes see the balancer, not its clients.
    let [.., add, remove] = &texts[..] else {
        panic!("{texts:?}");
    };
    assert!(
        add.starts_with("add") && remove.starts_with("remove"),
        "{texts:?}"
    );
    let opened = format!("{:?}", steps[texts.len() - 2].calls);
    assert!(
        opened.contains("10.0.0.0/24") && !opened.contains("0.0.0.0/0"),
        "{opened}"
    );
}

#[test]
fn a_target_outside_the_vpc_leaves_by_the_zones_it_was_registered_with() {
    let mut have = with_foreign_target();
    let mut far = registered("192.168.8.8", HealthState::Unknown);
    far.is_for_all_zones = true;
    let network = have.network.as_mut().unwrap();
    network.groups[0].group.target_type = "ip".to_owned();
    network.groups[0].targets = vec![registered("10.0.0.7", HealthState::Healthy), far];
    let desired = have.desired.clone().unwrap();
    let steps = nlb_plan::plan(&desired, &have, &facts()).unwrap();
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert!(texts[0].starts_with("register 192.168.7.7 in"), "{texts:?}");
    assert!(
        texts[1].starts_with("deregister 192.168.8.8 from"),
        "{texts:?}"
    );
    for step in &steps[..2] {
        let call = format!("{:?}", step.calls);
        assert!(call.contains("AvailabilityZone"), "{call}");
    }
}

#[test]
fn source_ranges_that_nothing_holds_are_reported() {
    let mut have = with_foreign_target();
    let mut spec = service(&[NLB]);
    narrow(&mut spec);
    let asked = Desired::of(&spec, &facts()).unwrap();
    let why = unmet_ranges(&asked, &have).unwrap();
    assert!(why.contains("NLBSecurityGroupMode=Managed"), "{why}");
    assert_eq!(
        unmet_ranges(&Desired::of(&service(&[NLB]), &facts()).unwrap(), &have),
        None
    );
    let network = have.network.as_mut().unwrap();
    network.balancer.groups = ["sg-1".to_owned()].into();
    assert_eq!(unmet_ranges(&asked, &have), None);
}

#[test]
fn health_is_reported_of_each_node_behind_each_port() {
    let spec = service(&[NLB]);
    let mut have = settled_network(&spec);
    let network = have.network.as_mut().unwrap();
    network.groups[0]
        .targets
        .push(registered("i-9", HealthState::Unhealthy));
    let report = report(DesiredState::Present(&spec), &have);
    let shown: Vec<_> = report
        .status
        .health
        .iter()
        .map(|it| (it.target.as_str(), it.listener, it.state))
        .collect();
    let expected = [
        ("node-1", Some(80), HealthState::Healthy),
        ("i-9", Some(80), HealthState::Unhealthy),
    ];
    assert_eq!(shown, expected);
}
