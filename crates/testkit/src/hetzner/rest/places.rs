//! Places in networks, as somebody asks for them.

use std::net::Ipv4Addr;

use serde::Deserialize;

use super::super::refusal::Refusal;
use super::super::world::{Place, Scene};
use super::body::{address, range};

#[derive(Deserialize, Default)]
pub(super) struct PlaceWish {
    pub(super) network: u64,
    ip: Option<String>,
    ip_range: Option<String>,
    #[serde(default)]
    alias_ips: Vec<String>,
}

impl PlaceWish {
    /// Any place in this network.
    pub(super) fn anywhere_in(network: u64) -> Self {
        Self {
            network,
            ..Self::default()
        }
    }

    /// The further addresses that a server is to have there.
    pub(super) fn aliases(&self) -> Result<Vec<Ipv4Addr>, Refusal> {
        let aliases = self.alias_ips.iter().map(|ip| address("alias_ips", ip));
        aliases.collect()
    }
}

impl Scene<'_> {
    /// A place that is free and fits: the network, and the address there.
    pub(super) fn find_place(
        &self,
        wish: &PlaceWish,
        zone: &str,
    ) -> Result<(u64, Ipv4Addr), Refusal> {
        let found = self.project.networks.get(wish.network);
        let network = found.ok_or_else(|| Refusal::not_found("network", wish.network))?;
        let ip = wish.ip.as_deref().map(|ip| address("ip", ip));
        let ip_range = wish.ip_range.as_deref().map(|text| range("ip_range", text));
        let place = Place {
            zone,
            ip: ip.transpose()?,
            ip_range: ip_range.transpose()?,
        };
        Ok((network.id, self.project.find_place(network, place)?))
    }
}
