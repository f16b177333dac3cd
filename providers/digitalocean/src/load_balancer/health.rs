//! How Nodes are checked: one check for the whole load balancer. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{HealthCheck as NeutralCheck, LoadBalancerSpec, Protocol};
use cloudkeel_toolkit::health::{CheckLimits, CheckNumbers, KUBE_PROXY_PORT, usual_probe};

use super::desired::Reader;
use crate::annotations as key;
use crate::annotations::CheckProtocol;
use crate::wire::HealthCheck;

/// The numbers that a check has by default.
const NUMBERS: CheckNumbers = CheckNumbers {
    interval: 3,
    timeout: 5,
    unhealthy: 3,
    healthy: 5,
};
const HEALTHZ: &str = "/healthz";
/// The numbers that the API takes.
pub(super) const LIMITS: CheckLimits = CheckLimits {
    interval: 3..=300,
    timeout: 3..=300,
    retries: 2..=10,
};

/// What is asked for, in the words of the API: protocol, port and path.
type Probe = (&'static str, u16, String);

pub(super) fn of(spec: &LoadBalancerSpec, reader: &mut Reader<'_>) -> HealthCheck {
    let neutral = spec.listeners.first();
    let neutral = neutral.map_or_else(NeutralCheck::tcp, |listener| listener.health_check.clone());
    let numbers = LIMITS.numbers(&neutral, NUMBERS);
    let annotations = &spec.balancer_ref.annotations;
    let is_own = annotations.contains_key(key::OVERRIDE_HEALTH_CHECK.name());
    let probe = if is_own {
        own(spec, reader)
    } else {
        usual(spec)
    };
    let (protocol, port, path) = probe;
    let mut or = |key, neutral| reader.get(key).unwrap_or(neutral);
    HealthCheck {
        protocol: protocol.to_owned(),
        port,
        path,
        check_interval_seconds: or(&key::HEALTHCHECK_INTERVAL, numbers.interval),
        response_timeout_seconds: or(&key::HEALTHCHECK_TIMEOUT, numbers.timeout),
        unhealthy_threshold: or(&key::HEALTHCHECK_UNHEALTHY, numbers.unhealthy),
        healthy_threshold: or(&key::HEALTHCHECK_HEALTHY, numbers.healthy),
        proxy_protocol: (!is_own).then_some(false),
    }
}

/// What DigitalOcean's own annotations ask for.
fn own(spec: &LoadBalancerSpec, reader: &mut Reader<'_>) -> Probe {
    let path = reader.text(&key::HEALTHCHECK_PATH).unwrap_or_default();
    let default = match path.as_str() {
        "" => CheckProtocol::Tcp,
        _ => CheckProtocol::Http,
    };
    let protocol = reader.get(&key::HEALTHCHECK_PROTOCOL).unwrap_or(default);
    let ports = spec.listeners.iter();
    let ports = ports.map(|port| (port.protocol, port.port, port.node_port));
    let port = checked_port(&spec.balancer_ref.annotations, ports);
    let port = port.unwrap_or_else(|problem| {
        reader.problem(&key::HEALTHCHECK_PORT, problem);
        KUBE_PROXY_PORT
    });
    (protocol.as_str(), port, path)
}

/// The node port of the Service port whose check is asked for, else of the first TCP port.
pub(crate) fn checked_port(
    annotations: &BTreeMap<String, String>,
    ports: impl IntoIterator<Item = (Protocol, u16, Option<u16>)>,
) -> Result<u16, String> {
    let tcp = ports.into_iter();
    let tcp: Vec<_> = tcp.filter(|port| port.0 == Protocol::Tcp).collect();
    let asked = annotations.get(key::HEALTHCHECK_PORT.name());
    let asked = asked.map_or("", String::as_str);
    let is_asked = |port: &u16| asked.is_empty() || port.to_string() == asked;
    let found = tcp.iter().find(|(_, port, _)| is_asked(port));
    found.and_then(|(.., node_port)| *node_port).ok_or_else(|| {
        let known: Vec<_> = tcp.iter().map(|(_, port, _)| port.to_string()).collect();
        let known = known.join(", ");
        format!("{asked:?}: expected one TCP port of the Service that has a node port ({known})")
    })
}

/// The framework's choice: kube-proxy's health endpoint, that of the Service's own, or what neutral annotations ask for.
fn usual(spec: &LoadBalancerSpec) -> Probe {
    let probe = spec.listeners.first().and_then(usual_probe);
    // The API has no other check.
    probe.unwrap_or_else(|| ("http", KUBE_PROXY_PORT, HEALTHZ.to_owned()))
}
