//! How Nodes are checked: one check for the whole load balancer. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{HealthProbe, Listener, LoadBalancerSpec, Protocol};
use cloudkeel_toolkit::health::CheckLimits;

use super::desired::Reader;
use crate::annotations as key;
use crate::annotations::CheckProtocol;
use crate::wire::HealthCheck;

/// Where kube-proxy says whether its Node serves.
pub(crate) const KUBE_PROXY_PORT: u16 = 10256;
const HEALTHZ: &str = "/healthz";
/// The numbers that the API takes.
pub(super) const LIMITS: CheckLimits = CheckLimits {
    interval: 3..=300,
    timeout: 3..=300,
    retries: 2..=10,
};

pub(super) fn of(
    spec: &LoadBalancerSpec,
    reader: &mut Reader<'_>,
    problems: &mut Vec<String>,
) -> HealthCheck {
    let numbers = numbers(spec, reader);
    let annotations = &spec.balancer_ref.annotations;
    if !annotations.contains_key(key::OVERRIDE_HEALTH_CHECK.name()) {
        return HealthCheck {
            proxy_protocol: Some(false),
            ..usual(spec, &numbers)
        };
    }
    let path = reader.text(&key::HEALTHCHECK_PATH).unwrap_or_default();
    let protocol = reader.get(&key::HEALTHCHECK_PROTOCOL).unwrap_or({
        if path.is_empty() {
            CheckProtocol::Tcp
        } else {
            CheckProtocol::Http
        }
    });
    let ports = spec
        .listeners
        .iter()
        .map(|listener: &Listener| (listener.protocol, listener.port, listener.node_port));
    let port = checked_port(annotations, ports).unwrap_or_else(|problem| {
        problems.push(problem);
        KUBE_PROXY_PORT
    });
    HealthCheck {
        protocol: protocol.as_str().to_owned(),
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
    let tcp = ports
        .into_iter()
        .filter(|(protocol, ..)| *protocol == Protocol::Tcp);
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
    let Some(listener) = spec.listeners.first() else {
        return by_kube_proxy(numbers);
    };
    let check = &listener.health_check;
    let port = check.port.or(listener.node_port).unwrap_or(listener.port);
    let by = |protocol: &str, path: &str| HealthCheck {
        protocol: protocol.to_owned(),
        port,
        path: path.to_owned(),
        ..numbers.clone()
    };
    match &check.probe {
        HealthProbe::Tcp => by("tcp", ""),
        HealthProbe::Http { path } => by("http", path),
        HealthProbe::Https { path } => by("https", path),
        // The API has no such check.
        HealthProbe::UdpConnect | HealthProbe::Sctp => by_kube_proxy(numbers),
    }
}

fn by_kube_proxy(numbers: &HealthCheck) -> HealthCheck {
    HealthCheck {
        protocol: "http".to_owned(),
        port: KUBE_PROXY_PORT,
        path: HEALTHZ.to_owned(),
        ..numbers.clone()
    }
}

fn numbers(spec: &LoadBalancerSpec, reader: &mut Reader<'_>) -> HealthCheck {
    let neutral = spec
        .listeners
        .first()
        .map(|listener| &listener.health_check);
    let seconds = |seconds: u64| u32::try_from(seconds).unwrap_or(u32::MAX);
    let interval = neutral
        .and_then(|check| LIMITS.interval(check))
        .map(seconds);
    let timeout = neutral.and_then(|check| LIMITS.timeout(check)).map(seconds);
    let unhealthy = neutral.and_then(|check| LIMITS.retries(check));
    let (least, most) = (*LIMITS.retries.start(), *LIMITS.retries.end());
    let healthy = neutral.and_then(|check| check.healthy_threshold);
    let healthy = healthy.map(|asked| asked.clamp(least, most));
    let mut or =
        |key, neutral: Option<u32>, default| reader.get(key).or(neutral).unwrap_or(default);
    HealthCheck {
        check_interval_seconds: or(&key::HEALTHCHECK_INTERVAL, interval, 3),
        response_timeout_seconds: or(&key::HEALTHCHECK_TIMEOUT, timeout, 5),
        unhealthy_threshold: or(&key::HEALTHCHECK_UNHEALTHY, unhealthy, 3),
        healthy_threshold: or(&key::HEALTHCHECK_HEALTHY, healthy, 5),
        ..HealthCheck::default()
    }
}
