//! Every annotation: what it changes, and what is said about a value that makes no sense.

use std::collections::BTreeSet;

use cloudkeel_api::ErrorKind;

use super::super::certificate::Certificates;
use super::super::desired::DesiredCertificate;
use super::*;
use crate::wire::{ServiceCheckHttp, ServiceHttp};

/// An annotation or several, where they act, and the calls that they lead to.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

/// What one annotation changes about a settled balancer in the network.
#[rustfmt::skip]
const EFFECTS: &[Row] = &[
    ("nothing", &[], &[]),
    ("name", &[("name", "web")], &["rename load balancer 42 to web"]),
    ("the same name", &[("name", "au1")], &[]),
    ("location, later", &[("location", "hel1")], &[]),
    ("zone, later", &[("network-zone", "us-east")], &[]),
    ("algorithm", &[("algorithm-type", "LEAST_connections")], &[
        r#"change_algorithm {"type":"least_connections"}"#]),
    ("the same algorithm", &[("algorithm-type", "round_robin")], &[]),
    ("no public network", &[("disable-public-network", "true")], &["disable_public_interface null"]),
    ("public network", &[("disable-public-network", "false")], &[]),
    ("private address", &[("private-ipv4", "10.0.0.5")], &[
        r#"attach_to_network {"ip":"10.0.0.5","network":7}"#]),
    ("the same private address", &[("private-ipv4", "10.0.0.100")], &[]),
    ("subnet, later", &[("private-subnet-ip-range", "10.0.1.0/24")], &[]),
    ("PTR", &[("ipv4-rdns", "a.example"), ("ipv6-rdns", "b.example")], &[
        r#"change_dns_ptr {"dns_ptr":"a.example","ip":"192.0.2.1"}"#,
        r#"change_dns_ptr {"dns_ptr":"b.example","ip":"2001:db8::1"}"#]),
    ("the same PTR", &[("ipv4-rdns", "static.1")], &[]),
    ("only shown in the status", &[
        ("hostname", "x.example"), ("ipv6-disabled", "true"), ("disable-private-ingress", "true")], &[]),
    ("never read", &[("id", "x"), ("ipv4", "x"), ("ipv6", "x")], &[]),
    ("private targets", &[("use-private-ip", "true")], &[
        r#"add_target {"server":{"id":1},"type":"server","use_private_ip":true}"#]),
    ("node selector, which the controller follows", &[("node-selector", "pool in (a,b)")], &[]),
    ("protocol", &[("protocol", "HTTP")], &[
        r#"update_service {"destination_port":30080,"health_check":{"port":30080,"protocol":"tcp"},"listen_port":80,"protocol":"http"}"#]),
    ("PROXY protocol", &[("uses-proxyprotocol", "true")], &[
        r#"update_service {"destination_port":30080,"health_check":{"port":30080,"protocol":"tcp"},"listen_port":80,"protocol":"tcp","proxyprotocol":true}"#]),
    ("no PROXY protocol", &[("uses-proxyprotocol", "false")], &[]),
    ("HTTP options of a TCP service", &[
        ("http-cookie-name", "c"), ("http-sticky-sessions", "true"), ("http-certificates", "1")], &[]),
    ("check by interval", &[("health-check-interval", "1m30s")], &[
        r#"update_service {"destination_port":30080,"health_check":{"interval":90,"port":30080,"protocol":"tcp"},"listen_port":80,"protocol":"tcp"}"#]),
    ("the same check", &[
        ("health-check-protocol", "tcp"), ("health-check-port", "30080"),
        ("health-check-interval", "15s"), ("health-check-timeout", "10s"), ("health-check-retries", "3")], &[]),
    ("check by HTTP", &[
        ("health-check-protocol", "http"), ("health-check-port", "8080"), ("health-check-timeout", "2s"),
        ("health-check-retries", "5"), ("health-check-http-domain", "d"), ("health-check-http-path", "/h"),
        ("health-check-http-validate-certificate", "true"), ("http-status-codes", "200,204")], &[
        r#"update_service {"destination_port":30080,"health_check":{"http":{"domain":"d","path":"/h","status_codes":["200","204"],"tls":true},"port":8080,"protocol":"http","retries":5,"timeout":2},"listen_port":80,"protocol":"tcp"}"#]),
    ("details of an HTTP check alone", &[
        ("health-check-http-path", "/h"), ("http-status-codes", "200")], &[]),
    ("details of an HTTP check with a TCP check", &[
        ("health-check-retries", "3"), ("health-check-http-path", "/h")], &[]),
];

fn have() -> Observed {
    ours(attached(LoadBalancer {
        targets: vec![server_target(1, false)],
        ..settled()
    }))
}

#[test]
fn every_annotation_has_its_effect_and_no_other() {
    for (case, pairs, expected) in EFFECTS {
        let mut spec = spec(&[80], &[1]);
        annotate(&mut spec, pairs);
        let found = calls(&steps(&spec, &have(), &in_network()));
        assert_eq!(found, *expected, "{case}");
    }
}

#[test]
fn http_services_have_their_options_and_keep_what_is_not_said() {
    let mut spec = spec(&[443], &[]);
    annotate(
        &mut spec,
        &[
            ("protocol", "https"),
            ("http-cookie-name", "c"),
            ("http-cookie-lifetime", "5m"),
            ("http-timeout-idle", "30s"),
            ("http-redirect-http", "true"),
            ("http-sticky-sessions", "true"),
            ("http-certificates", "8,9"),
            ("health-check-interval", "15s"),
        ],
    );
    let mut have = ours(balancer());
    have.certificates = Certificates::Known([8, 9].into());
    assert_eq!(
        calls(&steps(&spec, &have, &facts())),
        [concat!(
            r#"add_service {"destination_port":30443,"health_check":{"http":{},"interval":15,"#,
            r#""port":30443,"protocol":"https"},"http":{"certificates":[8,9],"cookie_lifetime":300,"#,
            r#""cookie_name":"c","redirect_http":true,"sticky_sessions":true,"timeout_idle":30},"#,
            r#""listen_port":443,"protocol":"https"}"#
        )]
    );
    let there = Service {
        protocol: "https".into(),
        http: Some(ServiceHttp {
            cookie_name: Some("c".into()),
            cookie_lifetime: Some(300),
            certificates: Some([9, 8].into()),
            redirect_http: Some(true),
            sticky_sessions: Some(true),
            timeout_idle: Some(30),
        }),
        health_check: ServiceCheck {
            protocol: "https".into(),
            http: Some(ServiceCheckHttp {
                path: Some("/kept".into()),
                ..ServiceCheckHttp::default()
            }),
            ..service(443).health_check
        },
        ..service(443)
    };
    have.found.ours[0].services = vec![there];
    assert_eq!(steps(&spec, &have, &facts()), []);
    // Annotations that are taken away leave what they had set.
    spec.balancer_ref.annotations.retain(|key, _| {
        key.ends_with("/protocol") || key.ends_with("interval") || key.ends_with("certificates")
    });
    assert_eq!(steps(&spec, &have, &facts()), []);
}

#[test]
fn a_value_that_makes_no_sense_is_named_with_all_others() {
    let wrong = [
        ("algorithm-type", "random"),
        ("disable-public-network", "yes"),
        ("disable-private-ingress", ""),
        ("use-private-ip", "on"),
        ("private-ipv4", "fd00::1"),
        ("private-subnet-ip-range", "10.0.0.1"),
        ("ipv6-disabled", "2"),
        ("protocol", "udp"),
        ("uses-proxyprotocol", "v2"),
        ("http-cookie-lifetime", "10"),
        ("http-timeout-idle", "30"),
        ("http-redirect-http", "x"),
        ("http-sticky-sessions", "x"),
        ("health-check-protocol", "udp"),
        ("health-check-port", "70000"),
        ("health-check-interval", "3"),
        ("health-check-timeout", "-1s"),
        ("health-check-retries", "many"),
        ("health-check-http-validate-certificate", "x"),
    ];
    let mut all = spec(&[80], &[1]);
    annotate(&mut all, &wrong);
    let error = plan(DesiredState::Present(&all), &nothing(lb11()), &facts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for (key, value) in wrong {
        assert!(error.message().contains(key), "{key} in {error}");
        let mut one = spec(&[80], &[1]);
        annotate(&mut one, &[(key, value)]);
        let desired = DesiredState::Present(&one);
        let made = plan(desired, &nothing(lb11()), &facts());
        assert!(made.is_err(), "{key}: nothing is made by guessing");
        let have = have();
        let unmet = report(desired, &have, &facts()).unmet;
        assert!(unmet[0].message.contains(key), "{key}: {unmet:?}");
        // What it is about is left as it is.
        assert_eq!(plan(desired, &have, &in_network()).unwrap(), [], "{key}");
    }
}

#[test]
fn certificates_are_uploaded_or_managed() {
    let read = |pairs: &[(&str, &str)]| {
        let mut spec = spec(&[443], &[]);
        annotate(&mut spec, pairs);
        Desired::of(&spec, &BalancerDefaults::default()).certificates
    };
    let managed = |name: &str, domains: &[&str], staging| DesiredCertificate::Managed {
        name: name.into(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        staging,
    };
    let names = DesiredCertificate::Uploaded(vec!["a".into(), "7".into()]);
    let domains = ("http-managed-certificate-domains", "a.example,*.b.example");
    let is_managed = ("certificate-type", "managed");
    for (case, pairs, expected) in [
        ("nothing said", vec![], DesiredCertificate::None),
        ("names", vec![("http-certificates", "a, 7")], names.clone()),
        (
            "any other type is uploaded",
            vec![
                ("certificate-type", "Managed"),
                ("http-certificates", "a,7"),
            ],
            names,
        ),
        (
            "managed",
            vec![is_managed, domains, ("http-certificates", "ignored")],
            managed(
                "ccm-managed-certificate-u-1",
                &["a.example", "*.b.example"],
                false,
            ),
        ),
        (
            "managed by the staging authority",
            vec![
                is_managed,
                domains,
                ("http-managed-certificate-name", "n"),
                ("http-managed-certificate-acme-staging", "true"),
            ],
            managed("n", &["a.example", "*.b.example"], true),
        ),
        (
            "staging by a word that is no boolean",
            vec![
                is_managed,
                ("http-managed-certificate-domains", "a"),
                ("http-managed-certificate-acme-staging", "perhaps"),
            ],
            managed("ccm-managed-certificate-u-1", &["a"], false),
        ),
    ] {
        assert_eq!(read(&pairs), expected, "{case}");
    }
    let DesiredCertificate::Impossible(why) = read(&[is_managed]) else {
        panic!("it has no domains");
    };
    assert!(why.contains("certificate-domains is required"));
}

#[test]
fn the_configured_defaults_count_where_no_annotation_does() {
    let defaults = BalancerDefaults {
        location: Some("fsn1".into()),
        load_balancer_type: Some("lb21".into()),
        algorithm: Some(crate::config::Algorithm::LeastConnections),
        disable_public_network: Some(true),
        uses_proxy_protocol: Some(true),
        disable_ipv6: true,
        disable_private_ingress: true,
        use_private_ip: true,
        health_check_interval: Some(std::time::Duration::from_millis(2_900)),
        ..BalancerDefaults::default()
    };
    let read = |pairs: &[(&str, &str)]| {
        let mut spec = spec(&[80], &[]);
        annotate(&mut spec, pairs);
        Desired::of(&spec, &defaults)
    };
    let asked = read(&[]);
    assert_eq!(asked.location.as_deref(), Some("fsn1"));
    assert_eq!(asked.load_balancer_type.as_deref(), Some("lb21"));
    assert_eq!(asked.public, Some(false));
    assert_eq!(asked.proxy_protocol, Some(true));
    assert!(!asked.ipv6_ingress && !asked.private_ingress && asked.use_private_ip);
    assert_eq!(asked.check.interval, Some(2), "whole seconds");
    let asked = read(&[
        ("location", ""),
        ("network-zone", "eu-central"),
        ("type", "lb31"),
        ("disable-public-network", "false"),
        ("uses-proxyprotocol", "false"),
        ("ipv6-disabled", "false"),
        ("disable-private-ingress", "false"),
        ("use-private-ip", "false"),
        ("health-check-interval", "5s"),
    ]);
    assert_eq!(asked.location, None);
    assert_eq!(asked.network_zone.as_deref(), Some("eu-central"));
    assert_eq!(asked.load_balancer_type.as_deref(), Some("lb31"));
    assert_eq!(asked.public, Some(true));
    assert_eq!(asked.proxy_protocol, Some(false));
    assert!(asked.ipv6_ingress && asked.private_ingress && !asked.use_private_ip);
    assert_eq!(asked.check.interval, Some(5));
}

#[test]
fn what_a_service_says_wins_over_what_the_settings_say_for_all() {
    let defaults = BalancerDefaults {
        load_balancer_type: Some("lb11".into()),
        disable_public_network: Some(false),
        uses_proxy_protocol: Some(false),
        ..BalancerDefaults::default()
    };
    let seen = |spec: &LoadBalancerSpec| {
        let asked = Desired::of(spec, &defaults);
        (asked.load_balancer_type, asked.public, asked.proxy_protocol)
    };
    let mut service = spec(&[80], &[]);
    let by_settings = (Some("lb11".to_owned()), Some(true), Some(false));
    assert_eq!(seen(&service), by_settings);
    service.options.size = Some("lb21".into());
    service.options.internal = Some(true);
    service.options.proxy_protocol = Some(Some(api::ProxyProtocol::V2));
    let by_neutral_words = (Some("lb21".to_owned()), Some(false), Some(true));
    assert_eq!(seen(&service), by_neutral_words);
    annotate(&mut service, &[("type", "lb31")]);
    assert_eq!(seen(&service).0.as_deref(), Some("lb31"));
}

#[test]
fn neutral_options_count_where_nothing_of_hetzners_own_does() {
    let mut neutral = spec(&[80], &[]);
    neutral.options = api::Options {
        name: Some("n".into()),
        internal: Some(true),
        size: Some("lb21".into()),
        algorithm: Some(api::Algorithm::SourceIp),
        proxy_protocol: Some(Some(api::ProxyProtocol::V2)),
        hostname: Some("h".into()),
        ip_mode: None,
        keeps_draining: false,
        drain: None,
    };
    neutral.listeners[0].health_check = api::HealthCheck {
        probe: api::HealthProbe::Http { path: "/n".into() },
        port: Some(99),
        ..api::HealthCheck::tcp()
    };
    let asked = Desired::of(&neutral, &BalancerDefaults::default());
    assert_eq!(asked.name, "n");
    assert_eq!(asked.public, Some(false));
    assert_eq!(asked.load_balancer_type.as_deref(), Some("lb21"));
    assert_eq!((asked.algorithm, asked.unsupported.len()), (None, 1));
    assert_eq!(asked.proxy_protocol, Some(true));
    assert_eq!(asked.hostname.as_deref(), Some("h"));
    let check = |spec: &LoadBalancerSpec| {
        let asked = Desired::of(spec, &BalancerDefaults::default());
        super::super::service::desired_services(spec, &asked, None, &BTreeSet::new())[0]
            .health_check
            .clone()
    };
    let path = |check: &ServiceCheck| check.http.as_ref().and_then(|http| http.path.clone());
    let found = check(&neutral);
    assert_eq!((found.port, path(&found).as_deref()), (99, Some("/n")));
    annotate(&mut neutral, &[("health-check-protocol", "tcp")]);
    let found = check(&neutral);
    assert_eq!((found.port, path(&found)), (99, None));
}
