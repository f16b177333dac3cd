//! What a Service asks of this cloud, in the cloud's own words. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{self as api, HealthProbe, IpFamily, LoadBalancerSpec, TargetBy};
use cloudkeel_toolkit::{
    AnnotationReader, DesiredTargets, address_of, balancer_name, instance_of, labels_of_new,
};
use ipnet::IpNet;

use super::{Facts, OWNER};
use crate::annotations::{PROTECTED, TYPE};
use crate::id::LocalId;
use crate::wire::{
    Affinity, Algorithm, HealthCheck, Listener, NewBalancer, Probe, Protocol, ProxyProtocol,
    Target, TargetAt, TargetState,
};

/// A balancer as it should be. `None` leaves a thing as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) internal: bool,
    pub(super) families: BTreeSet<IpFamily>,
    pub(super) address: Option<IpAddr>,
    pub(super) hostname: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) proxy_protocol: Option<ProxyProtocol>,
    pub(super) source_ranges: BTreeSet<IpNet>,
    pub(super) affinity: Option<Affinity>,
    pub(super) protected: Option<bool>,
    pub(super) listeners: Vec<Listener>,
    pub(super) targets: DesiredTargets<TargetAt>,
    /// What the cloud cannot do, so that nothing can be planned.
    pub(super) impossible: Vec<String>,
}

impl Desired {
    pub(super) fn of(spec: &LoadBalancerSpec, facts: &Facts) -> Self {
        let mut reader = AnnotationReader::new(&spec.balancer_ref.annotations, ());
        let (kind, protected) = (reader.get(&TYPE), reader.get(&PROTECTED));
        let options = &spec.options;
        let mut families: BTreeSet<_> = spec.families.iter().copied().collect();
        if families.is_empty() {
            families.insert(IpFamily::V4);
        }
        if !facts.features.dual_stack {
            families.retain(|family| spec.families.first().is_none_or(|first| first == family));
        }
        let mut impossible: Vec<_> = reader.into_unread().messages().collect();
        Self {
            name: balancer_name(spec),
            kind: kind.or_else(|| options.size.clone()),
            internal: options.internal.unwrap_or(false),
            families,
            address: spec.address,
            hostname: options.hostname.clone(),
            algorithm: options.algorithm.map_or_else(Algorithm::default, algorithm),
            proxy_protocol: options.proxy_protocol.flatten().map(proxy_protocol),
            source_ranges: spec.source_ranges.iter().map(IpNet::trunc).collect(),
            affinity: affinity(spec.affinity),
            protected,
            listeners: listeners(spec, facts, &mut impossible),
            targets: targets(spec, facts),
            impossible,
        }
    }

    /// Leaves machines out that the cloud does not know.
    pub(super) fn leave_out(&mut self, unknown: &BTreeSet<u64>) {
        for id in unknown {
            if self
                .targets
                .places
                .remove(&TargetAt::Machine(*id))
                .is_some()
            {
                let why = "the cloud does not know its machine".to_owned();
                self.targets.unresolved.insert(format!("machine {id}"), why);
            }
        }
    }

    /// What to ask for if there is no balancer yet.
    pub(super) fn new_balancer(&self, spec: &LoadBalancerSpec, facts: &Facts) -> NewBalancer {
        let cluster = facts.cluster.as_deref();
        let labels = labels_of_new(&spec.balancer_ref);
        // A Node that is leaving is not worth joining.
        let serving = self.targets.by_node().into_iter();
        let serving = serving.filter(|(_, target)| target.state == api::TargetState::Serving);
        let mut serving: Vec<_> = serving.take(facts.target_limit()).collect();
        serving.sort_unstable_by_key(|(at, _)| **at);
        let serving = serving.into_iter();
        let listeners = self.listeners.iter().take(facts.listener_limit());
        let state = TargetState::Serving;
        NewBalancer {
            labels: OWNER.added(&labels, &spec.balancer_ref, cluster),
            name: self.name.clone(),
            kind: self.kind.clone(),
            internal: self.internal,
            families: self.families.clone(),
            address: self.address,
            hostname: self.hostname.clone(),
            algorithm: self.algorithm,
            proxy_protocol: self.proxy_protocol,
            source_ranges: self.source_ranges.clone(),
            affinity: self.affinity,
            protected: self.protected.unwrap_or(false),
            listeners: listeners.cloned().collect(),
            targets: serving.map(|(at, _)| Target { at: *at, state }).collect(),
        }
    }
}

/// The wanted targets. Where the cloud cannot drain, a leaving one serves until it is removed.
pub(super) fn targets(spec: &LoadBalancerSpec, facts: &Facts) -> DesiredTargets<TargetAt> {
    let resolve = |target: &api::Target| place(target, &spec.families, facts);
    let mut targets = DesiredTargets::resolve(spec, resolve);
    if !facts.features.drain {
        let places = targets.places.values_mut();
        places.for_each(|target| target.state = api::TargetState::Serving);
    }
    targets
}

fn place(target: &api::Target, families: &[IpFamily], facts: &Facts) -> Result<TargetAt, String> {
    let node = &target.node;
    match target.by {
        TargetBy::Machine => {
            let machine = instance_of(target, |id| LocalId::read_in(&facts.project, id));
            machine.map(TargetAt::Machine)
        }
        TargetBy::Address if !facts.features.targets_by_address => {
            Err("this cloud only takes machines as targets".to_owned())
        }
        TargetBy::Address => {
            let address = address_of(node, families).map(TargetAt::Ip);
            address.ok_or_else(|| "it has no address".to_owned())
        }
    }
}

/// The ports that can be served; the others are impossible.
fn listeners(
    spec: &LoadBalancerSpec,
    facts: &Facts,
    impossible: &mut Vec<String>,
) -> Vec<Listener> {
    let mut listeners = Vec::with_capacity(spec.listeners.len());
    for wanted in &spec.listeners {
        let (protocol, possible) = match wanted.protocol {
            api::Protocol::Tcp => (Protocol::Tcp, true),
            api::Protocol::Udp => (Protocol::Udp, facts.features.udp),
            api::Protocol::Sctp => (Protocol::Sctp, facts.features.sctp),
        };
        let (port, node_port) = (wanted.port, wanted.node_port);
        match node_port {
            _ if !possible => impossible.push(format!(
                "port {port}: this cloud cannot balance {}",
                wanted.protocol
            )),
            None => impossible.push(format!(
                "port {port} has no node port: set allocateLoadBalancerNodePorts to true"
            )),
            Some(target_port) => listeners.push(Listener {
                protocol,
                port,
                target_port,
                health_check: health_check(&wanted.health_check),
            }),
        }
    }
    listeners.sort();
    let protocols: BTreeSet<_> = listeners.iter().map(|listener| listener.protocol).collect();
    if protocols.len() > 1 && !facts.features.mixed_protocols {
        let why = "this cloud cannot mix protocols on one load balancer";
        impossible.push(why.to_owned());
    }
    listeners
}

/// What is not said is the cloud's own number, so that taking an annotation away takes its effect
/// away too.
fn health_check(check: &api::HealthCheck) -> HealthCheck {
    let usual = HealthCheck::default();
    HealthCheck {
        probe: match &check.probe {
            HealthProbe::Tcp => Probe::Tcp,
            HealthProbe::Http { path } => Probe::Http { path: path.clone() },
            HealthProbe::Https { path } => Probe::Https { path: path.clone() },
            HealthProbe::UdpConnect => Probe::Udp,
            HealthProbe::Sctp => Probe::Sctp,
        },
        port: check.port,
        interval_seconds: check.interval.map_or(usual.interval_seconds, whole_seconds),
        timeout_seconds: check.timeout.map_or(usual.timeout_seconds, whole_seconds),
        retries: check.unhealthy_threshold.unwrap_or(usual.retries),
    }
}

/// The cloud counts in whole seconds, of which there is at least one.
fn whole_seconds(duration: Duration) -> u32 {
    let rounded_up = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    u32::try_from(rounded_up).unwrap_or(u32::MAX).max(1)
}

const fn algorithm(algorithm: api::Algorithm) -> Algorithm {
    match algorithm {
        api::Algorithm::RoundRobin => Algorithm::RoundRobin,
        api::Algorithm::LeastConnections => Algorithm::LeastConnections,
        api::Algorithm::SourceIp => Algorithm::SourceIp,
    }
}

const fn proxy_protocol(version: api::ProxyProtocol) -> ProxyProtocol {
    match version {
        api::ProxyProtocol::V1 => ProxyProtocol::V1,
        api::ProxyProtocol::V2 => ProxyProtocol::V2,
    }
}

fn affinity(affinity: api::Affinity) -> Option<Affinity> {
    match affinity {
        api::Affinity::None => None,
        api::Affinity::ClientIp { timeout } => Some(Affinity {
            seconds: timeout.as_secs(),
        }),
    }
}
