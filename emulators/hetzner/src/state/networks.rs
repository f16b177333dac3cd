//! Addresses in networks.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::{Network, Project};
use crate::refusal::Refusal;

/// The address that a server or a balancer asks of a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressRequest<'a> {
    /// The network zone of the server or balancer.
    pub(crate) zone: &'a str,
    /// This very address.
    pub(crate) ip: Option<Ipv4Addr>,
    /// Any address of this subnet.
    pub(crate) ip_range: Option<Ipv4Net>,
}

/// The first address of a range, which is its router.
pub(crate) fn first_address(range: Ipv4Net) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(range.network()).wrapping_add(1))
}

impl Network {
    /// Whether an address is taken by the network itself.
    fn is_reserved(&self, ip: Ipv4Addr) -> bool {
        let ends = |range: Ipv4Net| ip == range.network() || ip == range.broadcast();
        ip == first_address(self.ip_range)
            || ip == Ipv4Addr::new(172, 31, 1, 1)
            || ends(self.ip_range)
            || self.subnets.iter().any(|subnet| ends(subnet.ip_range))
    }
}

impl Project {
    /// The addresses of a network that are taken, or will be when an action ends.
    fn taken_in(&self, network: u64) -> BTreeSet<Ipv4Addr> {
        let servers = self.servers.iter().flat_map(|(_, server)| {
            let nets = server.private_net.iter();
            nets.filter(|net| net.network == network)
                .flat_map(|net| net.alias_ips.iter().copied().chain([net.ip]))
                .collect::<Vec<_>>()
        });
        let balancers = self.balancers.iter().filter_map(|(_, balancer)| {
            let (there, ip) = balancer.private_net?;
            (there == network).then_some(ip)
        });
        let reserved = self.reserved.values();
        let reserved = reserved.filter(|(there, _)| *there == network);
        servers
            .chain(balancers)
            .chain(reserved.map(|(_, ip)| *ip))
            .collect()
    }

    /// An address in a network that fits a request.
    pub(crate) fn find_address(
        &self,
        network: &Network,
        request: AddressRequest<'_>,
    ) -> Result<Ipv4Addr, Refusal> {
        let subnets = network.subnets.iter();
        let mut ranges = subnets
            .filter(|subnet| subnet.kind != "vswitch" && subnet.network_zone == request.zone)
            .map(|subnet| subnet.ip_range)
            .filter(|range| request.ip_range.is_none_or(|wanted| wanted == *range));
        let taken = self.taken_in(network.id);
        let is_free = |ip: &Ipv4Addr| !taken.contains(ip) && !network.is_reserved(*ip);
        if let Some(ip) = request.ip {
            let here = ranges.any(|range| range.contains(&ip));
            return if here && is_free(&ip) {
                Ok(ip)
            } else {
                Err(Refusal::new(
                    "ip_not_available",
                    format!("{ip} is not available in network {}", network.id),
                ))
            };
        }
        let mut free = ranges.flat_map(|range| range.hosts()).filter(is_free);
        free.next().ok_or_else(|| {
            Refusal::new(
                "no_subnet_available",
                format!("no subnet of network {} has an address left", network.id),
            )
        })
    }
}
