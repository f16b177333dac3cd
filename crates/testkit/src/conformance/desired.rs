//! The cluster, its Services and what they ask for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cloudkeel_api::{
    BalancerRef, ClusterIdentity, HealthCheck, HealthCheckPolicy, HealthProbe, Listener,
    LoadBalancerSpec, NodeFacts, Protocol, ServiceRef, Target, TrafficPolicy,
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

/// The Service of this name.
pub(super) fn balancer_ref(service: &str) -> BalancerRef {
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: service.to_owned(),
        uid: uid_of(service),
    };
    BalancerRef::of(cluster(), service)
}

/// A UID of the form that the API server gives: some clouds keep it in the name of a balancer.
fn uid_of(service: &str) -> String {
    let mut hasher = DefaultHasher::new();
    service.hash(&mut hasher);
    let digits = format!("{:016x}", hasher.finish());
    let (first, last) = digits.split_at(8);
    format!("{first}-0000-0000-0000-0000{last}")
}

/// What the Service `web` asks for: these TCP ports, and these Nodes as targets.
pub(super) fn spec(ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    spec_of("web", ports, nodes)
}

/// The same for another Service.
pub(super) fn spec_of(service: &str, ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let listeners = ports.iter().map(|port| listener(Protocol::Tcp, *port));
    LoadBalancerSpec {
        listeners: listeners.collect(),
        targets: nodes.iter().map(target).collect(),
        ..LoadBalancerSpec::plain(balancer_ref(service))
    }
}

fn target(node: &NodeFacts) -> (String, Target) {
    (node.name.clone(), Target::machine(node.clone()))
}

pub(super) fn listener(protocol: Protocol, port: u16) -> Listener {
    let probe = match protocol {
        Protocol::Tcp => HealthProbe::Tcp,
        Protocol::Udp => HealthProbe::UdpConnect,
        Protocol::Sctp => HealthProbe::Sctp,
    };
    Listener {
        protocol,
        health_check: HealthCheck {
            probe,
            ..HealthCheck::tcp()
        },
        ..Listener::tcp(port, 30_000 + port % 1_000)
    }
}

/// The check that the framework gives a TCP port by the provider's policy.
pub(super) fn check_by_policy(
    policy: &HealthCheckPolicy,
    traffic: TrafficPolicy,
    health_check_node_port: u16,
) -> HealthCheck {
    let http = |port, path: &str| HealthCheck {
        probe: HealthProbe::Http {
            path: path.to_owned(),
        },
        port: Some(port),
        ..HealthCheck::tcp()
    };
    match (policy, traffic) {
        (HealthCheckPolicy::NodePort | HealthCheckPolicy::Off, _)
        | (HealthCheckPolicy::LocalAware, TrafficPolicy::Cluster) => HealthCheck::tcp(),
        (HealthCheckPolicy::KubeProxy { port, path }, TrafficPolicy::Cluster) => http(*port, path),
        (
            HealthCheckPolicy::LocalAware | HealthCheckPolicy::KubeProxy { .. },
            TrafficPolicy::Local,
        ) => http(health_check_node_port, "/healthz"),
    }
}
