//! Balancers as this library shows them, and how they are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cloudkeel_provider_local::wire;
use cloudkeel_toolkit::CloudBalancer;
use serde_json::{Value, json};

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
                    wire::TargetAt::Machine(id) => Some(id),
                    wire::TargetAt::Ip(_) => None,
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

    pub(crate) fn listeners(&self) -> Vec<Value> {
        let ports = self.ports.iter();
        ports
            .map(|(port, to)| json!({"protocol": "tcp", "port": port, "targetPort": to}))
            .collect()
    }

    pub(crate) fn as_new(&self) -> Value {
        let targets = self.targets.iter();
        json!({
            "name": self.name,
            "labels": self.labels,
            "listeners": self.listeners(),
            "targets": targets.map(|id| json!({"machine": id})).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn target_change(&self, want: &Self) -> Value {
        let machines = |ids: BTreeSet<&u64>| -> Vec<Value> {
            ids.into_iter().map(|id| json!({"machine": id})).collect()
        };
        json!({
            "add": machines(want.targets.difference(&self.targets).collect()),
            "remove": machines(self.targets.difference(&want.targets).collect()),
        })
    }
}
