mod ranges;
mod warnings;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    Affinity, Algorithm, HealthCheck, HealthProbe, Ingress, IpFamily, IpMode, Listener, Options,
    Protocol, ProxyProtocol, TrafficPolicy, names,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::service::fixtures::{ABLE, annotated, cluster, node, owner, service, setting};
use crate::service::targets::{Candidate, TargetRules, choose, node_selector};
use crate::view::NodeView;
use crate::wellknown::SOURCE_RANGES_ANNOTATION;

fn drafted(view: &ServiceView, features: Features) -> Result<Draft, Problems> {
    let targets = node_selector(view, Ok(None)).map(|_| Shared::default());
    draft(view, targets, &setting(&cluster(), features))
}

fn spec(view: &ServiceView) -> LoadBalancerSpec {
    drafted(view, ABLE).unwrap().spec
}

fn warnings(view: &ServiceView, features: Features) -> Vec<String> {
    let draft = drafted(view, features).unwrap();
    let warnings = draft.warnings.into_iter();
    warnings.map(|warning| warning.message).collect()
}

fn problems(view: &ServiceView) -> Vec<String> {
    let problems = drafted(view, ABLE).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_a_service_says_arrives_in_its_words() {
    let view = service(json!({
        "spec": {
            "ipFamilies": ["IPv6", "IPv4"],
            "sessionAffinity": "ClientIP",
            "loadBalancerIP": "192.0.2.1",
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
            "externalTrafficPolicy": "Local",
            "healthCheckNodePort": 32000,
        },
    }));
    let spec = spec(&view);
    assert_eq!(spec.families, [IpFamily::V6, IpFamily::V4]);
    let timeout = Duration::from_hours(3);
    assert_eq!(spec.affinity, Affinity::ClientIp { timeout });
    assert_eq!(spec.address, "192.0.2.1".parse().ok());
    assert_eq!(spec.source_ranges, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(spec.traffic_policy, TrafficPolicy::Local);
    assert_eq!(spec.health_check_node_port, Some(32000));
    assert_eq!(spec.options, Options::default());
}

#[test]
fn ports_become_listeners_in_their_order() {
    let view = service(json!({"spec": {"ports": [
        {"name": "tls", "port": 443, "nodePort": 30443, "appProtocol": "https"},
        {"protocol": "UDP", "port": 53, "nodePort": 30053},
    ]}}));
    let tls = Listener {
        name: Some("tls".to_owned()),
        protocol: Protocol::Tcp,
        port: 443,
        node_port: Some(30443),
        app_protocol: Some("https".to_owned()),
        health_check: HealthCheck::tcp(),
    };
    let dns = Listener {
        name: None,
        protocol: Protocol::Udp,
        port: 53,
        node_port: Some(30053),
        app_protocol: None,
        health_check: HealthCheck {
            probe: HealthProbe::UdpConnect,
            ..HealthCheck::tcp()
        },
    };
    assert_eq!(spec(&view).listeners, [tls, dns]);
}

#[test]
fn the_claim_has_everything_that_points_at_the_balancer() {
    let view = service(json!({
        "metadata": {"annotations": {"cloudkeel.dev/adopt": " 42 ", "other.io/x": "y"}},
        "status": {"loadBalancer": {"ingress": [
            {"ip": "192.0.2.1"}, {"ip": "::1", "ipMode": "Proxy"}, {"hostname": "lb"}, {"ip": "?"},
        ]}},
    }));
    let balancer_ref = spec(&view).balancer_ref;
    assert_eq!(balancer_ref.adopt.as_deref(), Some("42"));
    assert_eq!(balancer_ref.cluster, cluster());
    assert_eq!(balancer_ref.service, view.service);
    assert_eq!(balancer_ref.annotations["other.io/x"], "y");
    let ip = |text: &str, mode| Ingress::Ip {
        ip: text.parse().unwrap(),
        mode,
    };
    let expected = [
        ip("192.0.2.1", IpMode::Vip),
        ip("::1", IpMode::Proxy),
        Ingress::Hostname("lb".to_owned()),
    ];
    assert_eq!(balancer_ref.ingress, expected);
}

#[test]
fn neutral_annotations_become_options() {
    let view = annotated(&[
        ("cloudkeel.dev/lb-name", "front"),
        ("cloudkeel.dev/lb-internal", "true"),
        ("cloudkeel.dev/lb-type", "lb21"),
        ("cloudkeel.dev/lb-algorithm", "least-connections"),
        ("cloudkeel.dev/lb-proxy-protocol", "v2"),
        ("cloudkeel.dev/lb-drain-seconds", "30"),
        ("cloudkeel.dev/lb-hostname", "web.example.com"),
        ("cloudkeel.dev/lb-ip", "2001:db8::1"),
        ("cloudkeel.dev/lb-ip-mode", "proxy"),
    ]);
    let spec = spec(&view);
    let expected = Options {
        name: Some("front".to_owned()),
        internal: Some(true),
        size: Some("lb21".to_owned()),
        algorithm: Some(Algorithm::LeastConnections),
        proxy_protocol: Some(Some(ProxyProtocol::V2)),
        drain: Some(Duration::from_secs(30)),
        hostname: Some("web.example.com".to_owned()),
        ip_mode: Some(IpMode::Proxy),
        keeps_draining: false,
    };
    assert_eq!(spec.options, expected);
    assert_eq!(spec.address, "2001:db8::1".parse::<IpAddr>().ok());
    let off = annotated(&[("cloudkeel.dev/lb-proxy-protocol", "off")]);
    let off = drafted(&off, ABLE).unwrap().spec.options;
    assert_eq!(off.proxy_protocol, Some(None), "off is a desired too");
}

#[test]
fn node_ports_may_be_missing_only_if_none_are_allocated() {
    let view = |allocate: Option<bool>| {
        service(json!({"spec": {
            "allocateLoadBalancerNodePorts": allocate,
            "ports": [{"port": 80, "nodePort": 0, "name": ""}, {"port": 443, "nodePort": 30443}],
        }}))
    };
    let listeners = spec(&view(Some(false))).listeners;
    let ports: Vec<_> = listeners.iter().map(|l| l.node_port).collect();
    assert_eq!(ports, [None, Some(30443)]);
    assert_eq!(listeners[0].name, None);
    for allocate in [None, Some(true)] {
        assert_eq!(
            problems(&view(allocate)),
            ["spec.ports[0].nodePort: is missing, although the Service allocates node ports"]
        );
    }
}

#[test]
fn hostnames_are_what_the_api_server_takes() {
    let hostname = |name: &str| annotated(&[("cloudkeel.dev/lb-hostname", name)]);
    for good in ["a", "web.example.com", "x-1.y"] {
        assert_eq!(
            spec(&hostname(good)).options.hostname.as_deref(),
            Some(good)
        );
    }
    for bad in [
        "",
        "A.b",
        "a..b",
        "-a",
        "a-",
        "a_b",
        "192.0.2.1",
        "::1",
        "a.",
        &"a".repeat(254),
    ] {
        assert_eq!(problems(&hostname(bad)).len(), 1, "{bad}");
    }
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let mut view = annotated(&[
        ("cloudkeel.dev/adopt", ""),
        ("cloudkeel.dev/lb-name", " "),
        ("cloudkeel.dev/lb-internal", "yes"),
        ("cloudkeel.dev/lb-algorithm", "random"),
        ("cloudkeel.dev/lb-proxy-protocol", "v3"),
        ("cloudkeel.dev/lb-drain-seconds", "-1"),
        ("cloudkeel.dev/lb-hostname", "Web_1"),
        ("cloudkeel.dev/lb-ip", "here"),
        ("cloudkeel.dev/lb-node-selector", "a=b=c"),
        ("cloudkeel.dev/lb-health-check-port", "many"),
    ]);
    view.ports[0].port = 70_000;
    view.ports[0].protocol = Some("ICMP".to_owned());
    view.load_balancer_ip = Some("there".to_owned());
    view.source_ranges = vec!["everywhere".to_owned()];
    let found = problems(&view);
    for key in [
        "cloudkeel.dev/adopt: \"\": expected some text",
        "cloudkeel.dev/lb-name: \"\": expected some text",
        "cloudkeel.dev/lb-internal: \"yes\": expected `true` or `false`",
        "cloudkeel.dev/lb-algorithm: \"random\": expected `round-robin`, `least-connections` or `source-ip`",
        "cloudkeel.dev/lb-proxy-protocol: \"v3\": expected `v1`, `v2` or `off`",
        "cloudkeel.dev/lb-drain-seconds: \"-1\": expected a whole number from 0 to 4294967295",
        "cloudkeel.dev/lb-hostname: \"Web_1\": expected a lower-case DNS name such as `web.example.com`",
        "cloudkeel.dev/lb-ip: \"here\": expected an IPv4 or IPv6 address",
        "cloudkeel.dev/lb-node-selector: \"a=b=c\": expected a label selector",
        "cloudkeel.dev/lb-health-check-port: \"many\": expected a whole number from 0 to 65535",
        "spec.ports[0].port: \"70000\": expected a port from 1 to 65535",
        "spec.ports[0].protocol: \"ICMP\": expected `TCP`, `UDP` or `SCTP`",
        "spec.loadBalancerIP: \"there\": expected an IPv4 or IPv6 address",
        "spec.loadBalancerSourceRanges: \"everywhere\": expected a network",
    ] {
        assert!(
            found.iter().any(|text| text.starts_with(key)),
            "{key}\n{found:#?}"
        );
    }
    assert_eq!(found.len(), 14, "{found:#?}");
}

#[test]
fn a_service_without_ports_is_refused() {
    let view = service(json!({"spec": {"ports": []}}));
    assert_eq!(problems(&view), ["spec.ports: expected at least one port"]);
}

#[test]
fn a_field_that_the_cloud_never_looks_at_cannot_make_it_fail() {
    let view = service(json!({"spec": {"loadBalancerIP": "a-name"}}));
    assert_eq!(problems(&view).len(), 1, "where it counts it must be right");
    let features = Features {
        chosen_address: false,
        ..ABLE
    };
    let draft = drafted(&view, features).unwrap();
    assert_eq!(draft.spec.address, None);
    assert!(
        draft.warnings[0].reason == "UnsupportedLoadBalancerOption"
            && draft.warnings[0]
                .message
                .starts_with("spec.loadBalancerIP: ")
    );
}

/// A draft with those targets that the rules choose.
fn drafted_among(view: &ServiceView, nodes: &[NodeView], features: Features) -> Draft {
    let owner = owner("fsn", true, None);
    let rules = TargetRules {
        owner: &owner,
        features,
        selector: node_selector(view, Ok(None)).unwrap(),
    };
    let candidate = |node: &NodeView| Candidate {
        given_to: None,
        node: Arc::new(node.clone()),
        owners: vec!["fsn".to_owned()],
    };
    let candidates: Vec<_> = nodes.iter().map(candidate).collect();
    let targets = choose(&candidates, &rules);
    draft(view, Ok(targets.into()), &setting(&cluster(), features)).unwrap()
}

proptest! {
    #[test]
    fn a_draft_depends_on_nothing_but_its_input_and_not_on_the_order_of_nodes(
        order in Just((0..8_u8).collect::<Vec<_>>()).prop_shuffle(),
        leaving in prop::collection::vec(any::<bool>(), 8),
        drain in any::<bool>(),
    ) {
        let mut nodes: Vec<_> = order
            .iter()
            .zip(leaving)
            .map(|(number, deleting)| NodeView { deleting, ..node(&format!("n{number}")) })
            .collect();
        let features = Features { drain, ..ABLE };
        let view = annotated(&[("cloudkeel.dev/lb-nme", "x"), ("cloudkeel.dev/lb-type", "lb11")]);
        let shuffled = drafted_among(&view, &nodes, features);
        nodes.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
        prop_assert_eq!(shuffled, drafted_among(&view, &nodes, features));
    }

    #[test]
    fn any_annotation_is_read_or_reported_and_never_panics(
        values in prop::collection::btree_map(
            prop::sample::select(neutral_keys()),
            prop_oneof!["\\PC{0,12}", "[0-9a-z./:,=()!-]{0,12}"],
            0..6,
        ),
        port in any_port(),
        node_port in any_port(),
        check_port in any_port(),
        ranges in prop::collection::vec("[0-9a-f.:/ ]{0,12}", 0..3),
    ) {
        let mut view = annotated(&[]);
        view.annotations = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        view.ports[0].port = port;
        view.ports[0].node_port = Some(node_port);
        view.health_check_node_port = Some(check_port);
        view.source_ranges = ranges;
        match drafted(&view, ABLE) {
            Ok(draft) => prop_assert_eq!(i32::from(draft.spec.listeners[0].port), port),
            Err(problems) => prop_assert!(problems.iter().len() > 0),
        }
    }
}

/// Mostly one that is right.
fn any_port() -> impl Strategy<Value = i32> {
    prop_oneof![9 => 1..65_536, 1 => any::<i32>()]
}

fn neutral_keys() -> Vec<&'static str> {
    let mut keys: Vec<_> = names::annotation_docs()
        .iter()
        .map(|doc| doc.name)
        .collect();
    keys.push(SOURCE_RANGES_ANNOTATION);
    keys
}

#[test]
fn a_balancer_is_shared_only_where_the_cloud_can_leave_parts_of_it_alone() {
    let shared = |value: &str| {
        let annotations = json!({"cloudkeel.dev/lb-exclusive": value});
        service(json!({"metadata": {"annotations": annotations}}))
    };
    let unable = Features {
        shared: false,
        ..ABLE
    };
    assert!(drafted(&shared("false"), ABLE).is_ok());
    assert!(drafted(&shared("true"), unable).is_ok());
    let refused = drafted(&shared("false"), unable).unwrap_err().to_string();
    assert!(refused.contains("cannot be shared"), "{refused}");
    assert!(drafted(&shared("perhaps"), ABLE).is_err());
}
