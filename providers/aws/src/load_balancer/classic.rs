//! Classic load balancers: what is asked for. Pure.

use cloudkeel_api::Listener;

use super::Facts;
use super::desired::{Desired, LIMITS, is_shared, probe_of};
use crate::annotations as key;
use crate::wire::classic::{ClassicAttributes, ClassicCheck, ClassicListener};

/// What the names of balancers' own security groups begin with.
pub(super) const GROUP_PREFIX: &str = "k8s-elb-";

/// The name of a balancer's own security group.
pub(super) fn group_name(balancer: &str) -> String {
    format!("{GROUP_PREFIX}{balancer}")
}

/// The port of a Service as a listener. The error says what the certificate cannot be used with.
fn listener(port: &Listener, desired: &Desired) -> Result<ClassicListener, String> {
    let backend = desired.tls.backend_protocol.as_deref();
    let (protocol, instance_protocol) = if desired.is_tls(port) {
        match backend {
            None | Some("tcp") => ("SSL", "TCP"),
            Some("http") => ("HTTPS", "HTTP"),
            Some("https") => ("HTTPS", "HTTPS"),
            Some("ssl") => ("SSL", "SSL"),
            Some(other) => {
                let name = key::BACKEND_PROTOCOL.name();
                let expected = "`http`, `https`, `ssl` or `tcp`";
                return Err(format!("{name}: {other:?}: expected {expected}"));
            }
        }
    } else if backend == Some("http") {
        ("HTTP", "HTTP")
    } else {
        ("TCP", "TCP")
    };
    Ok(ClassicListener {
        port: port.port,
        protocol: protocol.to_owned(),
        instance_port: port.node_port.unwrap_or_default(),
        instance_protocol: instance_protocol.to_owned(),
        certificate: desired
            .tls
            .certificate
            .clone()
            .filter(|_| desired.is_tls(port)),
    })
}

pub(super) fn listeners(desired: &Desired) -> Result<Vec<ClassicListener>, String> {
    desired
        .ports
        .iter()
        .map(|port| listener(port, desired))
        .collect()
}

/// The one check of a balancer: the Service's first port, unless annotations say otherwise.
pub(super) fn check(desired: &Desired, facts: &Facts) -> Option<ClassicCheck> {
    let first = desired.ports.first()?;
    let neutral = &first.health_check;
    let (probe, path) = probe_of(neutral);
    let backend = desired.tls.backend_protocol.as_deref();
    let is_secure = matches!(backend, Some("https" | "ssl")) && !is_shared(facts, desired);
    let default = if probe == "TCP" && is_secure {
        "SSL"
    } else {
        probe
    };
    let asked = &desired.check;
    let protocol = asked
        .protocol
        .as_deref()
        .map_or(default.to_owned(), str::to_uppercase);
    let node_port = first.node_port.unwrap_or_default();
    let port = match asked.port.as_deref() {
        Some(text) => text.parse().unwrap_or(node_port),
        None => neutral.port.unwrap_or(node_port),
    };
    let is_http = protocol.starts_with("HTTP");
    let path = asked.path.as_deref().or(path).filter(|_| is_http);
    let path = path.unwrap_or(if is_http { "/" } else { "" });
    let number = |asked: Option<u32>, neutral: Option<u64>, default: u64| {
        asked.map(u64::from).or(neutral).unwrap_or(default)
    };
    let healthy = neutral.healthy_threshold.map(|n| n.clamp(2, 10));
    Some(ClassicCheck {
        target: format!("{protocol}:{port}{path}"),
        interval: number(asked.interval, LIMITS.interval(neutral), 10),
        timeout: number(asked.timeout, LIMITS.timeout(neutral), 5),
        healthy: asked.healthy.or(healthy).unwrap_or(2),
        unhealthy: asked
            .unhealthy
            .or_else(|| LIMITS.retries(neutral))
            .unwrap_or(6),
    })
}

pub(super) fn attributes(desired: &Desired) -> ClassicAttributes {
    let log = &desired.attributes.access_log;
    ClassicAttributes {
        access_log: log.is_enabled,
        access_log_bucket: log.bucket.clone(),
        access_log_prefix: log.prefix.clone(),
        access_log_interval: log.interval,
        draining: desired.attributes.draining,
        draining_timeout: desired.attributes.draining_timeout,
        cross_zone: desired.attributes.cross_zone,
        idle_timeout: desired.attributes.idle_timeout,
    }
}

/// What is not asked for is left as it is; the details of a log count only while there is one.
pub(super) fn is_met(want: &ClassicAttributes, have: &ClassicAttributes) -> bool {
    let is_logged = want.access_log;
    let kept = |want: &Option<String>, have: &Option<String>| {
        let want = want.clone().filter(|_| is_logged);
        want.or_else(|| have.clone())
    };
    let interval = want.access_log_interval.filter(|_| is_logged);
    let timeout = want.draining_timeout.filter(|_| want.draining);
    let expected = ClassicAttributes {
        access_log_bucket: kept(&want.access_log_bucket, &have.access_log_bucket),
        access_log_prefix: kept(&want.access_log_prefix, &have.access_log_prefix),
        access_log_interval: interval.or(have.access_log_interval),
        draining_timeout: timeout.or(have.draining_timeout),
        ..want.clone()
    };
    expected == *have
}
