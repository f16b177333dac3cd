use serde_json::json;

use super::*;
use crate::service::fixtures::{annotated, service};

const PROTOCOL: &str = "cloudkeel.dev/lb-health-check-protocol";
const PORT: &str = "cloudkeel.dev/lb-health-check-port";
const PATH: &str = "cloudkeel.dev/lb-health-check-path";
const INTERVAL: &str = "cloudkeel.dev/lb-health-check-interval";
const TIMEOUT: &str = "cloudkeel.dev/lb-health-check-timeout";
const HEALTHY_THRESHOLD: &str = "cloudkeel.dev/lb-health-check-healthy-threshold";
const RETRIES: &str = "cloudkeel.dev/lb-health-check-retries";

/// The check in a few words.
fn words(check: &HealthCheck) -> String {
    let probe = match &check.probe {
        HealthProbe::Tcp => "tcp".to_owned(),
        HealthProbe::Http { path } => format!("http {path}"),
        HealthProbe::Https { path } => format!("https {path}"),
        HealthProbe::UdpConnect => "udp".to_owned(),
        HealthProbe::Sctp => "sctp".to_owned(),
    };
    match check.port {
        Some(port) => format!("{probe} on {port}"),
        None => format!("{probe} on node port"),
    }
}

fn check(view: &ServiceView, protocol: Protocol, policy: &HealthCheckPolicy) -> HealthCheck {
    let mut problems = Problems::new();
    let options = CheckOptions::read(view, &mut problems);
    assert_eq!(problems, Problems::new());
    options.check(view, protocol, policy)
}

fn local() -> ServiceView {
    service(json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32000}}))
}

#[test]
fn the_policy_and_the_traffic_policy_decide_the_usual_check() {
    use HealthCheckPolicy::{LocalAware, NodePort, Off};
    let kube_proxy = HealthCheckPolicy::kube_proxy;
    let portless = service(json!({"spec": {"externalTrafficPolicy": "Local"}}));
    let cluster = service(json!({}));
    for (case, view, policy, expected) in [
        ("node port, Cluster", &cluster, NodePort, "tcp on node port"),
        ("node port, Local", &local(), NodePort, "tcp on node port"),
        (
            "local aware, Cluster",
            &cluster,
            LocalAware,
            "tcp on node port",
        ),
        (
            "local aware, Local",
            &local(),
            LocalAware,
            "http /healthz on 32000",
        ),
        (
            "kube-proxy, Cluster",
            &cluster,
            kube_proxy(),
            "http /healthz on 10256",
        ),
        (
            "kube-proxy, Local",
            &local(),
            kube_proxy(),
            "http /healthz on 32000",
        ),
        (
            "local without its port",
            &portless,
            LocalAware,
            "tcp on node port",
        ),
        ("off, Cluster", &cluster, Off, "tcp on node port"),
        ("off, Local", &local(), Off, "tcp on node port"),
    ] {
        assert_eq!(
            words(&check(view, Protocol::Tcp, &policy)),
            expected,
            "{case}"
        );
    }
}

#[test]
fn a_node_port_is_tried_in_the_protocol_of_the_listener() {
    let view = service(json!({}));
    for (protocol, policy, expected) in [
        (
            Protocol::Udp,
            HealthCheckPolicy::NodePort,
            "udp on node port",
        ),
        (
            Protocol::Sctp,
            HealthCheckPolicy::NodePort,
            "sctp on node port",
        ),
        (
            Protocol::Udp,
            HealthCheckPolicy::kube_proxy(),
            "http /healthz on 10256",
        ),
    ] {
        assert_eq!(words(&check(&view, protocol, &policy)), expected);
    }
}

#[test]
fn a_choice_overrules_the_provider_only_if_it_is_made() {
    use HealthCheckPolicy::{LocalAware, NodePort, Off};
    let kube_proxy = HealthCheckPolicy::kube_proxy;
    for provider in [NodePort, LocalAware, kube_proxy(), Off] {
        let over = |choice: HealthCheckChoice| choice.over(provider.clone(), true);
        assert_eq!(over(HealthCheckChoice::Compatible), provider);
        assert_eq!(over(HealthCheckChoice::NodePort), LocalAware);
        assert_eq!(over(HealthCheckChoice::KubeProxy), kube_proxy());
        let swapped = HealthCheckChoice::Auto.over(provider.clone(), false);
        assert_eq!(swapped, provider, "a swap changes nothing");
        let expected = match provider {
            NodePort | Off => LocalAware,
            _ => provider.clone(),
        };
        assert_eq!(
            over(HealthCheckChoice::Auto),
            expected,
            "a new installation"
        );
    }
    assert_eq!(HealthCheckChoice::default(), HealthCheckChoice::Auto);
}

#[test]
fn annotations_go_on_top() {
    use HealthCheckPolicy::NodePort;
    let kube_proxy = HealthCheckPolicy::kube_proxy;
    for (case, annotations, policy, expected) in [
        ("port", &[(PORT, "8080")][..], NodePort, "tcp on 8080"),
        (
            "a path asks for http",
            &[(PATH, "/ok")],
            NodePort,
            "http /ok on node port",
        ),
        (
            "http without a path",
            &[(PROTOCOL, "http")],
            NodePort,
            "http / on node port",
        ),
        (
            "https",
            &[(PROTOCOL, "https"), (PATH, "/ok")],
            NodePort,
            "https /ok on node port",
        ),
        ("tcp", &[(PROTOCOL, "tcp")], kube_proxy(), "tcp on 10256"),
        (
            "path of the usual check",
            &[(PROTOCOL, "https")],
            kube_proxy(),
            "https /healthz on 10256",
        ),
        (
            "another path",
            &[(PATH, "/livez")],
            kube_proxy(),
            "http /livez on 10256",
        ),
    ] {
        let view = annotated(annotations);
        assert_eq!(
            words(&check(&view, Protocol::Tcp, &policy)),
            expected,
            "{case}"
        );
    }
    let view = annotated(&[
        (INTERVAL, "15s"),
        (TIMEOUT, "500ms"),
        (RETRIES, "3"),
        (HEALTHY_THRESHOLD, "4"),
    ]);
    let found = check(&view, Protocol::Tcp, &NodePort);
    assert_eq!(found.interval, Some(Duration::from_secs(15)));
    assert_eq!(found.timeout, Some(Duration::from_millis(500)));
    assert_eq!(found.unhealthy_threshold, Some(3));
    assert_eq!(found.healthy_threshold, Some(4));
}

#[test]
fn every_wrong_option_is_reported_at_once() {
    let view = annotated(&[
        (PROTOCOL, "icmp"),
        (PORT, "0"),
        (PATH, "ok"),
        (INTERVAL, "0s"),
        (TIMEOUT, "5"),
        (RETRIES, "0"),
    ]);
    let mut problems = Problems::new();
    CheckOptions::read(&view, &mut problems);
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            format!("{PROTOCOL}: \"icmp\": expected `tcp`, `http` or `https`"),
            format!("{TIMEOUT}: \"5\": expected a duration such as `10s`, `1m30s` or `500ms`"),
            format!("{PORT}: \"0\": expected a port from 1 to 65535"),
            format!("{PATH}: \"ok\": expected a path that begins with `/` and has no white space"),
            format!("{INTERVAL}: \"0s\": expected more than no time"),
            format!("{RETRIES}: \"0\": expected at least 1"),
        ]
    );
}

#[test]
fn a_path_without_http_is_refused() {
    let mut problems = Problems::new();
    CheckOptions::read(
        &annotated(&[(PROTOCOL, "tcp"), (PATH, "/ok")]),
        &mut problems,
    );
    assert_eq!(
        problems.to_string(),
        format!("{PATH}: \"/ok\": expected no path with a check by `tcp`")
    );
}
