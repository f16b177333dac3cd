//! Every annotation, on a balancer that the cloud really changes.

use cloudkeel_api::{Algorithm, DesiredState, ErrorKind, Ingress, Outcome, Protocol};
use cloudkeel_emulator_hetzner::Operation;
use jiff::Timestamp;

use crate::lab::{Lab, annotate, balancers, planned, settle, spec};

/// Everything at once that goes together.
const EVERYTHING: &[(&str, &str)] = &[
    ("name", "web"),
    ("location", "hel1"),
    ("type", "lb21"),
    ("algorithm-type", "least_connections"),
    ("use-private-ip", "true"),
    ("private-ipv4", "10.0.7.7"),
    ("hostname", "web.example"),
    ("ipv4-rdns", "four.example"),
    ("ipv6-rdns", "six.example"),
    ("protocol", "http"),
    ("uses-proxyprotocol", "true"),
    ("http-cookie-name", "cookie"),
    ("http-cookie-lifetime", "1h"),
    ("http-timeout-idle", "2m"),
    ("http-sticky-sessions", "true"),
    ("health-check-protocol", "http"),
    ("health-check-port", "1234"),
    ("health-check-interval", "20s"),
    ("health-check-timeout", "5s"),
    ("health-check-retries", "2"),
    ("health-check-http-domain", "h.example"),
    ("health-check-http-path", "/healthz"),
    ("health-check-http-validate-certificate", "false"),
    ("http-status-codes", "200,204"),
];

#[tokio::test(start_paused = true)]
async fn the_node_selector_is_read_for_the_controller_which_applies_it() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let read = |value: Option<&str>| {
        let key = "load-balancer.hetzner.cloud/node-selector".to_owned();
        let annotations = value.map(|value| (key, value.to_owned()));
        let annotations = annotations.into_iter().collect();
        balancers(&provider).node_selector(&annotations)
    };
    let selector = |text: &str| Ok(Some(text.parse().unwrap()));
    assert_eq!(read(None), Ok(None));
    assert_eq!(read(Some("pool in (a,b)")), selector("pool in (a,b)"));
    assert_eq!(read(Some("")), selector(""), "all");
    let problem = read(Some("a b")).unwrap_err().to_string();
    let named = "load-balancer.hetzner.cloud/node-selector: \"a b\": expected a label selector";
    assert!(problem.starts_with(named), "{problem}");
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    annotate(&mut desired, &[("node-selector", "pool=web")]);
    settle(&provider, &desired).await;
    let targets = lab.balancer().targets;
    assert_eq!(targets.len(), 2, "they were chosen before");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_with_everything_settles_and_stays() {
    let lab = Lab::new(3);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80, 8080], &nodes);
    annotate(&mut desired, EVERYTHING);
    let Outcome::Settled { status, .. } = settle(&provider, &desired).await else {
        panic!("settled");
    };
    assert_eq!(status.ingress, [Ingress::Hostname("web.example".into())]);
    let have = lab.balancer();
    assert_eq!((have.name.as_str(), have.location.name), ("web", "hel1"));
    assert_eq!(have.algorithm, "least_connections");
    let (network, ip) = have.private_net.unwrap();
    assert_eq!((network, ip.to_string()), (lab.network, "10.0.7.7".into()));
    let public = have.public.unwrap();
    assert_eq!(public.ipv4_ptr, "four.example");
    assert_eq!(public.ipv6_ptr, "six.example");
    assert_eq!(have.targets.len(), 3);
    assert!(have.targets.iter().all(|target| target.use_private_ip));
    let service = &have.services[1];
    assert!(service.proxyprotocol);
    let http = service.http.as_ref().unwrap();
    assert_eq!(
        (http.cookie_name.as_str(), http.cookie_lifetime),
        ("cookie", 3600)
    );
    assert_eq!((http.timeout_idle, http.sticky_sessions), (120, true));
    let check = &service.health_check;
    assert_eq!((check.protocol.as_str(), check.port), ("http", 1234));
    assert_eq!((check.interval, check.timeout, check.retries), (20, 5, 2));
    let check = check.http.as_ref().unwrap();
    assert_eq!(
        (check.domain.as_str(), check.path.as_str()),
        ("h.example", "/healthz")
    );
    assert_eq!(check.status_codes, ["200", "204"]);

    lab.cloud.reset_calls();
    assert_eq!(planned(&provider, &desired).await, "nothing to do");
    let restarted = lab.networked().await;
    settle(&restarted, &desired).await;
    assert_eq!(lab.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_becomes_private_and_public_again() {
    let lab = Lab::new(2);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &desired).await;
    assert!(lab.balancer().private_net.is_some());
    annotate(
        &mut desired,
        &[
            ("disable-public-network", "true"),
            ("use-private-ip", "true"),
        ],
    );
    let Outcome::Settled { status, .. } = settle(&provider, &desired).await else {
        panic!("settled");
    };
    let have = lab.balancer();
    assert!(!have.public_interface);
    let (_, private) = have.private_net.unwrap();
    assert_eq!(status.ingress.len(), 1);
    assert!(matches!(status.ingress[0], Ingress::Ip { ip, .. } if ip == private));
    annotate(
        &mut desired,
        &[
            ("disable-public-network", "false"),
            ("use-private-ip", "false"),
        ],
    );
    let Outcome::Settled { status, .. } = settle(&provider, &desired).await else {
        panic!("settled");
    };
    assert!(lab.balancer().public_interface);
    assert_eq!(status.ingress.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_subnet_counts_when_it_is_attached_and_only_then() {
    let lab = Lab::new(0);
    let provider = lab.networked().await;
    let mut desired = spec(&[80], &[]);
    annotate(&mut desired, &[("private-subnet-ip-range", "10.0.0.0/16")]);
    settle(&provider, &desired).await;
    let attached = lab
        .cloud
        .call_log()
        .into_iter()
        .find(|call| call.operation == Operation::AttachLoadBalancer)
        .unwrap();
    assert_eq!(attached.body["ip_range"], "10.0.0.0/16");
    annotate(&mut desired, &[("private-subnet-ip-range", "10.0.9.0/24")]);
    assert_eq!(planned(&provider, &desired).await, "nothing to do");
}

#[tokio::test(start_paused = true)]
async fn another_private_address_moves_the_balancer() {
    let lab = Lab::new(0);
    let provider = lab.networked().await;
    let mut desired = spec(&[80], &[]);
    for address in ["10.0.3.3", "10.0.3.4"] {
        annotate(&mut desired, &[("private-ipv4", address)]);
        settle(&provider, &desired).await;
        let (_, ip) = lab.balancer().private_net.unwrap();
        assert_eq!(ip.to_string(), address);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_had_is_reported_once_and_the_rest_is_served() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    let mut desired = spec(&[80, 53, 54], &[]);
    for listener in &mut desired.listeners[1..] {
        listener.protocol = Protocol::Udp;
    }
    desired.options.algorithm = Some(Algorithm::SourceIp);
    settle(&provider, &desired).await;
    settle(&provider, &desired).await;
    let ports: Vec<_> = lab
        .balancer()
        .services
        .iter()
        .map(|s| s.listen_port)
        .collect();
    assert_eq!(ports, [80]);
    assert_eq!(
        lab.reasons(),
        [
            "UnsupportedOption",
            "UnsupportedProtocolConfigured",
            "UnsupportedProtocolConfigured"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_does_not_know_is_named() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    for (pairs, part) in [
        (("type", "lb99"), "lb11, lb21, lb31"),
        (("location", "mars1"), "location"),
        (("private-ipv4", "x"), "private-ipv4"),
    ] {
        let mut desired = spec(&[80], &[]);
        annotate(&mut desired, &[pairs]);
        let error = balancers(&provider)
            .apply(DesiredState::Present(&desired))
            .await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(part), "{part} in {error}");
    }
    assert_eq!(lab.cloud.load_balancers(), []);
}

#[tokio::test(start_paused = true)]
async fn a_type_on_its_way_out_is_reported_and_one_that_is_gone_is_refused() {
    let lab = Lab::new(0);
    let provider = lab.provider().await;
    let (past, future) = ("2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let moment = |text: &str| text.parse::<Timestamp>().unwrap();
    lab.cloud
        .deprecate_load_balancer_type("lb11", moment(past), moment(future));
    settle(&provider, &spec(&[80], &[])).await;
    assert_eq!(lab.reasons(), ["LoadBalancerTypeDeprecated"]);

    lab.cloud
        .deprecate_load_balancer_type("lb11", moment(past), moment(past));
    let fresh = lab.provider().await;
    settle(&fresh, &spec(&[80, 81], &[])).await;
    let mut other = spec(&[80], &[]);
    other.balancer_ref.service.uid = "u-2".to_owned();
    let error = balancers(&fresh).apply(DesiredState::Present(&other)).await;
    let error = error.unwrap_err();
    assert!(error.message().contains("is unavailable since"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_a_type_a_new_balancer_is_the_smallest_and_a_bigger_one_stays() {
    let lab = Lab::new(0);
    let provider = lab
        .provider_with(|config| config.load_balancers.load_balancer_type = None)
        .await;
    let mut desired = spec(&[80], &[]);
    settle(&provider, &desired).await;
    assert_eq!(lab.balancer().kind, 1);
    assert_eq!(lab.reasons(), ["LoadBalancerTypeUnconfigured"]);
    annotate(&mut desired, &[("type", "lb31")]);
    settle(&provider, &desired).await;
    assert_eq!(lab.balancer().kind, 3);
    desired.balancer_ref.annotations.clear();
    settle(&provider, &desired).await;
    assert_eq!(lab.balancer().kind, 3);
}
