//! The addresses of a server, in the order of the Go CCM. Pure.

use std::net::IpAddr;

use cloudkeel_api::{AddressKind, NodeAddress};
use ipnet::IpNet;

use crate::config::Networking;
use crate::wire::compute::{Server, ServerAddress};
use crate::wire::network::{Network, Port};

const FLOATING: &str = "floating";
const FIXED: &str = "fixed";

/// The addresses that a Node gets.
pub(super) fn of_server(server: &Server, rules: &Networking) -> Vec<NodeAddress> {
    let mut found = Found {
        addresses: Vec::new(),
        ipv6_disabled: rules.ipv6_disabled,
    };
    let active = server.ports.iter().filter(|port| port.status == "ACTIVE");
    for fixed in active.flat_map(|port| &port.fixed_ips) {
        found.add(AddressKind::InternalIp, fixed.ip_address);
    }
    for access in [&server.access_ipv4, &server.access_ipv6] {
        if let Ok(ip) = access.parse() {
            found.add(AddressKind::ExternalIp, ip);
        }
    }
    if let Some(name) = server
        .metadata
        .get("hostname")
        .filter(|name| !name.is_empty())
    {
        found.addresses.push(NodeAddress::hostname(name));
    }
    for (network, addresses) in &server.addresses {
        for address in addresses {
            found.add_of_network(network, address, rules);
        }
    }
    sort(&mut found.addresses, &rules.address_sort_order);
    found.addresses
}

/// Adds the addresses of ports inside of trunks to those of their networks.
pub(super) fn add_sub_ports(server: &mut Server, ports: &[Port], networks: &[Network]) {
    for port in ports {
        let Some(network) = networks
            .iter()
            .find(|network| network.id == port.network_id)
        else {
            continue;
        };
        let fixed = port.fixed_ips.iter().map(|fixed| ServerAddress {
            addr: fixed.ip_address,
            kind: Some(FIXED.to_owned()),
        });
        server
            .addresses
            .entry(network.name.clone())
            .or_default()
            .extend(fixed);
    }
}

struct Found {
    addresses: Vec<NodeAddress>,
    ipv6_disabled: bool,
}

impl Found {
    fn add(&mut self, kind: AddressKind, ip: IpAddr) {
        let address = NodeAddress::new(kind, ip.to_string());
        let is_left_out = self.ipv6_disabled && ip.is_ipv6();
        if !is_left_out && !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }

    fn remove(&mut self, ip: IpAddr) {
        self.addresses.retain(|address| address.ip() != Some(ip));
    }

    fn add_of_network(&mut self, network: &String, address: &ServerAddress, rules: &Networking) {
        let internal = &rules.internal_networks;
        if address.kind.as_deref() == Some(FLOATING) {
            self.add(AddressKind::ExternalIp, address.addr);
        } else if rules.public_networks.contains(network) {
            self.remove(address.addr);
            self.add(AddressKind::ExternalIp, address.addr);
        } else if internal.is_empty() || internal.contains(network) {
            self.add(AddressKind::InternalIp, address.addr);
        } else {
            self.remove(address.addr);
        }
    }
}

/// Addresses in the networks of this list come first, in its order; inside of one network, the lowest first.
fn sort(addresses: &mut [NodeAddress], order: &[String]) {
    let read = |text: &String| {
        let network: Option<IpNet> = text.trim().parse().ok();
        if network.is_none() {
            tracing::warn!(cidr = %text, "address-sort-order has an item that is no network; it is skipped");
        }
        network
    };
    let networks: Vec<IpNet> = order.iter().filter_map(read).collect();
    addresses.sort_by_key(|address| {
        let ip = address.ip();
        let place = ip.and_then(|ip| networks.iter().position(|network| network.contains(&ip)));
        // Those in no network keep their order behind the others.
        place.map_or((networks.len(), None), |place| (place, ip))
    });
}
