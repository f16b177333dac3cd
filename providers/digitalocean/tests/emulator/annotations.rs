//! Every annotation, and what becomes of it.

use cloudkeel_api::Protocol;
use cloudkeel_emulator_digitalocean::LoadBalancer;
use cloudkeel_provider_digitalocean::BalancerType;

use crate::lab::{Lab, annotate, refused, settle, spec};

/// The annotations of a Service, and a part of its load balancer.
type Case = (
    &'static [(&'static str, &'static str)],
    fn(&LoadBalancer) -> String,
    &'static str,
);

fn rules(balancer: &LoadBalancer) -> String {
    let rules = balancer.forwarding_rules.iter().map(|rule| {
        let tls = match (rule.certificate_id.is_empty(), rule.tls_passthrough) {
            (false, _) => " certificate",
            (true, true) => " passthrough",
            (true, false) => "",
        };
        let (entry, target) = (&rule.entry_protocol, &rule.target_protocol);
        format!(
            "{entry}:{}>{target}:{}{tls}",
            rule.entry_port, rule.target_port
        )
    });
    rules.collect::<Vec<_>>().join(" ")
}

fn check(balancer: &LoadBalancer) -> String {
    let check = &balancer.health_check;
    let numbers = [
        check.check_interval_seconds,
        check.response_timeout_seconds,
        check.unhealthy_threshold,
        check.healthy_threshold,
    ];
    let (protocol, port, path) = (&check.protocol, check.port, &check.path);
    format!(
        "{protocol}:{port}{path} {numbers:?} {:?}",
        check.proxy_protocol
    )
}

const REGIONAL: &[Case] = &[
    (&[], rules, "tcp:80>tcp:30080 tcp:443>tcp:30443"),
    (
        &[("protocol", "http")],
        rules,
        "http:80>http:30080 http:443>http:30443",
    ),
    (
        &[("http-ports", "80")],
        rules,
        "http:80>http:30080 tcp:443>tcp:30443",
    ),
    (
        &[("certificate-name", "shop")],
        rules,
        "tcp:80>tcp:30080 https:443>http:30443 certificate",
    ),
    (
        &[("tls-passthrough", "true")],
        rules,
        "tcp:80>tcp:30080 https:443>https:30443 passthrough",
    ),
    (
        &[("tls-passthrough", "true"), ("tls-ports", "80")],
        rules,
        "https:80>https:30080 passthrough tcp:443>tcp:30443",
    ),
    (
        &[("certificate-name", "shop"), ("http2-ports", "443")],
        rules,
        "tcp:80>tcp:30080 http2:443>http:30443 certificate",
    ),
    (
        &[("certificate-name", "shop"), ("http3-port", "443")],
        rules,
        "tcp:80>tcp:30080 https:443>http:30443 certificate http3:443>http:30443 certificate",
    ),
    (
        &[("certificate-name", "shop"), ("http-ports", "443")],
        rules,
        "tcp:80>tcp:30080 https:443>http:30443 certificate",
    ),
    (
        &[
            ("network", ""),
            ("network-stack", ""),
            ("size-slug", ""),
            ("size-unit", ""),
        ],
        |it| format!("{} {} {}", it.network, it.network_stack, it.size_unit),
        "EXTERNAL DUALSTACK 1",
    ),
    (
        &[("override-health-check", "x"), ("healthcheck-protocol", "")],
        check,
        "tcp:30080 [3, 5, 3, 5] None",
    ),
    (
        &[("sticky-sessions-cookie-ttl", "x")],
        |it| it.sticky_sessions.kind.clone(),
        "none",
    ),
    (&[], |it| it.network_stack.clone(), "DUALSTACK"),
    (
        &[("network-stack", "IPV4")],
        |it| it.network_stack.clone(),
        "IPV4",
    ),
    (
        &[("network", "INTERNAL")],
        |it| format!("{} {}", it.network, it.network_stack),
        "INTERNAL IPV4",
    ),
    (
        &[("enable-proxy-protocol", "true")],
        |it| it.enable_proxy_protocol.to_string(),
        "true",
    ),
    (
        &[("redirect-http-to-https", "1")],
        |it| it.redirect_http_to_https.to_string(),
        "true",
    ),
    (
        &[("enable-backend-keepalive", "T")],
        |it| it.enable_backend_keepalive.to_string(),
        "true",
    ),
    (
        &[("disable-lets-encrypt-dns-records", "true")],
        |it| it.disable_lets_encrypt_dns_records.to_string(),
        "true",
    ),
    (
        &[("http-idle-timeout-seconds", "120")],
        |it| it.http_idle_timeout_seconds.to_string(),
        "120",
    ),
    (&[], |it| it.http_idle_timeout_seconds.to_string(), "60"),
    (
        &[
            ("sticky-sessions-type", "cookies"),
            ("sticky-sessions-cookie-name", "lb"),
            ("sticky-sessions-cookie-ttl", "60"),
        ],
        |it| format!("{:?}", it.sticky_sessions),
        r#"StickySessions { kind: "cookies", cookie_name: Some("lb"), cookie_ttl_seconds: Some(60) }"#,
    ),
    (
        &[("sticky-sessions-type", "x")],
        |it| it.sticky_sessions.kind.clone(),
        "none",
    ),
    (
        &[
            ("deny-rules", "ip:1.2.3.4, cidr:10.0.0.0/8"),
            ("allow-rules", "ip:5.6.7.8"),
        ],
        |it| format!("{:?} {:?}", it.firewall.allow, it.firewall.deny),
        r#"["ip:5.6.7.8"] ["cidr:10.0.0.0/8", "ip:1.2.3.4"]"#,
    ),
    (
        &[("size-slug", "lb-medium")],
        |it| it.size_unit.to_string(),
        "3",
    ),
    (&[("size-unit", "5")], |it| it.size_unit.to_string(), "5"),
    (&[("size-unit", "0")], |it| it.size_unit.to_string(), "1"),
    (&[("name", "front")], |it| it.name.clone(), "front"),
    (&[("ip", " 192.0.2.7 ")], |it| it.ip.clone(), "192.0.2.7"),
    (
        &[("subnet-uuid", " s-1 ")],
        |it| it.subnet_uuid.clone(),
        "s-1",
    ),
    (&[], check, "http:10256/healthz [3, 5, 3, 5] Some(false)"),
    (
        &[
            ("healthcheck-check-interval-seconds", "9"),
            ("healthcheck-healthy-threshold", "2"),
        ],
        check,
        "http:10256/healthz [9, 5, 3, 2] Some(false)",
    ),
    (
        &[("healthcheck-path", "/ready")],
        check,
        "http:10256/healthz [3, 5, 3, 5] Some(false)",
    ),
    (
        &[("override-health-check", "")],
        check,
        "tcp:30080 [3, 5, 3, 5] None",
    ),
    (
        &[
            ("override-health-check", "x"),
            ("healthcheck-port", "443"),
            ("healthcheck-path", "/r"),
        ],
        check,
        "http:30443/r [3, 5, 3, 5] None",
    ),
    (
        &[
            ("override-health-check", "x"),
            ("healthcheck-protocol", "https"),
        ],
        check,
        "https:30080 [3, 5, 3, 5] None",
    ),
];

const NETWORK: &[Case] = &[
    (&[], rules, "tcp:80>tcp:80 tcp:443>tcp:443"),
    (
        &[("protocol", "http"), ("certificate-name", "shop")],
        rules,
        "tcp:80>tcp:80 tcp:443>tcp:443",
    ),
    (
        &[
            ("http-ports", "80"),
            ("tls-ports", "80,x"),
            ("http3-port", "x"),
            ("certificate-name", "none"),
        ],
        rules,
        "tcp:80>tcp:80 tcp:443>tcp:443",
    ),
    (&[], |it| it.kind.clone(), "REGIONAL_NETWORK"),
    (&[("type", "REGIONAL")], |it| it.kind.clone(), "REGIONAL"),
    (&[], |it| it.network_stack.clone(), "DUALSTACK"),
    (
        &[("override-health-check", "x")],
        check,
        "tcp:30080 [3, 5, 3, 5] None",
    ),
];

#[tokio::test(start_paused = true)]
async fn each_annotation_is_honoured_and_then_at_rest() {
    let types = [
        (BalancerType::Regional, REGIONAL),
        (BalancerType::Network, NETWORK),
    ];
    for (default, (annotations, part, expected)) in types
        .into_iter()
        .flat_map(|(default, cases)| cases.iter().map(move |case| (default, case)))
    {
        let lab = Lab::new(2);
        lab.cloud.add_certificate("shop", "custom");
        let provider = lab
            .provider_with(|config| config.balancer_type = default)
            .await;
        let nodes = lab.nodes(&provider).await;
        let mut desired = spec(&[80, 443], &nodes);
        annotate(&mut desired, annotations);
        settle(&provider, &mut desired).await;
        let case = format!("{default:?} {annotations:?}");
        assert_eq!(part(&lab.balancer()), *expected, "{case}");
        assert_eq!(lab.mutations(), 1, "{case}");
        settle(&provider, &mut desired).await;
        assert_eq!(lab.mutations(), 1, "{case}: nothing differs");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_with_key_value_and_what_would_be_right() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("type", "SMALL")],
            r#"do-loadbalancer-type: "SMALL": expected `REGIONAL` or `REGIONAL_NETWORK`"#,
        ),
        (
            &[("network", "x")],
            r#"network: "x": expected `EXTERNAL` or `INTERNAL`"#,
        ),
        (
            &[("network-stack", "DUALSTACK"), ("network", "INTERNAL")],
            "network-stack: \"DUALSTACK\"",
        ),
        (&[("size-slug", "lb-huge")], "size-slug: \"lb-huge\""),
        (
            &[("size-slug", "lb-small"), ("size-unit", "2")],
            "give either this or",
        ),
        (
            &[("sticky-sessions-type", "cookies")],
            "sticky-sessions-cookie-name: is required with",
        ),
        (
            &[("http-ports", "80"), ("tls-ports", "80")],
            "port 80: give it either http or https",
        ),
        (&[("tls-ports", "443")], "port 443: https: expected either"),
        (
            &[("certificate-name", "none")],
            "there is no certificate \"none\"",
        ),
        (
            &[("http3-port", "443")],
            "http3-port: \"443\": expected a certificate",
        ),
        (
            &[("override-health-check", "x"), ("healthcheck-port", "81")],
            "healthcheck-port: \"81\"",
        ),
        (
            &[("healthcheck-unhealthy-threshold", "x")],
            "healthcheck-unhealthy-threshold: \"x\"",
        ),
        (
            &[("enable-proxy-protocol", "yes")],
            "enable-proxy-protocol: \"yes\"",
        ),
        (
            &[("service.kubernetes.io/do-loadbalancer-disown", "maybe")],
            "do-loadbalancer-disown: \"maybe\"",
        ),
    ];
    for (annotations, words) in cases {
        let lab = Lab::new(1);
        let regional = BalancerType::Regional;
        let provider = lab
            .provider_with(|config| config.balancer_type = regional)
            .await;
        let nodes = lab.nodes(&provider).await;
        let mut desired = spec(&[80, 443], &nodes);
        annotate(&mut desired, annotations);
        let why = refused(&provider, &desired).await;
        assert!(why.contains(words), "{annotations:?}: {why}");
        assert_eq!(lab.mutations(), 0, "{annotations:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn udp_is_passed_on_by_both_types_and_other_protocols_by_none() {
    for default in [BalancerType::Regional, BalancerType::Network] {
        let lab = Lab::new(1);
        let provider = lab
            .provider_with(|config| config.balancer_type = default)
            .await;
        let nodes = lab.nodes(&provider).await;
        let mut desired = spec(&[53], &nodes);
        desired.listeners[0].protocol = Protocol::Udp;
        settle(&provider, &mut desired).await;
        assert_eq!(lab.balancer().forwarding_rules[0].entry_protocol, "udp");
        desired.listeners[0].protocol = Protocol::Sctp;
        let unmet = crate::lab::unmet(&provider, &desired).await;
        assert!(
            unmet.message.contains("port 53: SCTP: expected TCP or UDP"),
            "{unmet:?}"
        );
    }
}
