//! How Nodes are checked: one check for the whole load balancer. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{HealthCheck as NeutralCheck, HealthProbe, LoadBalancerSpec, Protocol};
use cloudkeel_toolkit::health::{CheckLimits, KUBE_PROXY_PORT};

use super::desired::Reader;
use crate::annotations as key;
use crate::annotations::CheckProtocol;
use crate::wire::HealthCheck;

const HEALTHZ: &str = "/healthz";
/// The numbers that the API takes.
pub(super) const LIMITS: CheckLimits = CheckLimits {
    interval: 3..=300,
    timeout: 3..=300,
    retries: 2..=10,
};

pub(super) fn of(spec: &LoadBalancerSpec, reader: &mut Reader<'_>) -> HealthCheck {
    let numbers = numbers(spec, reader);
    let annotations = &spec.balancer_ref.annotations;
    if !annotations.contains_key(key::OVERRIDE_HEALTH_CHECK.name()) {
        return usual(spec, &numbers);
    }
    let path = reader.text(&key::HEALTHCHECK_PATH).unwrap_or_default();
    let default = match path.as_str() {
        "" => CheckProtocol::Tcp,
        _ => CheckProtocol::Http,
    };
    let protocol = reader.get(&key::HEALTHCHECK_PROTOCOL);
    let ports = spec.listeners.iter();
    let ports = ports.map(|port| (port.protocol, port.port, port.node_port));
    let port = checked_port(annotations, ports).unwrap_or_else(|problem| {
        reader.problems.push(problem);
        KUBE_PROXY_PORT
    });
    HealthCheck {
        protocol: protocol.unwrap_or(default).as_str().to_owned(),
        port,
        path,
        ..numbers
    }
}

/// The node port of the Service port whose check is asked for, else of the first TCP port.
pub(crate) fn checked_port(
    annotations: &BTreeMap<String, String>,
    ports: impl IntoIterator<Item = (Protocol, u16, Option<u16>)>,
) -> Result<u16, String> {
    let name = key::HEALTHCHECK_PORT.name();
    let tcp = ports.into_iter();
    let tcp = tcp.filter(|(protocol, ..)| *protocol == Protocol::Tcp);
    let tcp: Vec<_> = tcp.collect();
    let asked = annotations.get(name).filter(|text| !text.is_empty());
    let found = match asked {
        None => tcp.first(),
        Some(text) => tcp.iter().find(|(_, port, _)| port.to_string() == *text),
    };
    let node_port = found.and_then(|(.., node_port)| *node_port);
    node_port.ok_or_else(|| {
        let known: Vec<_> = tcp.iter().map(|(_, port, _)| port.to_string()).collect();
        let asked = asked.map_or("", String::as_str);
        let known = known.join(", ");
        format!(
            "{name}: {asked:?}: expected one TCP port of the Service that has a node port ({known})"
        )
    })
}

/// The framework's choice: kube-proxy's health endpoint, that of the Service's own, or what neutral annotations ask for.
fn usual(spec: &LoadBalancerSpec, numbers: &HealthCheck) -> HealthCheck {
    let kube_proxy = ("http", KUBE_PROXY_PORT, HEALTHZ);
    let listener = spec.listeners.first();
    let (protocol, port, path) = listener.map_or(kube_proxy, |listener| {
        let check = &listener.health_check;
        let port = check.port.or(listener.node_port).unwrap_or(listener.port);
        match &check.probe {
            HealthProbe::Tcp => ("tcp", port, ""),
            HealthProbe::Http { path } => ("http", port, path),
            HealthProbe::Https { path } => ("https", port, path),
            // The API has no such check.
            HealthProbe::UdpConnect | HealthProbe::Sctp => kube_proxy,
        }
    });
    HealthCheck {
        protocol: protocol.to_owned(),
        port,
        path: path.to_owned(),
        proxy_protocol: Some(false),
        ..numbers.clone()
    }
}

fn numbers(spec: &LoadBalancerSpec, reader: &mut Reader<'_>) -> HealthCheck {
    let neutral = spec.listeners.first();
    let neutral = neutral.map_or_else(NeutralCheck::tcp, |listener| listener.health_check.clone());
    let seconds = |seconds: u64| u32::try_from(seconds).unwrap_or(u32::MAX);
    let mut or =
        |key, neutral: Option<u32>, default| reader.get(key).or(neutral).unwrap_or(default);
    let (interval, timeout) = (LIMITS.interval(&neutral), LIMITS.timeout(&neutral));
    let (unhealthy, healthy) = (LIMITS.retries(&neutral), LIMITS.healthy(&neutral));
    HealthCheck {
        check_interval_seconds: or(&key::HEALTHCHECK_INTERVAL, interval.map(seconds), 3),
        response_timeout_seconds: or(&key::HEALTHCHECK_TIMEOUT, timeout.map(seconds), 5),
        unhealthy_threshold: or(&key::HEALTHCHECK_UNHEALTHY, unhealthy, 3),
        healthy_threshold: or(&key::HEALTHCHECK_HEALTHY, healthy, 5),
        ..HealthCheck::default()
    }
}
