//! Which addresses a Node gets, and in which order. Pure.

use std::net::{IpAddr, Ipv6Addr};

use cloudkeel_api::{AddressKind, IpFamily, NodeAddress, NodeFacts};
use ipnet::Ipv6Net;

use crate::config::AddressFamily;
use crate::wire::{RobotServer, Server};

/// Name, IPv4, IPv6, and the address in the private network, which no family filters.
pub(super) fn of_cloud(
    server: &Server,
    family: AddressFamily,
    network: Option<u64>,
) -> Vec<NodeAddress> {
    let mut addresses = vec![NodeAddress::hostname(&server.name)];
    let public = &server.public_net;
    if family.has(IpFamily::V4)
        && let Some(ipv4) = &public.ipv4
        && !ipv4.ip.is_unspecified()
    {
        addresses.push(NodeAddress::external(ipv4.ip.into()));
    }
    if family.has(IpFamily::V6)
        && let Some(ipv6) = &public.ipv6
    {
        addresses.push(NodeAddress::external(first_of(ipv6.ip)));
    }
    let private = server.private_net.iter();
    let private = private.filter(|net| Some(net.network) == network);
    addresses.extend(private.map(|net| NodeAddress::internal(net.ip)));
    addresses
}

/// The address of a server in its own IPv6 network.
fn first_of(net: Ipv6Net) -> IpAddr {
    Ipv6Addr::from(u128::from(net.network()) | 1).into()
}

/// Name, IPv6, IPv4: the other way round than with cloud servers, and Nodes have it so already.
pub(super) fn of_robot(server: &RobotServer, family: AddressFamily) -> Vec<NodeAddress> {
    let mut addresses = vec![NodeAddress::hostname(&server.name)];
    let ipv6 = server.ipv6().filter(|_| family.has(IpFamily::V6));
    let ipv4 = server.ipv4().filter(|_| family.has(IpFamily::V4));
    addresses.extend(ipv6.into_iter().chain(ipv4).map(NodeAddress::external));
    addresses
}

/// The private addresses of a kubelet, of which Robot knows nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forwarded {
    /// Those that the Node keeps.
    pub(super) kept: Vec<NodeAddress>,
    /// Those that it does not, and why.
    pub(super) refused: Vec<String>,
}

pub(super) fn forwarded(
    listed: &[NodeAddress],
    node: &NodeFacts,
    family: AddressFamily,
) -> Forwarded {
    let mut forwarded = Forwarded {
        kept: Vec::new(),
        refused: Vec::new(),
    };
    let internal = node.addresses.iter();
    for address in internal.filter(|address| address.kind == AddressKind::InternalIp) {
        let text = &address.address;
        let refusal = match address.ip() {
            None => Some("is no IP address"),
            Some(ip) if !family.has(IpFamily::of(ip)) => Some("is of the wrong family"),
            Some(ip) if listed.iter().any(|listed| listed.ip() == Some(ip)) => {
                Some("is a public address of the server")
            }
            Some(_) => None,
        };
        match refusal {
            None if forwarded.kept.contains(address) => {}
            None => forwarded.kept.push(address.clone()),
            Some(why) => forwarded.refused.push(format!("{text} {why}")),
        }
    }
    forwarded
}
