//! New servers.

use std::net::Ipv4Addr;

use cloudkeel_emulation::list::Labels;

use super::catalogue::SERVER_TYPES;
use super::{AddressRequest, PrivateNet, ProjectContext, Server, ServerStatus, find_location};
use crate::refusal::Refusal;
use crate::rest::check_free;

/// A server to add.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub(crate) name: String,
    pub(crate) server_type: String,
    pub(crate) location: String,
    pub(crate) ipv4: bool,
    pub(crate) networks: Vec<(u64, Option<Ipv4Addr>)>,
    pub(crate) labels: Labels,
}

impl ServerSpec {
    /// A `cx22` in `fsn1` with both public addresses.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            server_type: "cx22".to_owned(),
            location: "fsn1".to_owned(),
            ipv4: true,
            networks: Vec::new(),
            labels: Labels::new(),
        }
    }

    /// Of this type.
    #[must_use]
    pub fn of_type(mut self, server_type: impl Into<String>) -> Self {
        self.server_type = server_type.into();
        self
    }

    /// In this location.
    #[must_use]
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = location.into();
        self
    }

    /// Without a public IPv4 address.
    #[must_use]
    pub const fn without_ipv4(mut self) -> Self {
        self.ipv4 = false;
        self
    }

    /// In this network, with any address there.
    #[must_use]
    pub fn in_network(mut self, network: u64) -> Self {
        self.networks.push((network, None));
        self
    }

    /// In this network, with this address there.
    #[must_use]
    pub fn in_network_as(mut self, network: u64, ip: Ipv4Addr) -> Self {
        self.networks.push((network, Some(ip)));
        self
    }

    /// With this label.
    #[must_use]
    pub fn labelled(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }
}

impl ProjectContext<'_> {
    /// Adds a running server, or says why it cannot.
    pub(crate) fn add_server(&mut self, spec: ServerSpec) -> Result<Server, Refusal> {
        check_free(&self.project.servers, &spec.name, None)?;
        if self.project.servers.count() >= self.settings.limits.servers {
            return Err(Refusal::limit_exceeded("server limit exceeded"));
        }
        let unknown =
            |field: &str, name| Refusal::invalid(field, format!("unknown {field} {name:?}"));
        let mut types = SERVER_TYPES.iter();
        let server_type = types.find(|known| known.name == spec.server_type);
        let server_type = server_type.ok_or_else(|| unknown("server_type", &spec.server_type))?;
        let location = find_location(&spec.location);
        let location = location.ok_or_else(|| unknown("location", &spec.location))?;
        let mut server = Server {
            id: self.counters.ids.number(),
            name: spec.name,
            status: ServerStatus::Running,
            server_type,
            location,
            ipv4: spec.ipv4.then(|| self.counters.ipv4()),
            ipv6: Some(self.counters.ipv6()),
            private_net: Vec::new(),
            labels: spec.labels,
            created: self.clock.time_at(self.now),
            protected: false,
        };
        for (network, ip) in spec.networks {
            let found = self.project.networks.get(&network);
            let found = found.ok_or_else(|| Refusal::not_found("network", network))?;
            let request = AddressRequest {
                zone: location.network_zone,
                ip,
                ip_range: None,
            };
            let ip = self.project.find_address(found, request)?;
            server.private_net.push(PrivateNet {
                network,
                ip,
                alias_ips: Vec::new(),
                mac_address: mac_address(ip),
            });
        }
        let servers = &mut self.project.servers;
        servers.put(server.id, server.clone(), self.now);
        Ok(server)
    }
}

/// Hetzner's prefix, then the private address.
fn mac_address(ip: Ipv4Addr) -> String {
    let [a, b, c, d] = ip.octets();
    format!("86:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}
