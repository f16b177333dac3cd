//! The cluster, its Services and what they wish for.

use std::collections::BTreeMap;

use cloudkeel_api::{
    Affinity, Claim, ClusterIdentity, HealthCheck, HealthCheckPolicy, HealthProbe, IpFamily,
    Listener, LoadBalancerSpec, NodeFacts, Options, Protocol, ServiceRef, Target, TargetBy,
    TargetState, TrafficPolicy,
};

/// The cluster that every provider under test belongs to.
pub fn cluster() -> ClusterIdentity {
    ClusterIdentity {
        name: "conformance".to_owned(),
        uid: Some("11111111-2222-3333-4444-555555555555".to_owned()),
        pod_cidrs: ["10.244.0.0/16".parse(), "fd00:10:244::/56".parse()]
            .into_iter()
            .flatten()
            .collect(),
    }
}

/// The claim of a Service of this name.
pub(super) fn claim(service: &str) -> Claim {
    Claim {
        cluster: cluster(),
        service: ServiceRef {
            namespace: "default".to_owned(),
            name: service.to_owned(),
            uid: format!("aaaaaaaa-0000-0000-0000-{service}"),
        },
        annotations: BTreeMap::new(),
        ingress: Vec::new(),
        adopt: None,
    }
}

/// What the Service `web` wishes for: these TCP ports, and these Nodes as targets.
pub(super) fn spec(ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    spec_of("web", ports, nodes)
}

/// The same for another Service.
pub(super) fn spec_of(service: &str, ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let listeners = ports.iter().map(|port| listener(Protocol::Tcp, *port));
    LoadBalancerSpec {
        claim: claim(service),
        listeners: listeners.collect(),
        targets: nodes.iter().map(target).collect(),
        families: vec![IpFamily::V4],
        address: None,
        source_ranges: Vec::new(),
        traffic_policy: TrafficPolicy::Cluster,
        health_check_node_port: None,
        affinity: Affinity::None,
        options: Options::default(),
    }
}

fn target(node: &NodeFacts) -> (String, Target) {
    let target = Target {
        node: node.clone(),
        by: TargetBy::Machine,
        state: TargetState::Serving,
    };
    (node.name.clone(), target)
}

pub(super) fn listener(protocol: Protocol, port: u16) -> Listener {
    let probe = match protocol {
        Protocol::Tcp => HealthProbe::Tcp,
        Protocol::Udp => HealthProbe::UdpConnect,
        Protocol::Sctp => HealthProbe::Sctp,
    };
    Listener {
        name: None,
        protocol,
        port,
        node_port: Some(30_000 + port % 1_000),
        app_protocol: None,
        health_check: HealthCheck {
            probe,
            ..HealthCheck::tcp()
        },
    }
}

/// The check that the framework gives a TCP port by the provider's policy.
pub(super) fn check_by_policy(
    policy: HealthCheckPolicy,
    traffic: TrafficPolicy,
    health_check_node_port: u16,
) -> HealthCheck {
    let healthz = |port| HealthCheck {
        probe: HealthProbe::Http {
            path: "/healthz".to_owned(),
        },
        port: Some(port),
        ..HealthCheck::tcp()
    };
    match (policy, traffic) {
        (HealthCheckPolicy::NodePort | HealthCheckPolicy::Off, _)
        | (HealthCheckPolicy::LocalAware, TrafficPolicy::Cluster) => HealthCheck::tcp(),
        (HealthCheckPolicy::KubeProxy, TrafficPolicy::Cluster) => healthz(10256),
        (HealthCheckPolicy::LocalAware | HealthCheckPolicy::KubeProxy, TrafficPolicy::Local) => {
            healthz(health_check_node_port)
        }
    }
}
