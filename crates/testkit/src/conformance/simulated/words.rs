//! Balancers of the simulated cloud in neutral words.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{self as api, HealthProbe};

use crate::conformance::seen::{SeenBalancer, SeenListener};
use crate::simulated_cloud::wire::{self, Balancer};

pub(super) fn balancer(balancer: &Balancer, names: &BTreeMap<u64, String>) -> SeenBalancer {
    let place = |at: &wire::TargetAt| match at {
        wire::TargetAt::Machine(id) => names.get(id).cloned().unwrap_or_else(|| id.to_string()),
        wire::TargetAt::Ip(ip) => ip.to_string(),
    };
    let state = |state| match state {
        wire::TargetState::Serving => api::TargetState::Serving,
        wire::TargetState::Draining => api::TargetState::Draining,
    };
    let affinity = balancer.affinity;
    SeenBalancer {
        listeners: balancer.listeners.iter().map(listener).collect(),
        targets: balancer
            .targets
            .iter()
            .map(|target| (place(&target.at), state(target.state)))
            .collect(),
        addresses: balancer.addresses.clone(),
        internal: balancer.internal,
        source_ranges: balancer.source_ranges.clone(),
        affinity: affinity.map(|affinity| Duration::from_secs(affinity.seconds)),
        algorithm: Some(match balancer.algorithm {
            wire::Algorithm::RoundRobin => api::Algorithm::RoundRobin,
            wire::Algorithm::LeastConnections => api::Algorithm::LeastConnections,
            wire::Algorithm::SourceIp => api::Algorithm::SourceIp,
        }),
        proxy_protocol: balancer.proxy_protocol.map(|version| match version {
            wire::ProxyProtocol::V1 => api::ProxyProtocol::V1,
            wire::ProxyProtocol::V2 => api::ProxyProtocol::V2,
        }),
        size: Some(balancer.kind.clone()),
        ..SeenBalancer::new(balancer.id.to_string(), balancer.name.clone())
    }
}

fn listener(listener: &wire::Listener) -> SeenListener {
    let check = &listener.health_check;
    let seconds = |seconds: u32| Some(Duration::from_secs(seconds.into()));
    SeenListener {
        protocol: match listener.protocol {
            wire::Protocol::Tcp => api::Protocol::Tcp,
            wire::Protocol::Udp => api::Protocol::Udp,
            wire::Protocol::Sctp => api::Protocol::Sctp,
        },
        port: listener.port,
        node_port: listener.target_port,
        health_check: api::HealthCheck {
            probe: match check.probe.clone() {
                wire::Probe::Tcp => HealthProbe::Tcp,
                wire::Probe::Http { path } => HealthProbe::Http { path },
                wire::Probe::Https { path } => HealthProbe::Https { path },
                wire::Probe::Udp => HealthProbe::UdpConnect,
                wire::Probe::Sctp => HealthProbe::Sctp,
            },
            port: Some(check.port.unwrap_or(listener.target_port)),
            interval: seconds(check.interval_seconds),
            timeout: seconds(check.timeout_seconds),
            unhealthy_threshold: Some(check.retries),
            healthy_threshold: None,
        },
    }
}
