//! Services of a balancer as they should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{self as api, HealthProbe, LoadBalancerSpec, Protocol};
use cloudkeel_toolkit::{HasListenerKey, ListenerKey};

use super::desired::{Desired, LIMITS};
use super::owner_labels::Aspect;
use crate::annotations::ServiceProtocol;
use crate::wire::{Service, ServiceCheck, ServiceCheckHttp, ServiceHttp};

/// The ports that the cloud cannot serve.
pub(super) fn unsupported(spec: &LoadBalancerSpec) -> impl Iterator<Item = &api::Listener> {
    let listeners = spec.listeners.iter();
    listeners.filter(|listener| listener.protocol != Protocol::Tcp)
}

/// The ports that it can.
pub(super) fn supported(spec: &LoadBalancerSpec) -> impl Iterator<Item = &api::Listener> {
    let listeners = spec.listeners.iter();
    listeners.filter(|listener| listener.protocol == Protocol::Tcp)
}

/// The TCP ports that lead nowhere, and what to do about it.
pub(super) fn without_node_port(spec: &LoadBalancerSpec) -> impl Iterator<Item = String> + '_ {
    let nowhere = supported(spec).filter(|listener| listener.node_port.is_none());
    nowhere.map(|listener| {
        format!(
            "port {} has no node port: set allocateLoadBalancerNodePorts to true",
            listener.port
        )
    })
}

impl HasListenerKey for Service {
    fn listener_key(&self) -> ListenerKey {
        ListenerKey::tcp(self.listen_port)
    }
}

/// One service for each TCP port that has a node port. `certificates` are those of HTTPS services, if any
/// are wanted; `restored` is what goes back to the cloud's own values unless it is asked for.
pub(super) fn desired_services(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    certificates: Option<&BTreeSet<u64>>,
    restored: &BTreeSet<Aspect>,
) -> Vec<Service> {
    let off = restored.contains(&Aspect::Proxy).then_some(false);
    let service = |listener: &api::Listener| {
        let destination_port = listener.node_port?;
        let mut health_check = check(asked, listener, destination_port);
        if restored.contains(&Aspect::Check) {
            use_defaults(&mut health_check);
        }
        Some(Service {
            protocol: asked.protocol.as_str().to_owned(),
            listen_port: listener.port,
            destination_port,
            proxyprotocol: asked.proxy_protocol.or(off),
            http: http(asked, certificates),
            health_check,
        })
    };
    supported(spec).filter_map(service).collect()
}

fn http(asked: &Desired, certificates: Option<&BTreeSet<u64>>) -> Option<ServiceHttp> {
    let secure = asked.protocol == ServiceProtocol::Https;
    let http = ServiceHttp {
        certificates: certificates.filter(|_| secure).cloned(),
        ..asked.http.clone()
    };
    let is_said = asked.protocol != ServiceProtocol::Tcp && http != ServiceHttp::default();
    is_said.then_some(http)
}

/// Without annotations, a connection to the node port, also of HTTP services and for the policy `Local`.
fn check(asked: &Desired, listener: &api::Listener, node_port: u16) -> ServiceCheck {
    let (own, neutral) = (&asked.check, &listener.health_check);
    let (probe, path) = match &neutral.probe {
        HealthProbe::Http { path } => (ServiceProtocol::Http, Some(path.clone())),
        HealthProbe::Https { path } => (ServiceProtocol::Https, Some(path.clone())),
        // The cloud knows no other.
        HealthProbe::Tcp | HealthProbe::UdpConnect | HealthProbe::Sctp => {
            (ServiceProtocol::Tcp, None)
        }
    };
    let protocol = own.protocol.unwrap_or(match probe {
        ServiceProtocol::Tcp if own.is_custom() => asked.protocol,
        probe => probe,
    });
    let details = own.http.clone();
    let details = if own.is_custom() {
        details
    } else {
        ServiceCheckHttp::default()
    };
    let http = ServiceCheckHttp {
        path: details.path.clone().or(path),
        ..details
    };
    ServiceCheck {
        protocol: protocol.as_str().to_owned(),
        port: own.port.or(neutral.port).unwrap_or(node_port),
        interval: own.interval.or(LIMITS.interval(neutral)),
        timeout: own.timeout.or(LIMITS.timeout(neutral)),
        retries: own.retries.or(LIMITS.retries(neutral)),
        http: (protocol != ServiceProtocol::Tcp).then_some(http),
    }
}

/// Asks for the cloud's own numbers where nothing else is asked for.
fn use_defaults(check: &mut ServiceCheck) {
    check.interval.get_or_insert(15);
    check.timeout.get_or_insert(10);
    check.retries.get_or_insert(3);
    if let Some(http) = &mut check.http {
        http.path.get_or_insert_with(|| "/".to_owned());
    }
}
