//! What a Service asks of this cloud, in the cloud's own words. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{
    self as api, AddressKind, CloudError, HealthProbe, IpFamily, LoadBalancerSpec, TargetBy,
};
use ipnet::IpNet;

use super::Facts;
use super::marks::marked;
use crate::annotations::{PROTECTED, TYPE};
use crate::id::LocalId;
use crate::wire::{
    Affinity, Algorithm, HealthCheck, Listener, NewBalancer, Probe, Protocol, ProxyProtocol,
    Target, TargetAt, TargetState,
};

/// A balancer as it should be. `None` leaves a thing as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired {
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
    pub(super) targets: Targets,
}

/// The wanted targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Targets {
    /// Those that can be reached.
    pub(super) places: BTreeMap<TargetAt, TargetState>,
    /// Nodes that cannot be reached yet, and why.
    pub(super) unresolved: BTreeMap<String, String>,
}

/// The name that a Service's balancer has in the cloud.
pub(super) fn balancer_name(spec: &LoadBalancerSpec) -> String {
    let asked_for = spec.options.name.clone();
    asked_for.unwrap_or_else(|| spec.claim.service.default_balancer_name())
}

impl Desired {
    pub(super) fn of(spec: &LoadBalancerSpec, facts: &Facts) -> Result<Self, CloudError> {
        let annotations = &spec.claim.annotations;
        let options = &spec.options;
        let mut families: BTreeSet<_> = spec.families.iter().copied().collect();
        if families.is_empty() {
            families.insert(IpFamily::V4);
        }
        if !facts.features.dual_stack {
            families.retain(|family| spec.families.first().is_none_or(|first| first == family));
        }
        Ok(Self {
            name: balancer_name(spec),
            kind: TYPE.get(annotations)?.or_else(|| options.size.clone()),
            internal: options.internal.unwrap_or(false),
            families,
            address: spec.address,
            hostname: options.hostname.clone(),
            algorithm: options.algorithm.map_or_else(Algorithm::default, algorithm),
            proxy_protocol: options.proxy_protocol.flatten().map(proxy_protocol),
            source_ranges: spec.source_ranges.iter().map(IpNet::trunc).collect(),
            affinity: affinity(spec.affinity),
            protected: PROTECTED.get(annotations)?,
            listeners: listeners(spec, facts)?,
            targets: Targets::of(spec, facts),
        })
    }

    /// What to ask for if there is no balancer yet. Machines that the cloud does not know are left out.
    pub(super) fn new_balancer(
        self,
        spec: &LoadBalancerSpec,
        facts: &Facts,
        unknown: &BTreeSet<u64>,
    ) -> NewBalancer {
        let targets = self.targets.known(unknown).places;
        NewBalancer {
            labels: marked(&BTreeMap::new(), &spec.claim, facts.cluster.as_deref()),
            name: self.name,
            kind: self.kind,
            internal: self.internal,
            families: self.families,
            address: self.address,
            hostname: self.hostname,
            algorithm: self.algorithm,
            proxy_protocol: self.proxy_protocol,
            source_ranges: self.source_ranges,
            affinity: self.affinity,
            protected: self.protected.unwrap_or(false),
            listeners: self.listeners,
            // A node that is leaving is not worth joining.
            targets: targets
                .into_iter()
                .filter(|(_, state)| *state == TargetState::Serving)
                .map(|(at, state)| Target { at, state })
                .collect(),
        }
    }
}

impl Targets {
    pub(super) fn of(spec: &LoadBalancerSpec, facts: &Facts) -> Self {
        let mut targets = Self::default();
        for (name, target) in &spec.targets {
            match place(target, &spec.families, facts) {
                Ok(at) => {
                    let state = match target.state {
                        api::TargetState::Draining if facts.features.drain => TargetState::Draining,
                        api::TargetState::Draining | api::TargetState::Serving => {
                            TargetState::Serving
                        }
                    };
                    targets.places.insert(at, state);
                }
                Err(why) => {
                    targets.unresolved.insert(name.clone(), why);
                }
            }
        }
        targets
    }

    /// The same without machines that the cloud does not know.
    pub(super) fn known(mut self, unknown: &BTreeSet<u64>) -> Self {
        for id in unknown {
            if self.places.remove(&TargetAt::Machine(*id)).is_some() {
                let why = "the cloud does not know its machine".to_owned();
                self.unresolved.insert(format!("machine {id}"), why);
            }
        }
        self
    }
}

fn place(target: &api::Target, families: &[IpFamily], facts: &Facts) -> Result<TargetAt, String> {
    let node = &target.node;
    match target.by {
        TargetBy::Machine => {
            let id = node
                .provider_id
                .as_ref()
                .ok_or("it has no provider ID yet")?;
            let id = LocalId::read(id).map_err(|error| error.to_string())?;
            if id.project != facts.project {
                return Err(format!("{id} belongs to another project"));
            }
            Ok(TargetAt::Machine(id.machine))
        }
        TargetBy::Address if !facts.features.targets_by_address => {
            Err("this cloud only takes machines as targets".to_owned())
        }
        TargetBy::Address => {
            let families = families.iter().copied().chain([IpFamily::V4, IpFamily::V6]);
            let kinds = [AddressKind::InternalIp, AddressKind::ExternalIp];
            families
                .flat_map(|family| kinds.map(|kind| (kind, family)))
                .find_map(|(kind, family)| node.ip(kind, family))
                .map(TargetAt::Ip)
                .ok_or_else(|| "it has no address".to_owned())
        }
    }
}

fn listeners(spec: &LoadBalancerSpec, facts: &Facts) -> Result<Vec<Listener>, CloudError> {
    let refuse = |why: String| Err(CloudError::invalid("plan load balancer", why));
    let mut listeners = Vec::with_capacity(spec.listeners.len());
    for wanted in &spec.listeners {
        let (protocol, possible) = match wanted.protocol {
            api::Protocol::Tcp => (Protocol::Tcp, true),
            api::Protocol::Udp => (Protocol::Udp, facts.features.udp),
            api::Protocol::Sctp => (Protocol::Sctp, facts.features.sctp),
        };
        if !possible {
            let (protocol, port) = (wanted.protocol, wanted.port);
            return refuse(format!("port {port}: this cloud cannot balance {protocol}"));
        }
        let Some(target_port) = wanted.node_port else {
            return refuse(format!(
                "port {} has no node port: set allocateLoadBalancerNodePorts to true",
                wanted.port
            ));
        };
        listeners.push(Listener {
            protocol,
            port: wanted.port,
            target_port,
            health_check: health_check(&wanted.health_check),
        });
    }
    listeners.sort();
    let mixed = listeners.windows(2).any(|pair| match pair {
        [one, other] => one.protocol != other.protocol,
        _ => false,
    });
    if mixed && !facts.features.mixed_protocols {
        return refuse("this cloud cannot mix protocols on one load balancer".to_owned());
    }
    Ok(listeners)
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
