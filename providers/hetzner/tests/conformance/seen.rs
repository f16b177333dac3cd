//! Hetzner's balancers in neutral words.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{Algorithm, HealthCheck, HealthProbe, Protocol, ProxyProtocol, TargetState};
use cloudkeel_testkit::conformance::{SeenBalancer, SeenListener};
use cloudkeel_testkit::hetzner::{
    self, Destination, LOAD_BALANCER_TYPES, LoadBalancer, LoadBalancerType,
};

pub(crate) fn balancer(have: &LoadBalancer, servers: &BTreeMap<u64, String>) -> SeenBalancer {
    let place = |to: &Destination| match to {
        Destination::Server(id) => servers.get(id).cloned().unwrap_or_else(|| id.to_string()),
        Destination::Ip(ip) => ip.to_string(),
        Destination::LabelSelector(selector) => selector.clone(),
    };
    let targets = have.targets.iter();
    let mut kinds = LOAD_BALANCER_TYPES.iter();
    let kind = kinds.find(|kind| kind.id == have.kind);
    SeenBalancer {
        listeners: have.services.iter().map(listener).collect(),
        targets: targets
            .map(|target| (place(&target.to), TargetState::Serving))
            .collect(),
        addresses: addresses(have),
        internal: !have.public_interface,
        algorithm: Some(match have.algorithm.as_str() {
            "least_connections" => Algorithm::LeastConnections,
            _ => Algorithm::RoundRobin,
        }),
        // Hetzner speaks version 2.
        proxy_protocol: have
            .services
            .iter()
            .any(|service| service.proxyprotocol)
            .then_some(ProxyProtocol::V2),
        size: kind.map(|kind: &LoadBalancerType| kind.name.to_string()),
        ..SeenBalancer::new(have.id.to_string(), have.name.clone())
    }
}

fn addresses(have: &LoadBalancer) -> Vec<IpAddr> {
    let public = have.public.iter().filter(|_| have.public_interface);
    let public = public.flat_map(|public| [public.ipv4.into(), public.ipv6.into()]);
    let private = have.private_net.iter().map(|(_, ip)| (*ip).into());
    public.chain(private).collect()
}

fn listener(service: &hetzner::Service) -> SeenListener {
    let check = &service.health_check;
    let path = check.http.as_ref().map(|http| http.path.clone());
    let path = path.unwrap_or_default();
    let seconds = |seconds: u32| Some(Duration::from_secs(seconds.into()));
    SeenListener {
        protocol: Protocol::Tcp,
        port: service.listen_port,
        node_port: service.destination_port,
        health_check: HealthCheck {
            probe: match check.protocol.as_str() {
                "http" => HealthProbe::Http { path },
                "https" => HealthProbe::Https { path },
                _ => HealthProbe::Tcp,
            },
            port: Some(check.port),
            interval: seconds(check.interval),
            timeout: seconds(check.timeout),
            unhealthy_threshold: Some(check.retries),
            healthy_threshold: None,
        },
    }
}
