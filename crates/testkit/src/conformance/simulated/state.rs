//! Balancers of the simulated cloud in the words that all clouds share.

use std::time::Duration;

use cloudkeel_api::{self as api, HealthProbe, VolumePlace};
use serde_json::json;

use crate::conformance::actual::{ActualBalancer, ActualListener, ActualRoute, ActualVolume};
use crate::simulated_cloud::wire::{self, Balancer};

pub(super) fn balancer(balancer: &Balancer) -> ActualBalancer {
    let place = |at: &wire::TargetAt| match at {
        wire::TargetAt::Machine(id) => id.to_string(),
        wire::TargetAt::Ip(ip) => ip.to_string(),
    };
    let state = |state| match state {
        wire::TargetState::Serving => api::TargetState::Serving,
        wire::TargetState::Draining => api::TargetState::Draining,
    };
    let affinity = balancer.affinity;
    ActualBalancer {
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
        labels: balancer.labels.clone(),
        ..ActualBalancer::new(balancer.id.to_string(), balancer.name.clone())
    }
}

pub(super) fn route(route: &wire::Route) -> ActualRoute {
    let hop = match route.hop {
        wire::Hop::Machine(id) => id.to_string(),
        wire::Hop::Ip(ip) => ip.to_string(),
    };
    ActualRoute {
        destination: route.destination,
        hop,
    }
}

pub(super) fn volume(volume: &wire::Volume) -> ActualVolume {
    let source = |disk: &str| json!({"driver": "local.cloudkeel.dev", "volumeHandle": disk});
    ActualVolume {
        source: "csi",
        content: source(&volume.id),
        missing: source("vol-404"),
        place: VolumePlace {
            zones: volume.zones.clone(),
            region: Some(volume.region.clone()),
        },
    }
}

fn listener(listener: &wire::Listener) -> ActualListener {
    let check = &listener.health_check;
    let seconds = |seconds: u32| Some(Duration::from_secs(seconds.into()));
    ActualListener {
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
