//! What the Services have taken: node ports and cluster addresses. It follows from what is stored, so nothing has to
//! be given back.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::object::{at, items, texts};

#[derive(Default)]
pub(crate) struct Allocated {
    /// By how many Services each is held; it is one but for what was forced.
    ports: BTreeMap<u64, usize>,
    addresses: BTreeMap<String, usize>,
}

impl Allocated {
    pub(crate) fn has_port(&self, port: u64) -> bool {
        self.ports.contains_key(&port)
    }

    pub(crate) fn has_address(&self, address: &str) -> bool {
        self.addresses.contains_key(address)
    }

    /// A Service changed, came or went.
    pub(super) fn follow(&mut self, before: Option<&Value>, after: Option<&Value>) {
        if let Some(service) = before {
            for port in node_ports(service) {
                release(&mut self.ports, &port);
            }
            for address in addresses(service) {
                release(&mut self.addresses, &address);
            }
        }
        if let Some(service) = after {
            for port in node_ports(service) {
                *self.ports.entry(port).or_default() += 1;
            }
            for address in addresses(service) {
                *self.addresses.entry(address).or_default() += 1;
            }
        }
    }
}

fn release<K: Ord>(held: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = held.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            held.remove(key);
        }
    }
}

/// The node ports of a Service, the one for health checks among them.
pub(crate) fn node_ports(service: &Value) -> BTreeSet<u64> {
    let ports = items(service, &["spec", "ports"]).iter();
    let health = at(service, &["spec", "healthCheckNodePort"]).as_u64();
    let ports = ports.filter_map(|port| port["nodePort"].as_u64());
    ports.chain(health).collect()
}

fn addresses(service: &Value) -> Vec<String> {
    texts(service, &["spec", "clusterIPs"])
}
