//! Which ports of Nodes have to be open for Services, as firewalls and security groups say it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{Protocol, ServiceFacts};
use ipnet::IpNet;

/// Ports of Nodes, and from where they are reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenPorts(BTreeMap<(Protocol, u16), PortSource>);

/// From where a port is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSource {
    /// From anywhere.
    Anywhere,
    /// Only from the load balancers of these IDs.
    Balancers(BTreeSet<String>),
}

impl OpenPorts {
    /// Opens a port to the load balancer of this ID, or to all. What is open to all stays so.
    pub fn open(&mut self, protocol: Protocol, port: u16, balancer: Option<&String>) {
        let none = || PortSource::Balancers(BTreeSet::new());
        let source = self.0.entry((protocol, port)).or_insert_with(none);
        match (&mut *source, balancer) {
            (PortSource::Balancers(balancers), Some(id)) => _ = balancers.insert(id.clone()),
            (PortSource::Anywhere, Some(_)) => {}
            (_, None) => *source = PortSource::Anywhere,
        }
    }

    /// Opens the node ports of a Service to all.
    pub fn open_node_ports(&mut self, service: &ServiceFacts) {
        for port in &service.ports {
            if let Some(node_port) = port.node_port {
                self.open(port.protocol, node_port, None);
            }
        }
    }

    /// Opens the ports of a Service themselves to all, where a load balancer passes packets on as they are.
    pub fn open_service_ports(&mut self, service: &ServiceFacts) {
        for port in &service.ports {
            self.open(port.protocol, port.port, None);
        }
    }
}

impl IntoIterator for OpenPorts {
    type Item = ((Protocol, u16), PortSource);
    type IntoIter = std::collections::btree_map::IntoIter<(Protocol, u16), PortSource>;

    /// By protocol and port.
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Ranges of ports, in which those that touch each other are one. They are in order.
///
/// ```
/// # use cloudkeel_toolkit::joined_ports;
/// assert_eq!(joined_ports([(80, 80), (81, 90), (443, 443)]), [(80, 90), (443, 443)]);
/// ```
pub fn joined_ports(ranges: impl IntoIterator<Item = (u16, u16)>) -> Vec<(u16, u16)> {
    let mut joined: Vec<(u16, u16)> = Vec::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(from) => *last = to,
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// The same for networks: as few as hold exactly the same addresses.
///
/// ```
/// # use cloudkeel_toolkit::joined_networks;
/// let networks = ["10.0.0.0/25", "10.0.0.128/25", "10.1.0.0/16"].map(|text| text.parse().unwrap());
/// assert_eq!(joined_networks(&networks).len(), 2);
/// ```
pub fn joined_networks(networks: &[IpNet]) -> Vec<IpNet> {
    IpNet::aggregate(&networks.to_vec())
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{ServicePort, ServiceRef, ServiceType, TrafficPolicy};

    use super::*;

    #[test]
    fn a_port_is_open_to_its_balancers_unless_it_is_open_to_all() {
        let [one, other] = ["lb-1".to_owned(), "lb-2".to_owned()];
        let both = PortSource::Balancers([one.clone(), other.clone()].into());
        for (case, sources, expected) in [
            ("to two", vec![Some(&one), Some(&other)], both),
            (
                "to all, then one",
                vec![None, Some(&one)],
                PortSource::Anywhere,
            ),
            (
                "to one, then all",
                vec![Some(&one), None],
                PortSource::Anywhere,
            ),
        ] {
            let mut open = OpenPorts::default();
            for balancer in sources {
                open.open(Protocol::Tcp, 10_256, balancer);
            }
            let found: Vec<_> = open.into_iter().collect();
            assert_eq!(found, [((Protocol::Tcp, 10_256), expected)], "{case}");
        }
    }

    #[test]
    fn a_service_opens_its_node_ports_or_its_own() {
        let port = |protocol, port, node_port| ServicePort {
            name: None,
            protocol,
            port,
            node_port,
        };
        let service = ServiceFacts {
            service: ServiceRef {
                namespace: "ns".to_owned(),
                name: "web".to_owned(),
                uid: "u-1".to_owned(),
            },
            service_type: ServiceType::NodePort,
            class: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            ports: vec![
                port(Protocol::Udp, 53, Some(30_053)),
                port(Protocol::Tcp, 80, None),
            ],
            traffic_policy: TrafficPolicy::Cluster,
            health_check_node_port: None,
            source_ranges: Vec::new(),
            ingress: Vec::new(),
            is_deleting: false,
        };
        let ports = |open: OpenPorts| {
            let ports = open
                .into_iter()
                .map(|((protocol, port), _)| (protocol, port));
            ports.collect::<Vec<_>>()
        };
        let (mut of_nodes, mut of_service) = (OpenPorts::default(), OpenPorts::default());
        of_nodes.open_node_ports(&service);
        assert_eq!(ports(of_nodes), [(Protocol::Udp, 30_053)]);
        of_service.open_service_ports(&service);
        assert_eq!(
            ports(of_service),
            [(Protocol::Tcp, 80), (Protocol::Udp, 53)]
        );
    }
}
