//! What the cloud refuses keeps nothing else from being done, and is tried again.

use std::time::Duration;

use cloudkeel_api::{DesiredState, ErrorKind, Outcome, Retry};
use cloudkeel_emulator_hetzner::{Fault, LoadBalancer, Operation, ServerSpec};
use serde_json::json;

use crate::lab::{Lab, annotate, attempt, balancer_ref, balancers, planned, refused, settle, spec};

/// How long a controller waits before the second attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_refused_target_is_a_failure_that_names_it_and_the_others_are_there() {
    for (case, is_new) in [("a new balancer", true), ("one that is there", false)] {
        let lab = Lab::new(2);
        let lonely = ServerSpec::named("aaa-first").without_ipv4();
        let lonely = lab.cloud.add_server(lonely).unwrap().id;
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        if !is_new {
            settle(&provider, &spec(&[80], &[])).await;
        }
        let outcome = attempt(&provider, &spec(&[80], &nodes)).await;
        let failures = refused(&outcome);
        let name = format!("server {lonely}");
        assert!(failures.message.contains(&name), "{case}: {failures:?}");
        assert!(failures.message.contains("IPv4"), "{case}: {failures:?}");
        assert_eq!(failures.to_error().retry(), Retry::Backoff, "{case}");
        assert_eq!(lab.targets().len(), 2, "{case}");
        assert_eq!(lab.balancer().services.len(), 1, "{case}");
        let Outcome::Incomplete { status, .. } = &outcome else {
            panic!("{case}");
        };
        assert_eq!(status.ingress.len(), 2, "{case}: its address is published");
        let reported = lab.reported();
        let event = reported
            .iter()
            .find(|reported| reported.starts_with("TargetRefused"));
        assert!(
            event.is_some_and(|e| e.contains(&name)),
            "{case}: {reported:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_target_is_tried_again_in_the_next_attempt() {
    let lab = Lab::new(3);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80], &nodes[..1])).await;
    for code in [
        "invalid_input",
        "not_found",
        "resource_limit_exceeded",
        "forbidden",
    ] {
        lab.cloud
            .faults()
            .once(Operation::AddTarget, Fault::code(code));
        let desired = spec(&[80], &nodes);
        let outcome = attempt(&provider, &desired).await;
        assert_eq!(
            refused(&outcome).to_error().retry(),
            Retry::Backoff,
            "{code}"
        );
        tokio::time::sleep(FIRST_PAUSE).await;
        settle(&provider, &desired).await;
        assert_eq!(lab.targets().len(), 3, "{code}");
        settle(&provider, &spec(&[80], &nodes[..1])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_turned_to_private_targets_keeps_what_serves() {
    for (case, refusals, private) in [("the first is refused", 1, 0), ("none is refused", 0, 3)] {
        let lab = Lab::new(3);
        let provider = lab.networked().await;
        let nodes = lab.nodes(&provider).await;
        let mut desired = spec(&[80], &nodes);
        settle(&provider, &desired).await;
        let before = lab.targets();
        annotate(&mut desired, &[("use-private-ip", "true")]);
        lab.cloud.reset_calls();
        for _ in 0..refusals {
            let refusal = Fault::code("invalid_input");
            lab.cloud.faults().once(Operation::AddTarget, refusal);
        }
        let outcome = attempt(&provider, &desired).await;
        let after = lab.targets();
        assert_eq!(after.len(), before.len(), "{case}: {after:?}");
        let turned = after.iter().filter(|(_, private)| *private).count();
        assert_eq!(turned, private, "{case}");
        let removed = lab.cloud.calls().of(Operation::RemoveTarget);
        assert_eq!(removed, if refusals > 0 { 1 } else { 3 }, "{case}");
        if refusals > 0 {
            assert_eq!(
                refused(&outcome).to_error().retry(),
                Retry::Backoff,
                "{case}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_outside_of_the_network_is_not_even_touched() {
    let lab = Lab::new(2);
    let outside = lab
        .cloud
        .add_server(ServerSpec::named("outside"))
        .unwrap()
        .id;
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &desired).await;
    annotate(&mut desired, &[("use-private-ip", "true")]);
    for _ in 0..3 {
        let outcome = attempt(&provider, &desired).await;
        let failures = refused(&outcome);
        assert!(
            failures.message.contains(&format!("server {outside}")),
            "{failures:?}"
        );
        assert!(
            lab.targets().contains(&(outside, false)),
            "it serves as before"
        );
    }
    let removed = lab.cloud.calls().of(Operation::RemoveTarget);
    assert!(
        removed <= 2,
        "{removed}: only those that can be turned are taken out"
    );
    assert_eq!(lab.targets().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn targets_that_are_all_replaced_stay_until_one_of_the_new_is_taken() {
    let lab = Lab::new(4);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80], &nodes[..2])).await;
    let before = lab.targets();
    let desired = spec(&[80], &nodes[2..]);
    lab.cloud
        .faults()
        .always(Operation::AddTarget, Fault::code("invalid_input"));
    let outcome = attempt(&provider, &desired).await;
    refused(&outcome);
    assert_eq!(lab.targets(), before, "the old ones may still serve");

    lab.cloud.faults().clear();
    lab.cloud
        .faults()
        .once(Operation::AddTarget, Fault::code("invalid_input"));
    let outcome = attempt(&provider, &desired).await;
    refused(&outcome);
    assert_eq!(
        lab.targets().len(),
        1,
        "one of the new serves, the old are gone"
    );
    settle(&provider, &desired).await;
    assert_eq!(planned(&provider, &desired).await, "nothing to do");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_whose_new_private_address_is_refused_stays_in_its_network() {
    let lab = Lab::new(2);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    annotate(&mut desired, &[("use-private-ip", "true")]);
    settle(&provider, &desired).await;
    let before = lab.balancer().private_net.unwrap();
    let taken = lab.cloud.servers()[0].private_net[0].ip.to_string();
    annotate(&mut desired, &[("private-ipv4", &taken)]);
    let outcome = attempt(&provider, &desired).await;
    let failures = refused(&outcome);
    assert!(failures.message.contains(&taken), "{failures:?}");
    assert_eq!(lab.balancer().private_net, Some(before));
    assert_eq!(lab.targets().len(), 2);
}

/// What is wrong, the annotations that ask for it, and what is named.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// Things that are wrong with a Service and have nothing to do with its Nodes and ports.
const COSMETIC: &[Row] = &[
    ("a name that is taken", &[("name", "taken")], "name"),
    ("an unknown type", &[("type", "lb99")], "lb99"),
    (
        "a refused reverse name",
        &[("ipv4-rdns", "web.example")],
        "change_dns_ptr",
    ),
    (
        "a refused algorithm",
        &[("algorithm-type", "least_connections")],
        "change_algorithm",
    ),
    (
        "an algorithm that there is not",
        &[("algorithm-type", "fastest")],
        "algorithm-type",
    ),
    (
        "a duration that is none",
        &[("http-timeout-idle", "soon")],
        "http-timeout-idle",
    ),
    (
        "an address that is none",
        &[("private-ipv4", "here")],
        "private-ipv4",
    ),
    (
        "private targets without a network",
        &[("use-private-ip", "true")],
        "use-private-ip",
    ),
    (
        "a certificate that there is not",
        &[("protocol", "https"), ("http-certificates", "no-such")],
        "no-such",
    ),
    (
        "a certificate ID that there is not",
        &[("protocol", "https"), ("http-certificates", "4711")],
        "4711",
    ),
];

#[tokio::test(start_paused = true)]
async fn nodes_and_ports_are_followed_whatever_else_is_wrong() {
    for (case, annotations, named) in COSMETIC {
        let lab = Lab::new(3);
        let taken = json!({"name": "taken", "load_balancer_type": "lb11", "location": "fsn1"});
        lab.post("/load_balancers", taken).await;
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        settle(&provider, &spec(&[80, 81], &nodes[..2])).await;
        for operation in [Operation::ChangeDnsPtr, Operation::ChangeAlgorithm] {
            let refusal = Fault::code("invalid_input");
            lab.cloud.faults().always(operation, refusal);
        }
        let mut desired = spec(&[81, 82], &nodes[1..]);
        annotate(&mut desired, annotations);
        let outcome = attempt(&provider, &desired).await;
        let failures = refused(&outcome);
        assert!(failures.message.contains(named), "{case}: {failures:?}");
        let have = ours(&lab);
        let servers: Vec<_> = lab.cloud.servers()[1..].iter().map(|s| s.id).collect();
        let mut targets: Vec<_> = have.targets.iter().map(|t| format!("{:?}", t.to)).collect();
        targets.sort();
        let wanted: Vec<_> = servers.iter().map(|id| format!("Server({id})")).collect();
        assert_eq!(targets, wanted, "{case}");
        let ports: Vec<_> = have.services.iter().map(|s| s.listen_port).collect();
        assert!(!ports.contains(&80), "{case}: {ports:?}");
        let is_about_services = annotations
            .iter()
            .any(|(key, _)| *key == "protocol" || key.starts_with("http-timeout"));
        assert_eq!(ports.contains(&82), !is_about_services, "{case}: {ports:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_followed_while_the_cloud_does_not_tell_what_else_is_needed() {
    for (case, operation, annotations) in [
        (
            "types",
            Operation::ListLoadBalancerTypes,
            &[("type", "lb21")][..],
        ),
        (
            "certificates",
            Operation::ListCertificates,
            &[("protocol", "https"), ("http-certificates", "x")],
        ),
    ] {
        let lab = Lab::new(2);
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        settle(&provider, &spec(&[80], &nodes[..1])).await;
        let provider = lab.provider().await;
        lab.cloud.faults().always(operation, Fault::MalformedJson);
        let mut desired = spec(&[80], &nodes);
        annotate(&mut desired, annotations);
        let outcome = attempt(&provider, &desired).await;
        assert_eq!(
            refused(&outcome).to_error().retry(),
            Retry::Backoff,
            "{case}"
        );
        assert_eq!(lab.targets().len(), 2, "{case}");
    }
}

fn ours(lab: &Lab) -> LoadBalancer {
    let all = lab.cloud.load_balancers().into_iter();
    let mut ours = all.filter(|b| b.labels.contains_key("hcloud-ccm/service-uid"));
    ours.next().unwrap()
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_refused_is_named_and_the_rest_is_done() {
    let lab = Lab::new(1);
    let taken = json!({"name": "taken", "load_balancer_type": "lb11", "location": "fsn1"});
    lab.post("/load_balancers", taken).await;
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    settle(&provider, &spec(&[80], &nodes)).await;
    lab.cloud
        .faults()
        .always(Operation::ChangeDnsPtr, Fault::code("forbidden"));
    let mut desired = spec(&[80], &nodes);
    annotate(
        &mut desired,
        &[
            ("name", "taken"),
            ("type", "lb99"),
            ("ipv4-rdns", "web.example"),
            ("algorithm-type", "least_connections"),
            ("uses-proxyprotocol", "true"),
        ],
    );
    let outcome = attempt(&provider, &desired).await;
    let failures = refused(&outcome);
    for named in ["name", "lb99", "change_dns_ptr"] {
        assert!(failures.message.contains(named), "{named}: {failures:?}");
    }
    let have = ours(&lab);
    assert_eq!(have.algorithm, "least_connections");
    assert!(have.services[0].proxyprotocol);

    // The cloud does not need to be changed again to hear the same.
    lab.cloud.reset_calls();
    attempt(&provider, &desired).await;
    assert!(lab.mutations() <= 2, "{}", lab.mutations());
}

#[tokio::test(start_paused = true)]
async fn a_new_service_with_a_refused_certificate_gets_all_the_rest() {
    for (case, annotations, named) in [
        (
            "a name that there is not",
            &[("http-certificates", "no-such")][..],
            "no-such",
        ),
        (
            "an ID that there is not",
            &[("http-certificates", "4711")],
            "4711",
        ),
        (
            "one that cannot be issued",
            &[
                ("certificate-type", "managed"),
                ("http-managed-certificate-domains", "a.example"),
            ],
            "by script",
        ),
        (
            "one without domains",
            &[("certificate-type", "managed")],
            "http-managed-certificate-domains",
        ),
    ] {
        let lab = Lab::new(2);
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        lab.cloud
            .faults()
            .always(Operation::CreateCertificate, Fault::code("invalid_input"));
        let mut desired = spec(&[443], &nodes);
        annotate(&mut desired, &[("protocol", "https"), ("name", "web")]);
        annotate(&mut desired, annotations);
        let outcome = attempt(&provider, &desired).await;
        let failures = refused(&outcome);
        assert!(failures.message.contains(named), "{case}: {failures:?}");
        let Outcome::Incomplete { status, .. } = &outcome else {
            panic!("{case}");
        };
        assert_eq!(status.ingress.len(), 2, "{case}: it has its addresses");
        let have = lab.balancer();
        assert_eq!(have.name, "web", "{case}");
        assert_eq!(have.targets.len(), 2, "{case}");
        lab.cloud.reset_calls();
        attempt(&provider, &desired).await;
        assert_eq!(lab.cloud.load_balancers().len(), 1, "{case}");
        assert_eq!(
            lab.cloud.calls().of(Operation::CreateLoadBalancer),
            0,
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_protected_stays_and_that_is_said_at_once() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    settle(&provider, &spec(&[80], &[])).await;
    let id = lab.balancer().id;
    let protect = |balancer: &mut LoadBalancer| balancer.protected = true;
    lab.cloud.change_load_balancer(id, protect).unwrap();
    lab.reported();
    lab.cloud.reset_calls();
    let balancer_ref = balancer_ref("u-1");
    let outcome = balancers(&provider)
        .apply(DesiredState::Absent(&balancer_ref))
        .await;
    let Ok(Outcome::Gone { kept, done, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(done.is_empty());
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(lab.mutations(), 0);
    let reported = lab.reported();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].starts_with("LoadBalancerProtected: "),
        "{reported:?}"
    );
    assert!(
        reported[0].contains("protection"),
        "{reported:?}: what to do"
    );
    assert_eq!(
        balancers(&provider).owned().await.unwrap(),
        [],
        "it is no left-over"
    );

    // Without its protection it is one.
    let free = |balancer: &mut LoadBalancer| balancer.protected = false;
    lab.cloud.change_load_balancer(id, free).unwrap();
    assert_eq!(balancers(&provider).owned().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_cannot_be_made_is_an_error() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    for (annotation, value, kind) in [
        ("type", "lb99", ErrorKind::Invalid),
        ("algorithm-type", "fastest", ErrorKind::Invalid),
        ("disable-public-network", "perhaps", ErrorKind::Invalid),
        ("location", "nowhere", ErrorKind::Invalid),
    ] {
        let mut desired = spec(&[80], &[]);
        annotate(&mut desired, &[(annotation, value)]);
        let error = balancers(&provider)
            .apply(DesiredState::Present(&desired))
            .await;
        assert_eq!(error.unwrap_err().kind(), kind, "{annotation}");
        assert_eq!(lab.cloud.load_balancers(), [], "{annotation}");
    }
}
