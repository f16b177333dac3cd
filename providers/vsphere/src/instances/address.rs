//! Which of a machine's addresses are its Node's.

use std::net::IpAddr;

use cloudkeel_api::{IpFamily, NodeAddress};
use ipnet::IpNet;

use crate::config::NodeNetworks;
use crate::wire::GuestNic;

/// How addresses are chosen.
#[derive(Debug, Clone)]
pub(crate) struct AddressRules {
    /// The families that a Node has to have, the most important first.
    pub(crate) families: Vec<IpFamily>,
    pub(crate) networks: NodeNetworks,
}

/// An address of a machine, and the network that it is in.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    ip: IpAddr,
    network: &'a str,
}

impl AddressRules {
    /// An internal and an external address of each family, or what is missing. Those of `preferred` come before others.
    pub(crate) fn choose(
        &self,
        nics: &[GuestNic],
        preferred: &[IpAddr],
    ) -> Result<Vec<NodeAddress>, String> {
        if nics.is_empty() {
            return Err("its guest reports no network interface".to_owned());
        }
        self.check_networks(nics)?;
        let all = nics.iter().flat_map(|nic| {
            let ips = nic.addresses.iter().filter_map(|text| text.parse().ok());
            ips.map(|ip| Candidate {
                ip,
                network: &nic.network,
            })
        });
        let mut all: Vec<_> = all.filter(|it| is_usable(it.ip)).collect();
        all.sort_by_key(|candidate| !preferred.contains(&candidate.ip));
        let mut addresses: Vec<NodeAddress> = Vec::new();
        for family in &self.families {
            let own = all.iter().filter(|it| IpFamily::of(it.ip) == *family);
            let own: Vec<_> = own.copied().collect();
            let (internal, external) = self.choose_pair(&own);
            if internal.is_none() && external.is_none() {
                let ips: Vec<_> = all.iter().map(|it| it.ip.to_string()).collect();
                let reported = match ips.as_slice() {
                    [] => "none".to_owned(),
                    ips => ips.join(", "),
                };
                return Err(format!(
                    "no suitable {family} address among those that its guest reports: {reported}"
                ));
            }
            let pair = internal.map(NodeAddress::internal).into_iter();
            for address in pair.chain(external.map(NodeAddress::external)) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        Ok(addresses)
    }

    /// If both networks are named, the machine has to be in one of them.
    fn check_networks(&self, nics: &[GuestNic]) -> Result<(), String> {
        let networks = &self.networks;
        let (Some(internal), Some(external)) = (&networks.internal_name, &networks.external_name)
        else {
            return Ok(());
        };
        let is_in = |name: &str| {
            nics.iter()
                .any(|nic| nic.network.eq_ignore_ascii_case(name))
        };
        if is_in(internal) || is_in(external) {
            return Ok(());
        }
        let found: Vec<_> = nics.iter().map(|nic| nic.network.as_str()).collect();
        let found = found.join(", ");
        Err(format!(
            "it is in neither of the networks {internal:?} and {external:?}, but in {found}"
        ))
    }

    /// The internal and the external address of one family.
    fn choose_pair(&self, all: &[Candidate<'_>]) -> (Option<IpAddr>, Option<IpAddr>) {
        let networks = &self.networks;
        let internals = without(all, &networks.exclude_internal);
        let externals = without(all, &networks.exclude_external);
        let internal = choose(
            &internals,
            &networks.internal_cidrs,
            networks.internal_name.as_deref(),
        );
        let external = choose(
            &externals,
            &networks.external_cidrs,
            networks.external_name.as_deref(),
        );
        if internal.is_some() || external.is_some() {
            return (internal, external);
        }
        let first = |all: &[Candidate<'_>]| all.first().map(|it| it.ip);
        (first(&internals), first(&externals))
    }
}

/// The first address in the first network that has one, else the first in the network of this name.
fn choose(all: &[Candidate<'_>], cidrs: &[IpNet], network: Option<&str>) -> Option<IpAddr> {
    let first_in = |cidr: &IpNet| all.iter().find(|it| cidr.contains(&it.ip));
    let by_cidr = cidrs.iter().find_map(first_in);
    let by_name = || {
        let network = network?;
        all.iter()
            .find(|it| it.network.eq_ignore_ascii_case(network))
    };
    by_cidr.or_else(by_name).map(|found| found.ip)
}

fn without<'a>(all: &[Candidate<'a>], excluded: &[IpNet]) -> Vec<Candidate<'a>> {
    let is_excluded = |ip: &IpAddr| excluded.iter().any(|cidr| cidr.contains(ip));
    all.iter()
        .filter(|it| !is_excluded(&it.ip))
        .copied()
        .collect()
}

/// Whether others can reach it: not an address of the machine itself or of one link.
fn is_usable(ip: IpAddr) -> bool {
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || (ip.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(ip) => {
            let first = ip.segments().first().copied().unwrap_or_default();
            ip.is_unicast_link_local() || first == 0xff02 || ip.to_ipv4_mapped().is_some()
        }
    };
    !is_local && !ip.is_unspecified() && !ip.is_loopback()
}

#[cfg(test)]
mod tests;
