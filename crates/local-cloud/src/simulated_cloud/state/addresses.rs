//! The addresses of balancers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cloudkeel_api::IpFamily;
use ipnet::IpNet;

use super::Project;
use crate::simulated_cloud::refusal::Refusal;
use crate::simulated_cloud::settings::Pools;

/// What a balancer asks of the pools.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseRequest<'a> {
    pub(super) internal: bool,
    pub(super) families: &'a BTreeSet<IpFamily>,
    pub(super) address: Option<IpAddr>,
}

impl Pools {
    const fn pool(&self, internal: bool, family: IpFamily) -> IpNet {
        match (internal, family) {
            (false, IpFamily::V4) => IpNet::V4(self.public_v4),
            (false, IpFamily::V6) => IpNet::V6(self.public_v6),
            (true, IpFamily::V4) => IpNet::V4(self.internal_v4),
            (true, IpFamily::V6) => IpNet::V6(self.internal_v6),
        }
    }
}

impl Project {
    /// The addresses that a balancer holds, IPv4 first.
    pub(super) fn addresses_of(&self, balancer: u64) -> Vec<IpAddr> {
        let held = self
            .leases
            .iter()
            .filter(|(_, holder)| **holder == balancer);
        held.map(|(address, _)| *address).collect()
    }

    /// Gives a balancer the addresses that a request asks for, and keeps those that still fit.
    pub(super) fn lease(
        &mut self,
        pools: &Pools,
        balancer: u64,
        desired: LeaseRequest<'_>,
    ) -> Result<(), Refusal> {
        self.check_requested(pools, balancer, desired)?;
        let held = self.addresses_of(balancer);
        let mut chosen = Vec::new();
        for family in desired.families {
            let pool = pools.pool(desired.internal, *family);
            let requested = desired.address.filter(|ip| IpFamily::of(*ip) == *family);
            let kept = held.iter().copied().find(|ip| pool.contains(ip));
            // The address of a network is given to no balancer, unless the network is that one address.
            let is_single = pool.prefix_len() == pool.max_prefix_len();
            let is_free =
                |ip: &IpAddr| (is_single || *ip != pool.network()) && !self.leases.contains_key(ip);
            let free = || pool.hosts().find(is_free);
            let address = requested
                .or(kept)
                .or_else(free)
                .ok_or_else(|| Refusal::limit_exceeded(format!("no address is left in {pool}")))?;
            chosen.push(address);
        }
        self.release(balancer);
        self.leases
            .extend(chosen.into_iter().map(|address| (address, balancer)));
        Ok(())
    }

    pub(super) fn release(&mut self, balancer: u64) {
        self.leases.retain(|_, holder| *holder != balancer);
    }

    fn check_requested(
        &self,
        pools: &Pools,
        balancer: u64,
        desired: LeaseRequest<'_>,
    ) -> Result<(), Refusal> {
        let Some(address) = desired.address else {
            return Ok(());
        };
        let family = IpFamily::of(address);
        if !desired.families.contains(&family) {
            let message = format!("{address} is {family}, which this balancer does not have");
            return Err(Refusal::invalid("address", message));
        }
        let pool = pools.pool(desired.internal, family);
        if !pool.contains(&address) {
            let message = format!("{address} is not ours to give: expected one of {pool}");
            return Err(Refusal::invalid("address", message));
        }
        match self.leases.get(&address) {
            Some(holder) if *holder != balancer => Err(Refusal::already_exists(format!(
                "{address} belongs to balancer {holder}"
            ))),
            _ => Ok(()),
        }
    }
}
