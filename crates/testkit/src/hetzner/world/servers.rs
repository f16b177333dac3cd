//! New servers.

use std::net::Ipv4Addr;

use super::super::refusal::Refusal;
use super::super::rest::check_free;
use super::{
    Labels, Location, Place, PrivateNet, Scene, Server, ServerStatus, ServerType, find_location,
    find_server_type,
};

/// A server that is to be.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub(in super::super) name: String,
    pub(in super::super) server_type: String,
    pub(in super::super) location: String,
    pub(in super::super) image: Option<u64>,
    pub(in super::super) ipv4: bool,
    pub(in super::super) ipv6: bool,
    pub(in super::super) networks: Vec<(u64, Option<Ipv4Addr>)>,
    pub(in super::super) labels: Labels,
}

impl ServerSpec {
    /// A `cx22` in `fsn1` with both public addresses.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            server_type: "cx22".to_owned(),
            location: "fsn1".to_owned(),
            image: None,
            ipv4: true,
            ipv6: true,
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

impl Scene<'_> {
    /// Adds a server in this state, or says why it cannot.
    pub(in super::super) fn add_server(
        &mut self,
        spec: ServerSpec,
        status: ServerStatus,
    ) -> Result<Server, Refusal> {
        check_free(&self.project.servers, &spec.name, None)?;
        if self.project.servers.count() >= self.settings.limits.servers {
            let message = "server limit exceeded";
            return Err(Refusal::new("resource_limit_exceeded", message));
        }
        let (server_type, location) = kind_and_place(&spec)?;
        let mut server = Server {
            id: self.counters.id(),
            name: spec.name,
            status,
            server_type,
            location,
            image: spec.image,
            ipv4: spec.ipv4.then(|| self.counters.ipv4()),
            ipv6: spec.ipv6.then(|| self.counters.ipv6()),
            private_net: Vec::new(),
            labels: spec.labels,
            created: self.now.time,
            protected: false,
        };
        for (network, ip) in spec.networks {
            let net = self.place_of_server(&server, network, ip)?;
            server.private_net.push(net);
        }
        let now = self.now.instant;
        self.project.servers.put(server.id, server.clone(), now);
        Ok(server)
    }

    /// A place for a server in a network.
    fn place_of_server(
        &self,
        server: &Server,
        network: u64,
        ip: Option<Ipv4Addr>,
    ) -> Result<PrivateNet, Refusal> {
        let found = self.project.networks.get(network);
        let found = found.ok_or_else(|| Refusal::not_found("network", network))?;
        let place = Place {
            zone: server.location.network_zone,
            ip,
            ip_range: None,
        };
        let ip = self.project.find_place(found, place)?;
        Ok(PrivateNet {
            network,
            ip,
            alias_ips: Vec::new(),
            mac_address: mac_address(ip),
        })
    }
}

fn kind_and_place(spec: &ServerSpec) -> Result<(&'static ServerType, &'static Location), Refusal> {
    let kind = find_server_type(&spec.server_type).ok_or_else(|| {
        let message = format!("unknown server type {:?}", spec.server_type);
        Refusal::invalid("server_type", message)
    })?;
    let place = find_location(&spec.location).ok_or_else(|| {
        let message = format!("unknown location {:?}", spec.location);
        Refusal::invalid("location", message)
    })?;
    Ok((kind, place))
}

/// Hetzner's prefix, then the private address.
pub(in super::super) fn mac_address(ip: Ipv4Addr) -> String {
    let [a, b, c, d] = ip.octets();
    format!("86:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}
