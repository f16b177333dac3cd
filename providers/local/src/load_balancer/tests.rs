//! What is planned for what, as tables and as properties.

mod differences;
mod model;
mod ownership;
mod properties;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudkeel_api::{
    self as api, BalancerRef, CloudError, ClusterIdentity, DesiredState, ErrorKind, HealthProbe,
    IpFamily, LoadBalancerSpec, NodeAddress, NodeFacts, Plan, ServiceRef, TargetBy,
};
use cloudkeel_toolkit::{Classified, DesiredTarget, DesiredTargets, Sharing};

use self::model::{apply, built};
use super::desired::{Desired, targets};
use super::observe::Observed;
use super::plan::{self, target_change, target_diff};
use super::step::{Change, Step};
use super::{Facts, report};
use crate::annotations::{BALANCER_ID, PROTECTED, TYPE};
use crate::id::LocalId;
use crate::wire::{
    Affinity, Algorithm, Balancer, BalancerPatch, BalancerState, Features, HealthCheck, Limits,
    Listener, Probe, Protocol, ProxyProtocol, Target, TargetAt, TargetChange, TargetState,
};

pub(super) fn balancer_ref(uid: &str) -> BalancerRef {
    let cluster = ClusterIdentity {
        name: "c".into(),
        uid: Some("c-1".into()),
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "ns".into(),
        name: "web".into(),
        uid: uid.into(),
    };
    BalancerRef::of(cluster, service)
}

fn facts() -> Facts {
    Facts {
        project: "demo".into(),
        features: Features::default(),
        limits: Limits::default(),
        cluster: Some("c-1".into()),
    }
}

fn listener(port: u16) -> api::Listener {
    api::Listener::tcp(port, 30_000 + port % 1_000)
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
    let node = node(number);
    (node.name.clone(), api::Target::machine(node))
}

fn spec(ports: &[u16], nodes: &[u64]) -> LoadBalancerSpec {
    LoadBalancerSpec {
        listeners: ports.iter().copied().map(listener).collect(),
        targets: nodes.iter().copied().map(target).collect(),
        ..LoadBalancerSpec::plain(balancer_ref("u-1"))
    }
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

fn ours(balancer: Balancer) -> Observed {
    Observed {
        found: Classified::ours(balancer),
        ..Observed::default()
    }
}

/// The plan for an observation that carries what the Service asks for.
fn plan(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let asked = |spec| Desired::of(spec, facts);
    let have = Observed {
        desired: have.desired.clone().or_else(|| desired.spec().map(asked)),
        ..have.clone()
    };
    plan::plan(desired, &have, facts)
}

fn steps(spec: &LoadBalancerSpec, have: &Observed) -> Vec<Step> {
    plan(DesiredState::Present(spec), have, &facts()).unwrap()
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

fn annotate(spec: &mut LoadBalancerSpec, key: &str, value: &str) {
    spec.balancer_ref
        .annotations
        .insert(key.into(), value.into());
}

fn without(edit: impl Fn(&mut Features)) -> Facts {
    let mut facts = facts();
    edit(&mut facts.features);
    facts
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
            s.balancer_ref
                .annotations
                .insert(key.into(), "perhaps".into());
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
        let error = plan(DesiredState::Present(&spec), &Observed::default(), &facts).unwrap_err();
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
    let steps = plan(DesiredState::Present(&spec), &Observed::default(), &facts).unwrap();
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
    let balancer_ref = &spec.balancer_ref;
    let gone = |have: &Observed| plan(DesiredState::Absent(balancer_ref), have, &facts()).unwrap();
    assert_eq!(gone(&Observed::default()), []);
    assert_eq!(gone(&ours(plain)), [Change::Delete.of(&built(&spec))]);
    let released = gone(&ours(protected.clone()));
    let [
        Step::Change {
            id: 7,
            version: 3,
            change: Change::Release(labels),
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
fn a_report_shows_the_addresses_and_what_is_being_done() {
    let mut spec = spec(&[80], &[1]);
    let pause = Duration::from_secs(2);
    let shown = |spec: &LoadBalancerSpec, balancer: Balancer| {
        report(
            DesiredState::Present(spec),
            &ours(balancer),
            &facts(),
            pause,
        )
    };
    let built = built(&spec);
    let shown_now = shown(&spec, built.clone());
    assert_eq!(shown_now.status.id.as_deref(), Some("7"));
    assert_eq!(
        shown_now.status.ingress,
        [api::Ingress::Ip {
            ip: [198, 18, 0, 1].into(),
            mode: api::IpMode::Vip
        }]
    );
    assert_eq!(shown_now.busy, None);
    let id = BALANCER_ID.name().to_owned();
    assert_eq!(
        shown_now.changes.annotations,
        BTreeMap::from([(id.clone(), Some("7".into()))])
    );

    spec.balancer_ref.annotations.insert(id, "7".into());
    assert!(
        shown(&spec, built.clone()).changes.is_empty(),
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
    let nothing = report(
        DesiredState::Present(&spec),
        &Observed::default(),
        &facts(),
        pause,
    );
    assert_eq!(nothing, api::Report::default());
}
