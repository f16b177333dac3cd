use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    ErrorKind, HealthState, InstanceState, NodeAddress, OwnedResource, PlannedStep, ResourceKind,
    Route, RouteTarget, StepAction, TargetHealth, TrafficPolicy,
};
use serde_json::json;

use super::*;
use crate::fixtures::{
    TAINT, ago, healthy, machine, node, node_with, not_ready, now, observed, one, service_ref,
    service_with, settings, tainted,
};
use crate::permission::PERMISSIONS;
use crate::snapshot::{
    AccessCheck, Endpoints, InstanceMatch, LeaseState, ManagerPod, NodeOwner, NodeState, Trouble,
    Unread,
};

fn ids(snapshot: &Snapshot) -> Vec<&'static str> {
    let findings = diagnose(snapshot).findings;
    findings.iter().map(Finding::id).collect()
}

/// A healthy cluster of three Nodes, and this one.
fn beside(node_in_question: NodeState) -> Snapshot {
    healthy(vec![node("a"), node("b"), node_in_question])
}

#[test]
fn a_healthy_cluster_has_no_findings() {
    let diagnosis = diagnose(&healthy(vec![node("a"), node("b")]));
    assert_eq!((diagnosis.findings, diagnosis.worst), (vec![], None));
    let texts: Vec<_> = diagnosis
        .state
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(
        texts.contains(&"2: 2 Ready, 0 not initialized"),
        "{texts:?}"
    );
}

#[expect(clippy::too_many_lines, reason = "one table")]
#[test]
fn every_state_of_a_node_has_its_finding() {
    let lookalike = InstanceMatch::None {
        lookalike: Some(("other".to_owned(), "hcloud://7".parse().unwrap())),
    };
    let none = InstanceMatch::None { lookalike: None };
    let owned_by = |mut node: NodeState, owner: NodeOwner| {
        node.owner = owner;
        node.matches.clear();
        node
    };
    let unowned = |is_malformed| NodeOwner::Unowned {
        why: "why".to_owned(),
        is_malformed,
    };
    let with = |mut node: NodeState, found: InstanceMatch| {
        node.matches = [("fsn".to_owned(), found)].into();
        node
    };
    let mut in_two_clouds = tainted("x", one(machine("x")));
    in_two_clouds
        .matches
        .insert("dc".to_owned(), one(machine("y")));
    let mut unfinished = machine("x");
    unfinished.not_ready = Some("its address is missing".to_owned());
    let mut off = machine("x");
    off.state = InstanceState::ShutDown;
    let mut moved = machine("x");
    moved.zone = Some("b".to_owned());
    let mut readdressed = machine("x");
    readdressed.addresses = vec![NodeAddress::internal("10.1.0.9".parse().unwrap())];
    let taints = json!([{"key": TAINT, "effect": "NoSchedule"}]);
    let foreign = node_with(
        "x",
        json!({"spec": {"providerID": "aws:///a/i-1", "taints": taints}}),
    );
    let node_ip = json!({"metadata": {"annotations": {
        "alpha.kubernetes.io/provided-node-ip": "192.0.2.7",
    }}});
    let zone_a = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}});
    let paused = json!({"metadata": {"annotations": {"cloudkeel.dev/paused": "true"}}});
    let held = json!({"metadata": {"annotations": {"cloudkeel.dev/hold": "true"}}});
    let network = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"},
    ]}});
    let many = InstanceMatch::Many(vec![
        "hcloud://1".parse().unwrap(),
        "hcloud://2".parse().unwrap(),
    ]);
    for (case, node, expected) in [
        (
            "no machine",
            tainted("x", none.clone()),
            &["node-no-machine"][..],
        ),
        (
            "another name",
            tainted("x", lookalike),
            &["node-wrong-name"],
        ),
        ("two machines", tainted("x", many), &["node-two-machines"]),
        ("two clouds", in_two_clouds, &["node-two-clouds"]),
        ("its cloud fails", tainted("x", InstanceMatch::Unread), &[]),
        (
            "unfinished",
            tainted("x", one(unfinished)),
            &["node-machine-not-ready"],
        ),
        (
            "nothing happens",
            tainted("x", one(machine("x"))),
            &["node-waits"],
        ),
        (
            "of another cloud",
            owned_by(foreign, unowned(false)),
            &["node-foreign-id"],
        ),
        (
            "not selected",
            owned_by(tainted("x", none.clone()), unowned(false)),
            &["node-unmanaged"],
        ),
        (
            "malformed",
            owned_by(node("x"), unowned(true)),
            &["node-malformed-id"],
        ),
        (
            "of another cloud, initialised",
            owned_by(node("x"), unowned(false)),
            &[],
        ),
        (
            "not external",
            with(
                node_with("x", json!({"spec": {"providerID": ""}})),
                none.clone(),
            ),
            &["kubelet-not-external"],
        ),
        (
            "shut down",
            with(not_ready("x", json!({})), one(off)),
            &["node-shut-down"],
        ),
        ("not ready", not_ready("x", json!({})), &["node-not-ready"]),
        (
            "gone",
            with(not_ready("x", json!({})), none.clone()),
            &["node-machine-gone"],
        ),
        (
            "held",
            with(not_ready("x", held), none.clone()),
            &["node-held"],
        ),
        (
            "paused",
            with(not_ready("x", paused), none.clone()),
            &["node-machine-gone", "node-paused"],
        ),
        (
            "Ready and not listed",
            with(node("x"), none),
            &["node-ready-not-listed"],
        ),
        (
            "moved",
            with(node_with("x", zone_a), one(moved)),
            &["node-topology-differs"],
        ),
        (
            "readdressed",
            with(node("x"), one(readdressed)),
            &["node-addresses-differ"],
        ),
        (
            "unknown --node-ip",
            node_with("x", node_ip),
            &["node-address-unknown"],
        ),
        (
            "same ID",
            node_with("x", json!({"spec": {"providerID": "hcloud://a"}})),
            &["node-duplicate-id"],
        ),
        (
            "no network",
            node_with("x", network),
            &["network-unavailable"],
        ),
    ] {
        assert_eq!(ids(&beside(node)), expected, "{case}");
    }
}

#[test]
fn while_a_cloud_cannot_be_built_nothing_is_said_of_nodes_that_may_be_its_own() {
    let mut unselected = tainted("x", InstanceMatch::None { lookalike: None });
    unselected.owner = NodeOwner::Unowned {
        why: "no cloud here selects it".to_owned(),
        is_malformed: false,
    };
    let mut snapshot = beside(unselected);
    assert_eq!(ids(&snapshot), ["node-unmanaged"]);
    let mut broken = crate::snapshot::CloudState::unread("dc", "vsphere");
    broken.build_error = Some(Trouble {
        kind: ErrorKind::Timeout,
        text: "no answer".to_owned(),
    });
    snapshot.clouds.push(broken);
    assert_eq!(ids(&snapshot), ["cloud-unreachable"]);
}

#[test]
fn a_new_node_is_given_a_minute() {
    let mut young = tainted("x", one(machine("x")));
    let mut view = (*young.view).clone();
    view.facts.created = Some(ago(20));
    young.view = Arc::new(view);
    assert_eq!(ids(&beside(young)), [] as [&str; 0]);
}

#[test]
fn a_cloud_that_shows_no_known_machine_is_one_finding_and_not_one_for_each_node() {
    let unseen = |name| NodeState {
        matches: [("fsn".to_owned(), InstanceMatch::None { lookalike: None })].into(),
        ..node(name)
    };
    let snapshot = healthy(vec![unseen("a"), unseen("b"), unseen("c")]);
    assert_eq!(ids(&snapshot), ["cloud-other-project"]);
}

#[test]
fn each_refusal_of_a_cloud_has_its_own_finding() {
    let trouble = |kind| Trouble {
        kind,
        text: "list".to_owned(),
    };
    for (kind, expected) in [
        (ErrorKind::Unauthenticated, "cloud-credential"),
        (ErrorKind::Denied, "cloud-denied"),
        (
            ErrorKind::Throttled { retry_after: None },
            "cloud-throttled",
        ),
        (ErrorKind::Timeout, "cloud-unreachable"),
        (ErrorKind::Malformed, "cloud-unreachable"),
    ] {
        let mut snapshot = healthy(vec![]);
        snapshot.clouds[0].scope = Some(Err(trouble(kind)));
        snapshot.clouds[0].instances = Some(Err(trouble(kind)));
        assert_eq!(ids(&snapshot), [expected], "{kind}");
    }
    let mut snapshot = healthy(vec![]);
    let cloud = &mut snapshot.clouds[0];
    cloud.owned = Some(Err(trouble(ErrorKind::Unsupported)));
    cloud.budget = Some((40, 3600));
    cloud.has_cluster_id = false;
    if let Some(Ok(instances)) = &mut cloud.instances {
        instances
            .blind_spots
            .push(("zone b".to_owned(), "timeout".to_owned()));
        instances
            .without_node
            .push(("m".to_owned(), "hcloud://9".parse().unwrap()));
    }
    let expected = [
        "cloud-blind-spot",
        "cloud-throttled",
        "cloud-untagged",
        "machine-without-node",
    ];
    assert_eq!(ids(&snapshot), expected);
    for (kind, expected) in [
        (ErrorKind::Invalid, "cloud-not-built"),
        (ErrorKind::Unauthenticated, "cloud-credential"),
    ] {
        snapshot.clouds[0].build_error = Some(trouble(kind));
        assert_eq!(ids(&snapshot), [expected]);
    }
}

#[test]
fn resources_without_a_service_are_left_over() {
    let owned = |uid: &str| OwnedResource {
        kind: ResourceKind::LoadBalancer,
        id: "1".to_owned(),
        name: "lb".to_owned(),
        service: Some(service_ref(uid)),
    };
    let mut snapshot = healthy(vec![node("a")]);
    snapshot.services = Ok(vec![service_with("web", json!({}))]);
    snapshot.clouds[0].owned = Some(Ok(vec![owned("web")]));
    assert_eq!(ids(&snapshot), [] as [&str; 0]);
    snapshot.clouds[0].owned = Some(Ok(vec![owned("gone")]));
    assert_eq!(ids(&snapshot), ["balancer-orphaned"]);
    snapshot.services = Err(unread(true));
    assert_eq!(
        ids(&snapshot),
        ["not-readable"],
        "without Services nothing is left over"
    );
}

fn unread(is_denied: bool) -> Unread {
    Unread {
        what: "Services".to_owned(),
        why: "forbidden".to_owned(),
        is_denied,
    }
}

#[test]
fn an_api_server_that_does_not_answer_is_one_finding() {
    let mut snapshot = healthy(vec![]);
    snapshot.api_server = Err(unread(false));
    snapshot.nodes = Err(unread(false));
    snapshot.leases = Err(unread(false));
    assert_eq!(ids(&snapshot), ["api-unreachable"]);
}

#[test]
fn kubelets_that_do_not_fit_the_api_server_are_found() {
    for (kubelet, is_found) in [
        ("v1.35.4", false),
        ("v1.32.0+k3s1", false),
        ("v1.31.9", true),
        ("v1.36.0", true),
        ("strange", false),
    ] {
        let mut other = node("x");
        other.kubelet_version = kubelet.to_owned();
        let found = ids(&beside(other)).contains(&"version-skew");
        assert_eq!(found, is_found, "{kubelet}");
    }
}

fn pod(program: &str) -> ManagerPod {
    ManagerPod {
        namespace: "kube-system".to_owned(),
        name: program.to_owned(),
        program: program.to_owned(),
        phase: "Running".to_owned(),
        is_ready: true,
        has_host_network: true,
        tolerates_uninitialized: true,
        tolerates_not_ready: true,
        lease: Some("ccm".to_owned()),
        ..ManagerPod::default()
    }
}

#[test]
fn the_lease_says_whether_anything_leads() {
    let lease = |holder: Option<&str>, renewed| LeaseState {
        name: "ccm".to_owned(),
        holder: holder.map(str::to_owned),
        renewed: Some(renewed),
        duration: Duration::from_secs(15),
    };
    let ahead = now() + jiff::SignedDuration::from_secs(60);
    for (case, leases, pods, expected) in [
        ("nothing", vec![], vec![], &["manager-missing"][..]),
        (
            "a Pod, no lease",
            vec![],
            vec![pod("cloudkeel")],
            &["lease-not-held"],
        ),
        (
            "expired",
            vec![lease(Some("a"), ago(60))],
            vec![pod("cloudkeel")],
            &["lease-not-held"],
        ),
        (
            "released",
            vec![lease(None, ago(1))],
            vec![pod("cloudkeel")],
            &["lease-not-held"],
        ),
        (
            "left",
            vec![lease(None, ago(1))],
            vec![],
            &["manager-missing"],
        ),
        (
            "held, outside of the cluster",
            vec![lease(Some("a"), ago(1))],
            vec![],
            &[],
        ),
        (
            "clock",
            vec![lease(Some("a"), ahead)],
            vec![pod("cloudkeel")],
            &["lease-clock"],
        ),
    ] {
        let mut snapshot = healthy(vec![]);
        snapshot.leases = Ok(leases);
        snapshot.pods = Ok(pods);
        assert_eq!(ids(&snapshot), expected, "{case}");
    }
}

#[test]
fn two_managers_exclude_each_other_only_by_one_lease() {
    let with_lease = |program: &str, lease: Option<&str>| ManagerPod {
        lease: lease.map(str::to_owned),
        provider: Some("hcloud".to_owned()),
        ..pod(program)
    };
    let elsewhere = ManagerPod {
        provider: Some("aws".to_owned()),
        lease: Some("other".to_owned()),
        ..pod("aws-cloud-controller-manager")
    };
    for (case, second, is_found) in [
        ("the same lease", with_lease("go", Some("ccm")), false),
        ("another lease", with_lease("go", Some("other")), true),
        ("no election", with_lease("go", None), true),
        ("of a cloud that is not configured here", elsewhere, false),
    ] {
        let mut snapshot = healthy(vec![]);
        snapshot.pods = Ok(vec![pod("cloudkeel"), second]);
        let found = ids(&snapshot).contains(&"manager-second");
        assert_eq!(found, is_found, "{case}");
    }
}

#[test]
fn pods_of_the_manager_that_cannot_run_are_found() {
    type Change = fn(&mut ManagerPod);
    let cases: [(&str, Change, &[&str]); 5] = [
        (
            "unscheduled",
            |it| it.unscheduled = Some("taint".into()),
            &["manager-unscheduled"],
        ),
        (
            "crashing",
            |it| it.waiting = Some("CrashLoopBackOff".into()),
            &["manager-failing"],
        ),
        (
            "recovered",
            |it| it.last_failure = Some("Error".into()),
            &[],
        ),
        (
            "no toleration",
            |it| it.tolerates_uninitialized = false,
            &["manager-no-toleration"],
        ),
        (
            "needs a Pod network",
            |it| it.has_host_network = false,
            &["manager-needs-cni"],
        ),
    ];
    for (case, change, expected) in cases {
        let mut changed = pod("cloudkeel");
        change(&mut changed);
        let mut snapshot = healthy(vec![]);
        snapshot.pods = Ok(vec![changed]);
        assert_eq!(ids(&snapshot), expected, "{case}");
    }
}

#[test]
fn every_missing_permission_is_named() {
    let mut snapshot = healthy(vec![]);
    snapshot.access.subject = Some("kube-system/cloudkeel".to_owned());
    snapshot.access.checks = PERMISSIONS
        .iter()
        .map(|permission| AccessCheck {
            permission: *permission,
            is_allowed: permission.verb != "delete",
        })
        .collect();
    let findings = diagnose(&snapshot).findings;
    let whats: Vec<_> = findings.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        whats,
        ["it may not delete nodes: Nodes whose machines are gone stay"]
    );
}

#[test]
fn routes_are_planned_as_the_route_controller_does() {
    let routed = |name: &str, cidr: &str| node_with(name, json!({"spec": {"podCIDRs": [cidr]}}));
    let route = |destination: &str, target: RouteTarget| Route {
        name: destination.to_owned(),
        destination: destination.parse().unwrap(),
        target,
        blackhole: false,
        follows_addresses: false,
    };
    let nodes = vec![
        routed("a", "10.2.1.0/24"),
        routed("b", "10.2.2.0/24"),
        routed("c", "10.2.1.0/24"),
        node("d"),
    ];
    let to = |place: usize| RouteTarget::node(&nodes[place].view.facts);
    let nowhere = RouteTarget::Elsewhere {
        hop: "10.9.9.9".to_owned(),
    };
    let routes = vec![
        route("10.2.1.0/24", to(0)),
        route("10.2.2.0/24", to(0)),
        route("10.2.9.0/24", nowhere),
    ];
    let mut snapshot = healthy(nodes);
    snapshot.clouds[0].routes = Some(Ok(routes));
    let expected = [
        "pod-cidr-conflict",
        "route-missing",
        "route-wrong",
        "pod-cidr-missing",
        "route-suspect",
    ];
    assert_eq!(ids(&snapshot), expected);
    snapshot.settings.routes = false;
    assert_eq!(ids(&snapshot), [] as [&str; 0]);
}

#[expect(clippy::too_many_lines, reason = "one table")]
#[test]
fn every_state_of_a_service_has_its_finding() {
    let deleting = |finalizer: &str, seconds| {
        let metadata = json!({"metadata": {
            "deletionTimestamp": ago(seconds).to_string(), "finalizers": [finalizer],
        }});
        let mut service = service_with("x", metadata);
        service.deleting_since = Some(ago(seconds));
        service
    };
    let ours = "service.kubernetes.io/load-balancer-cleanup";
    let no_address = json!({"status": {"loadBalancer": null}});
    let mut not_served = service_with("x", no_address.clone());
    not_served.owner = None;
    let mut invalid = service_with("x", json!({}));
    invalid.draft = Some(Err("a: is wrong\nb: too".to_owned()));
    let seen = |change: &dyn Fn(&mut cloudkeel_api::Observation)| {
        let mut observation = observed();
        change(&mut observation);
        let mut service = service_with("x", json!({}));
        service.observed = Some(Ok(observation));
        service
    };
    let failing = |kind| {
        let mut service = service_with("x", json!({}));
        let text = "why".to_owned();
        service.observed = Some(Err(Trouble { kind, text }));
        service
    };
    let mut paused = seen(&|_| ());
    let annotation = ("cloudkeel.dev/paused".to_owned(), "true".to_owned());
    Arc::make_mut(&mut paused.view)
        .annotations
        .extend([annotation]);
    let step = PlannedStep {
        text: "add target n".to_owned(),
        destructive: false,
        action: StepAction::Create,
        ineffective: false,
    };
    let health = |target: &str, state| TargetHealth {
        target: target.to_owned(),
        listener: None,
        state,
    };
    for (case, service, expected) in [
        ("fine", seen(&|_| ()), &[][..]),
        (
            "pending",
            service_with("x", no_address),
            &["service-pending"],
        ),
        ("not served", not_served, &["service-not-served"]),
        ("invalid", invalid, &["service-invalid"]),
        (
            "missing",
            seen(&|it| it.report.status.exists = false),
            &["service-balancer-missing"],
        ),
        (
            "differs",
            seen(&|it| it.plan.steps.push(step.clone())),
            &["service-differs"],
        ),
        (
            "not ours",
            failing(ErrorKind::NotOurs),
            &["service-not-ours"],
        ),
        (
            "unread",
            failing(ErrorKind::Timeout),
            &["service-unreadable"],
        ),
        (
            "of another controller",
            failing(ErrorKind::ImplementedElsewhere),
            &[],
        ),
        (
            "one target unhealthy",
            seen(&|it| {
                it.report.status.health = vec![
                    health("a", HealthState::Healthy),
                    health("b", HealthState::Unhealthy),
                ];
            }),
            &["service-targets-unhealthy"],
        ),
        (
            "one target unhealthy under the policy Local",
            {
                let mut service = seen(&|it| {
                    it.report.status.health = vec![
                        health("a", HealthState::Healthy),
                        health("b", HealthState::Unhealthy),
                    ];
                });
                Arc::make_mut(&mut service.view).traffic_policy = TrafficPolicy::Local;
                service
            },
            &[],
        ),
        (
            "all targets unhealthy",
            seen(&|it| it.report.status.health = vec![health("a", HealthState::Unhealthy)]),
            &["service-targets-down"],
        ),
        ("just deleted", deleting(ours, 20), &[]),
        ("paused", paused, &["service-paused"]),
        ("stuck", deleting(ours, 600), &["service-stuck"]),
        (
            "kept by another",
            deleting("example.com/x", 600),
            &["service-foreign-finalizer"],
        ),
    ] {
        let mut snapshot = healthy(vec![node("a")]);
        snapshot.services = Ok(vec![service]);
        assert_eq!(ids(&snapshot), expected, "{case}");
    }
}

#[test]
fn endpoints_that_cannot_be_read_are_reported_once() {
    let mut service = service_with("x", json!({}));
    service.endpoints = Some(Err(unread(true)));
    let mut second = service.clone();
    second.endpoints = Some(Ok(Endpoints::default()));
    let mut snapshot = healthy(vec![node("a")]);
    snapshot.services = Ok(vec![service.clone(), service, second]);
    assert_eq!(ids(&snapshot), ["not-readable"]);
}

#[test]
fn what_the_manager_would_refuse_comes_from_the_configuration() {
    let mut snapshot = Snapshot::empty(now(), settings());
    snapshot.leases = healthy(vec![]).leases;
    snapshot.config_errors.push("--x is unknown".to_owned());
    snapshot.config_notes.push("--y is deprecated".to_owned());
    assert_eq!(ids(&snapshot), ["config-invalid", "config-deprecated"]);
    assert_eq!(diagnose(&snapshot).worst, Some(Severity::Error));
}
