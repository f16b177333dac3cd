//! What is planned for what, as tables and as properties.

mod model;
mod ownership;
mod properties;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudkeel_api::{
    self as api, Claim, ClusterIdentity, ErrorKind, HealthProbe, IpFamily, LoadBalancerSpec,
    NodeAddress, NodeFacts, Plan, ServiceRef, TargetBy, Wish,
};

use self::model::{apply, built};
use super::desired::Targets;
use super::observe::Observed;
use super::plan::{plan, target_change};
use super::step::Step;
use super::{Facts, report};
use crate::annotations::{BALANCER_ID, PROTECTED, TYPE};
use crate::id::LocalId;
use crate::wire::{
    Affinity, Algorithm, Balancer, BalancerPatch, BalancerState, Features, HealthCheck, Listener,
    Probe, Protocol, ProxyProtocol, Target, TargetAt, TargetChange, TargetState,
};

pub(super) fn claim(uid: &str) -> Claim {
    Claim {
        cluster: ClusterIdentity {
            name: "c".into(),
            uid: Some("c-1".into()),
            pod_cidrs: vec![],
        },
        service: ServiceRef {
            namespace: "ns".into(),
            name: "web".into(),
            uid: uid.into(),
        },
        annotations: BTreeMap::new(),
        ingress: vec![],
        adopt: None,
    }
}

fn facts() -> Facts {
    Facts {
        project: "demo".into(),
        features: Features::default(),
        cluster: Some("c-1".into()),
    }
}

fn port(port: u16) -> api::Listener {
    api::Listener {
        name: None,
        protocol: api::Protocol::Tcp,
        port,
        node_port: Some(30_000 + port % 1_000),
        app_protocol: None,
        health_check: api::HealthCheck::tcp(),
    }
}

fn node(number: u64) -> NodeFacts {
    let [.., last] = number.to_be_bytes();
    NodeFacts {
        name: format!("node-{number}"),
        provider_id: Some(LocalId::new("demo", number).provider_id()),
        addresses: vec![NodeAddress::internal([10, 0, 0, last].into())],
        ..NodeFacts::default()
    }
}

fn target(number: u64) -> (String, api::Target) {
    let target = api::Target {
        node: node(number),
        by: TargetBy::Machine,
        state: api::TargetState::Serving,
    };
    (target.node.name.clone(), target)
}

fn spec(ports: &[u16], nodes: &[u64]) -> LoadBalancerSpec {
    LoadBalancerSpec {
        claim: claim("u-1"),
        listeners: ports.iter().copied().map(port).collect(),
        targets: nodes.iter().copied().map(target).collect(),
        families: vec![IpFamily::V4],
        address: None,
        source_ranges: vec![],
        traffic_policy: api::TrafficPolicy::Cluster,
        health_check_node_port: None,
        affinity: api::Affinity::None,
        options: api::Options::default(),
    }
}

fn ours(balancer: Balancer) -> Observed {
    Observed {
        ours: vec![balancer],
        ..Observed::default()
    }
}

fn steps(spec: &LoadBalancerSpec, have: &Observed) -> Vec<Step> {
    plan(Wish::Present(spec), have, &facts()).unwrap()
}

#[test]
fn what_is_not_there_is_made_in_one_step() {
    let spec = spec(&[443, 80], &[1, 2]);
    let steps = steps(&spec, &Observed::default());
    let [Step::Create(new)] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    assert_eq!(new.name, "au1");
    assert_eq!(
        new.labels,
        BTreeMap::from([
            ("cloudkeel.dev/service-uid".into(), "u-1".into()),
            ("cloudkeel.dev/service".into(), "ns/web".into()),
            ("cloudkeel.dev/cluster-uid".into(), "c-1".into()),
        ])
    );
    let ports: Vec<_> = new.listeners.iter().map(|l| l.port).collect();
    assert_eq!(ports, [80, 443]);
    assert_eq!(new.targets.len(), 2);
}

#[test]
fn equal_state_means_no_step() {
    let spec = spec(&[80, 443], &[1, 2]);
    assert_eq!(steps(&spec, &ours(built(&spec))), []);
}

/// A wish, and what has to change for it.
type Difference = (
    &'static str,
    fn(&mut LoadBalancerSpec),
    fn(&mut BalancerPatch),
);

const DIFFERENCES: &[Difference] = &[
    (
        "name",
        |want| want.options.name = Some("web".into()),
        |patch| patch.name = Some("web".into()),
    ),
    (
        "neutral type",
        |want| want.options.size = Some("large".into()),
        |patch| patch.kind = Some("large".into()),
    ),
    (
        "own type wins",
        |want| {
            want.options.size = Some("large".into());
            annotate(want, TYPE.name(), "medium");
        },
        |patch| patch.kind = Some("medium".into()),
    ),
    (
        "internal",
        |want| want.options.internal = Some(true),
        |patch| patch.internal = Some(true),
    ),
    (
        "both families",
        |want| want.families = vec![IpFamily::V6, IpFamily::V4],
        |patch| patch.families = Some(BTreeSet::from([IpFamily::V4, IpFamily::V6])),
    ),
    (
        "address",
        |want| want.address = Some([198, 18, 0, 9].into()),
        |patch| patch.address = Some([198, 18, 0, 9].into()),
    ),
    (
        "address of the other family",
        |want| {
            want.families = vec![IpFamily::V6];
            want.address = "2001:db8:1::9".parse().ok();
        },
        |patch| {
            patch.families = Some(BTreeSet::from([IpFamily::V6]));
            patch.address = "2001:db8:1::9".parse().ok();
        },
    ),
    (
        "hostname",
        |want| want.options.hostname = Some("web.example".into()),
        |patch| patch.hostname = Some(Some("web.example".into())),
    ),
    (
        "algorithm",
        |want| want.options.algorithm = Some(api::Algorithm::SourceIp),
        |patch| patch.algorithm = Some(Algorithm::SourceIp),
    ),
    (
        "PROXY protocol",
        |want| want.options.proxy_protocol = Some(Some(api::ProxyProtocol::V2)),
        |patch| patch.proxy_protocol = Some(Some(ProxyProtocol::V2)),
    ),
    (
        "source ranges",
        |want| want.source_ranges = vec!["192.0.2.7/24".parse().unwrap()],
        |patch| patch.source_ranges = Some(BTreeSet::from(["192.0.2.0/24".parse().unwrap()])),
    ),
    (
        "affinity",
        |want| {
            let timeout = Duration::from_mins(1);
            want.affinity = api::Affinity::ClientIp { timeout };
        },
        |patch| patch.affinity = Some(Some(Affinity { seconds: 60 })),
    ),
    (
        "protection",
        |want| annotate(want, PROTECTED.name(), "true"),
        |patch| patch.protected = Some(true),
    ),
];

fn annotate(spec: &mut LoadBalancerSpec, key: &str, value: &str) {
    spec.claim.annotations.insert(key.into(), value.into());
}

#[test]
fn each_difference_is_one_change_of_just_that() {
    for (case, wish, change) in DIFFERENCES {
        let have = ours(built(&spec(&[80], &[1])));
        let mut want = spec(&[80], &[1]);
        wish(&mut want);
        let mut patch = BalancerPatch::default();
        change(&mut patch);
        let change = Step::Change {
            id: 7,
            version: 3,
            patch: Box::new(patch),
        };
        assert_eq!(steps(&want, &have), [change], "{case}");
    }
}

#[test]
fn what_nobody_asked_for_is_left_alone_or_taken_back() {
    let want = spec(&[80], &[1]);
    let have = |edit: &dyn Fn(&mut Balancer)| {
        let mut balancer = built(&want);
        edit(&mut balancer);
        ours(balancer)
    };
    for (case, have, texts) in [
        ("type", have(&|b| b.kind = "large".into()), vec![]),
        ("protection", have(&|b| b.protected = true), vec![]),
        (
            "address",
            have(&|b| b.addresses = vec![[198, 18, 0, 77].into()]),
            vec![],
        ),
        (
            "labels of people, and no cluster mark",
            have(&|b| {
                b.labels = BTreeMap::from([("cloudkeel.dev/service-uid".into(), "u-1".into())]);
            }),
            vec![],
        ),
        (
            "algorithm",
            have(&|b| b.algorithm = Algorithm::SourceIp),
            vec!["change algorithm of balancer 7"],
        ),
        (
            "hostname and PROXY protocol",
            have(&|b| {
                b.hostname = Some("x".into());
                b.proxy_protocol = Some(ProxyProtocol::V1);
            }),
            vec!["change hostname, PROXY protocol of balancer 7"],
        ),
        (
            "a listener dropped",
            have(&|b| b.listeners.clear()),
            vec!["set listeners of balancer 7 to 80/tcp"],
        ),
        (
            "a health check changed",
            have(&|b| b.listeners[0].health_check.retries = 9),
            vec!["set listeners of balancer 7 to 80/tcp"],
        ),
        (
            "a stray target",
            have(&|b| b.targets.push(serving(TargetAt::Machine(99)))),
            vec!["remove machine 99 at balancer 7"],
        ),
    ] {
        let planned = Plan::of(&steps(&want, &have));
        let planned: Vec<_> = planned.steps.into_iter().map(|step| step.text).collect();
        assert_eq!(planned, texts, "{case}");
    }
}

#[test]
fn listeners_carry_their_checks_and_what_is_not_said_is_the_clouds_own() {
    let mut want = spec(&[80], &[]);
    want.listeners[0].protocol = api::Protocol::Udp;
    want.listeners[0].health_check = api::HealthCheck {
        probe: HealthProbe::Http {
            path: "/healthz".into(),
        },
        port: Some(10256),
        interval: Some(Duration::from_millis(1500)),
        timeout: Some(Duration::ZERO),
        retries: None,
    };
    let steps = steps(&want, &Observed::default());
    let [Step::Create(new)] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    let expected = Listener {
        protocol: Protocol::Udp,
        port: 80,
        target_port: 30_080,
        health_check: HealthCheck {
            probe: Probe::Http {
                path: "/healthz".into(),
            },
            port: Some(10256),
            interval_seconds: 2,
            timeout_seconds: 1,
            ..HealthCheck::default()
        },
    };
    assert_eq!(new.listeners, [expected]);
}

const fn serving(at: TargetAt) -> Target {
    Target {
        at,
        state: TargetState::Serving,
    }
}

const fn draining(at: TargetAt) -> Target {
    Target {
        at,
        state: TargetState::Draining,
    }
}

/// `1 2d ?` are machine 1, machine 2 draining, and a node that cannot be resolved.
fn read_targets(text: &str) -> Targets {
    let mut targets = Targets::default();
    for word in text.split_whitespace() {
        let number = |digits: &str| TargetAt::Machine(digits.parse().unwrap());
        match word.strip_suffix('d') {
            _ if word == "?" => {
                targets.unresolved.insert("node".into(), "why".into());
            }
            Some(digits) => {
                let place = number(digits);
                targets.places.insert(place, TargetState::Draining);
            }
            None => {
                targets.places.insert(number(word), TargetState::Serving);
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
        let have: Vec<_> = have.map(|(at, state)| Target { at, state }).collect();
        let change = target_change(&read_targets(want), &have);
        assert_eq!(written(&change), expected, "{case}");
    }
}

fn only_target(node: NodeFacts, by: TargetBy, facts: &Facts) -> Targets {
    let target = api::Target {
        node,
        by,
        state: api::TargetState::Draining,
    };
    let mut spec = spec(&[80], &[]);
    spec.targets.insert("n".into(), target);
    Targets::of(&spec, facts)
}

fn without(edit: impl Fn(&mut Features)) -> Facts {
    let mut facts = facts();
    edit(&mut facts.features);
    facts
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
        let targets = only_target(node(1), by, &facts);
        let expected = BTreeMap::from([(expected.at, expected.state)]);
        assert_eq!(targets.places, expected, "{case}");
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
        let Targets { places, unresolved } = only_target(node, by, &facts);
        assert!(places.is_empty(), "{case}");
        assert!(unresolved["n"].contains(why), "{case}: {unresolved:?}");
    }
}

#[test]
fn machines_that_the_cloud_does_not_know_are_left_out() {
    let spec = spec(&[80], &[1, 2]);
    let mut have = Observed {
        unknown_machines: BTreeSet::from([2]),
        ..Observed::default()
    };
    let planned = steps(&spec, &have);
    let [Step::Create(new)] = planned.as_slice() else {
        panic!("{planned:?}");
    };
    assert_eq!(new.targets, [serving(TargetAt::Machine(1))]);

    let mut balancer = built(&spec);
    balancer.targets = vec![serving(TargetAt::Machine(1))];
    have.ours = vec![balancer];
    assert_eq!(steps(&spec, &have), []);
}

#[test]
fn the_impossible_is_refused_with_its_reason() {
    let with = |edit: &dyn Fn(&mut LoadBalancerSpec)| {
        let mut spec = spec(&[80, 81], &[1]);
        edit(&mut spec);
        spec
    };
    let udp = with(&|s| s.listeners[1].protocol = api::Protocol::Udp);
    let annotated = |key: &'static str| {
        with(&|s| {
            s.claim.annotations.insert(key.into(), "perhaps".into());
        })
    };
    for (case, spec, facts, why) in [
        (
            "UDP",
            udp.clone(),
            without(|f| f.udp = false),
            "port 81: this cloud cannot balance UDP",
        ),
        (
            "mixed",
            udp,
            without(|f| f.mixed_protocols = false),
            "cannot mix protocols",
        ),
        (
            "SCTP",
            with(&|s| s.listeners[0].protocol = api::Protocol::Sctp),
            facts(),
            "port 80: this cloud cannot balance SCTP",
        ),
        (
            "no node port",
            with(&|s| s.listeners[0].node_port = None),
            facts(),
            "port 80 has no node port: set allocateLoadBalancerNodePorts to true",
        ),
        (
            "bad annotation",
            annotated(PROTECTED.name()),
            facts(),
            "\"perhaps\": expected `true` or `false`",
        ),
    ] {
        let error = plan(Wish::Present(&spec), &Observed::default(), &facts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{case}");
        assert!(error.message().contains(why), "{case}: {error}");
    }
}

#[test]
fn a_cloud_with_one_family_gets_the_first_one() {
    let mut facts = facts();
    facts.features.dual_stack = false;
    let mut spec = spec(&[80], &[1]);
    spec.families = vec![IpFamily::V6, IpFamily::V4];
    let steps = plan(Wish::Present(&spec), &Observed::default(), &facts).unwrap();
    let [Step::Create(new)] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    assert_eq!(new.families, BTreeSet::from([IpFamily::V6]));
}

#[test]
fn what_goes_is_deleted_and_what_is_protected_is_released() {
    let spec = spec(&[80], &[1]);
    let plain = built(&spec);
    let protected = Balancer {
        protected: true,
        ..plain.clone()
    };
    let claim = &spec.claim;
    let gone = |have: &Observed| plan(Wish::Absent(claim), have, &facts()).unwrap();
    assert_eq!(gone(&Observed::default()), []);
    assert_eq!(gone(&ours(plain)), [Step::Delete { id: 7, version: 3 }]);
    let released = gone(&ours(protected.clone()));
    let [
        Step::Release {
            id: 7,
            version: 3,
            labels,
        },
    ] = released.as_slice()
    else {
        panic!("{released:?}");
    };
    assert!(labels.is_empty(), "{labels:?}");
    let after = apply(Some(protected), &released).unwrap();
    assert_eq!(after.targets.len(), 1, "nothing else is touched");
}

#[test]
fn a_report_shows_the_face_and_what_is_being_done() {
    let mut spec = spec(&[80], &[1]);
    let pause = Duration::from_secs(2);
    let shown = |spec: &LoadBalancerSpec, balancer: Balancer| {
        report(Wish::Present(spec), &ours(balancer), pause)
    };
    let built = built(&spec);
    let face = shown(&spec, built.clone());
    assert_eq!(face.status.id.as_deref(), Some("7"));
    assert_eq!(
        face.status.ingress,
        [api::Ingress::Ip {
            ip: [198, 18, 0, 1].into(),
            mode: api::IpMode::Vip
        }]
    );
    assert_eq!(face.busy, None);
    let id = BALANCER_ID.name().to_owned();
    assert_eq!(
        face.annotations,
        BTreeMap::from([(id.clone(), Some("7".into()))])
    );

    spec.claim.annotations.insert(id, "7".into());
    assert!(
        shown(&spec, built.clone()).annotations.is_empty(),
        "written already"
    );

    let proxied = Balancer {
        proxy_protocol: Some(ProxyProtocol::V2),
        ..built.clone()
    };
    let mode = shown(&spec, proxied).status.ingress;
    assert!(matches!(
        mode[..],
        [api::Ingress::Ip {
            mode: api::IpMode::Proxy,
            ..
        }]
    ));

    let named = Balancer {
        hostname: Some("web.example".into()),
        ..built.clone()
    };
    assert_eq!(
        shown(&spec, named).status.ingress,
        [api::Ingress::Hostname("web.example".into())]
    );

    for state in [BalancerState::Pending, BalancerState::Deleting] {
        let busy = shown(
            &spec,
            Balancer {
                state,
                ..built.clone()
            },
        )
        .busy
        .unwrap();
        assert_eq!(busy.check_after, pause, "{}", busy.why);
    }
    let nothing = report(Wish::Present(&spec), &Observed::default(), pause);
    assert_eq!(nothing, api::Report::default());
}
