//! What is in a cloud, in neutral words.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{
    Algorithm, HealthCheck, Listener, LoadBalancerSpec, Protocol, ProxyProtocol, TargetState,
};
use ipnet::IpNet;

/// Something that a provider could leave behind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thing {
    /// Such as `balancer` or `security group`.
    pub kind: &'static str,
    /// Its ID or name.
    pub id: String,
}

/// A route as it really is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenRoute {
    /// Which network.
    pub destination: IpNet,
    /// The name of the machine that it leads to, else the cloud's word for the next hop.
    pub hop: String,
}

/// One port of a balancer, as it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenListener {
    /// Transport.
    pub protocol: Protocol,
    /// Where the balancer listens.
    pub port: u16,
    /// Where the targets listen.
    pub node_port: u16,
    /// How targets are checked. A check on the node port itself has that as its port.
    pub health_check: HealthCheck,
}

/// A balancer as it really is. What this cloud does not have stays empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenBalancer {
    /// The cloud's ID, as [`adopt`](cloudkeel_api::Claim::adopt) names it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its ports.
    pub listeners: Vec<SeenListener>,
    /// Its targets, by the name of a machine or by an address.
    pub targets: BTreeMap<String, TargetState>,
    /// Where clients find it.
    pub addresses: Vec<IpAddr>,
    /// Only reachable inside.
    pub internal: bool,
    /// Who may connect; empty means everybody.
    pub source_ranges: BTreeSet<IpNet>,
    /// For how long clients stick to a target.
    pub affinity: Option<Duration>,
    /// How connections are spread.
    pub algorithm: Option<Algorithm>,
    /// PROXY protocol towards the targets.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Its size or type.
    pub size: Option<String>,
}

impl SeenBalancer {
    /// An empty one, to fill in what the cloud has.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            listeners: Vec::new(),
            targets: BTreeMap::new(),
            addresses: Vec::new(),
            internal: false,
            source_ranges: BTreeSet::new(),
            affinity: None,
            algorithm: None,
            proxy_protocol: None,
            size: None,
        }
    }

    /// What does not depend on which cloud of the same kind it is in.
    pub(super) fn shape(mut self) -> Self {
        self.id.clear();
        self.addresses.clear();
        self.listeners.sort_by_key(|l| (l.protocol, l.port));
        self
    }

    /// What differs from the ports and targets of a wish, if anything.
    pub(super) fn misses(&self, spec: &LoadBalancerSpec) -> Result<(), String> {
        let have: BTreeSet<_> = self.listeners.iter().map(port_of).collect();
        let want: BTreeSet<_> = spec.listeners.iter().map(wanted_port).collect();
        if have != want {
            return Err(format!("its ports are {have:?}, wanted are {want:?}"));
        }
        let want: BTreeMap<_, _> = spec
            .targets
            .iter()
            .map(|(name, target)| (name.clone(), target.state))
            .collect();
        if self.targets != want {
            let have = &self.targets;
            return Err(format!("its targets are {have:?}, wanted are {want:?}"));
        }
        Ok(())
    }
}

const fn port_of(listener: &SeenListener) -> (Protocol, u16, u16) {
    (listener.protocol, listener.port, listener.node_port)
}

fn wanted_port(listener: &Listener) -> (Protocol, u16, u16) {
    let node_port = listener.node_port.unwrap_or(listener.port);
    (listener.protocol, listener.port, node_port)
}
