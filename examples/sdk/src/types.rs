//! Balancers as this library shows them, and how they are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cloudkeel_provider_local::wire::{self, TargetAt};
use cloudkeel_toolkit::CloudBalancer;
use serde::Serialize;

/// A balancer of TCP ports to machines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Balancer {
    /// Never used twice.
    pub id: u64,
    /// Unique in the project.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Where it listens, and where its targets do.
    pub ports: BTreeMap<u16, u16>,
    /// Machines.
    pub targets: BTreeSet<u64>,
    /// Where clients find it.
    pub addresses: Vec<IpAddr>,
    /// It must not be deleted.
    pub protected: bool,
}

pub(crate) const fn id(balancer: &wire::Balancer) -> u64 {
    balancer.id
}

impl From<wire::Balancer> for Balancer {
    fn from(balancer: wire::Balancer) -> Self {
        let listeners = balancer.listeners.iter();
        let targets = balancer.targets.iter();
        Self {
            ports: listeners.map(|l| (l.port, l.target_port)).collect(),
            targets: targets
                .filter_map(|target| match target.at {
                    TargetAt::Machine(id) => Some(id),
                    TargetAt::Ip(_) => None,
                })
                .collect(),
            id: balancer.id,
            name: balancer.name,
            labels: balancer.labels,
            addresses: balancer.addresses,
            protected: balancer.protected,
        }
    }
}

impl CloudBalancer for Balancer {
    const NOUN: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Balancer {
    /// One that has nothing but a name.
    pub fn named(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    pub(crate) fn listeners(&self) -> Vec<Listener> {
        let ports = self.ports.iter();
        ports
            .map(|(port, target_port)| Listener {
                protocol: wire::Protocol::Tcp,
                port: *port,
                target_port: *target_port,
            })
            .collect()
    }

    pub(crate) fn as_new(&self) -> NewBalancer<'_> {
        NewBalancer {
            name: &self.name,
            labels: &self.labels,
            listeners: self.listeners(),
            targets: machines(&self.targets),
        }
    }

    pub(crate) fn target_change(&self, want: &Self) -> TargetChange {
        TargetChange {
            add: machines(want.targets.difference(&self.targets)),
            remove: machines(self.targets.difference(&want.targets)),
        }
    }
}

fn machines<'a>(ids: impl IntoIterator<Item = &'a u64>) -> Vec<TargetAt> {
    let ids = ids.into_iter();
    ids.map(|id| TargetAt::Machine(*id)).collect()
}

/// What the cloud is sent: bodies are types too, and say only what this library knows of.
#[derive(Serialize)]
pub(crate) struct NewBalancer<'a> {
    name: &'a str,
    labels: &'a BTreeMap<String, String>,
    listeners: Vec<Listener>,
    targets: Vec<TargetAt>,
}

/// Other labels.
#[derive(Serialize)]
pub(crate) struct LabelChange<'a> {
    pub(crate) labels: &'a BTreeMap<String, String>,
}

/// Other listeners.
#[derive(Serialize)]
pub(crate) struct ListenerChange {
    pub(crate) listeners: Vec<Listener>,
}

/// Where a balancer listens.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listener {
    protocol: wire::Protocol,
    port: u16,
    target_port: u16,
}

/// Other targets.
#[derive(Serialize)]
pub(crate) struct TargetChange {
    add: Vec<TargetAt>,
    remove: Vec<TargetAt>,
}
