//! The resources of a project.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::list::Labels;
use ipnet::{Ipv4Net, Ipv6Net};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::catalogue::{LOAD_BALANCER_TYPES, Location, ServerType};

/// What a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// It is being made.
    Initializing,
    /// It is being switched on.
    Starting,
    /// It runs.
    Running,
    /// It is being switched off.
    Stopping,
    /// It is switched off.
    Off,
    /// It is being removed.
    Deleting,
    /// It moves to another host.
    Migrating,
    /// It gets a new disk.
    Rebuilding,
    /// The cloud does not know.
    Unknown,
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it does.
    pub status: ServerStatus,
    /// Its type.
    pub server_type: &'static ServerType,
    /// Where it is.
    pub location: &'static Location,
    /// Its public IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its public IPv6 network.
    pub ipv6: Option<Ipv6Net>,
    /// The networks that it is in.
    pub private_net: Vec<PrivateNet>,
    /// Its labels.
    pub labels: Labels,
    /// When it was ordered.
    pub created: Timestamp,
    /// Whether it cannot be deleted.
    pub protected: bool,
}

impl Server {
    /// Its place in a network.
    pub fn in_network(&self, network: u64) -> Option<&PrivateNet> {
        self.private_net.iter().find(|net| net.network == network)
    }
}

/// A place in a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrivateNet {
    /// Which network.
    pub network: u64,
    /// The address there.
    pub ip: Ipv4Addr,
    /// Further addresses there.
    pub alias_ips: Vec<Ipv4Addr>,
    /// The hardware address.
    pub mac_address: String,
}

/// A private network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// All its addresses.
    pub ip_range: Ipv4Net,
    /// Parts of it.
    pub subnets: Vec<Subnet>,
    /// Routes through its members.
    pub routes: Vec<Route>,
    /// Its labels.
    pub labels: Labels,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it cannot be deleted.
    pub protected: bool,
    /// Whether its routes are exposed to the vSwitch.
    pub expose_routes_to_vswitch: bool,
}

/// A part of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subnet {
    /// `cloud`, `server` or `vswitch`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its addresses.
    pub ip_range: Ipv4Net,
    /// Where it is.
    pub network_zone: String,
    /// Its router.
    pub gateway: Ipv4Addr,
    /// The vSwitch behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vswitch_id: Option<u64>,
}

/// A route of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Route {
    /// For these addresses.
    pub destination: Ipv4Net,
    /// The way is through this one.
    pub gateway: Ipv4Addr,
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadBalancer {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub kind: u64,
    /// Where it is.
    pub location: &'static Location,
    /// Its labels.
    pub labels: Labels,
    /// `round_robin` or `least_connections`.
    pub algorithm: String,
    /// Its addresses, once it is built.
    pub public: Option<PublicAddresses>,
    /// Whether it can be reached by its public addresses.
    pub public_interface: bool,
    /// The network that it is in, and its address there.
    pub private_net: Option<(u64, Ipv4Addr)>,
    /// What it listens for.
    pub services: Vec<Service>,
    /// Where it leads.
    pub targets: Vec<Target>,
    /// When it was ordered.
    pub created: Timestamp,
    /// Whether it cannot be deleted.
    pub protected: bool,
}

impl LoadBalancer {
    /// The name of its type.
    pub fn type_name(&self) -> Option<&'static str> {
        let mut types = LOAD_BALANCER_TYPES.iter();
        types
            .find(|kind| kind.id == self.kind)
            .map(|kind| kind.name)
    }

    /// Where clients reach it.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let public = self.public.iter().filter(|_| self.public_interface);
        let public = public.flat_map(|public| [public.ipv4.into(), public.ipv6.into()]);
        let private = self.private_net.iter().map(|(_, ip)| (*ip).into());
        public.chain(private).collect()
    }
}

/// The public addresses of a balancer, and the names behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicAddresses {
    /// The IPv4 address.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address.
    pub ipv6: Ipv6Addr,
    /// The name behind the IPv4 address.
    pub ipv4_ptr: String,
    /// The name behind the IPv6 address.
    pub ipv6_ptr: String,
}

/// What a balancer listens for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// `tcp`, `http` or `https`.
    pub protocol: String,
    /// The port of the balancer.
    pub listen_port: u16,
    /// The port of the targets.
    pub destination_port: u16,
    /// Whether targets get the client address by the PROXY protocol.
    pub proxyprotocol: bool,
    /// For `http` and `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// How targets are checked.
    pub health_check: HealthCheck,
}

/// What `http` and `https` services have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http {
    /// The cookie of sticky sessions.
    pub cookie_name: String,
    /// Its life in seconds.
    pub cookie_lifetime: u32,
    /// Certificates by number.
    pub certificates: Vec<u64>,
    /// Whether port 80 leads here.
    pub redirect_http: bool,
    /// Whether a client stays with its target.
    pub sticky_sessions: bool,
    /// Seconds.
    pub timeout_idle: u32,
}

/// How targets are checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// `tcp`, `http` or `https`.
    pub protocol: String,
    /// The port of the targets.
    pub port: u16,
    /// Seconds.
    pub interval: u32,
    /// Seconds.
    pub timeout: u32,
    /// How often before a target is unhealthy.
    pub retries: u32,
    /// For `http` and `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HealthCheckHttp>,
}

/// How targets are asked by HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheckHttp {
    /// The `Host`.
    pub domain: String,
    /// The path.
    pub path: String,
    /// What the answer must contain.
    pub response: String,
    /// Patterns such as `2??`.
    pub status_codes: Vec<String>,
    /// Whether by HTTPS.
    pub tls: bool,
}

/// Where a balancer leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// To what.
    pub to: Destination,
    /// Whether through the network.
    pub use_private_ip: bool,
}

impl Target {
    /// A server, by its public address.
    pub const fn server(id: u64) -> Self {
        Self {
            to: Destination::Server(id),
            use_private_ip: false,
        }
    }
}

/// The ID of a server, an address, or a selector.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(id) => id.fmt(f),
            Self::LabelSelector(selector) => selector.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

/// What a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// One server.
    Server(u64),
    /// Every server with such labels.
    LabelSelector(String),
    /// A dedicated server.
    Ip(IpAddr),
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Whether the cloud has it issued.
    pub managed: bool,
    /// Its domains.
    pub domain_names: Vec<String>,
    /// The certificate itself, once there is one.
    pub issued: Option<Issued>,
    /// For managed ones: `pending`, `completed` or `failed`.
    pub issuance: &'static str,
    /// Why it could not be issued.
    pub failure: Option<String>,
    /// When it was made.
    pub created: Timestamp,
}

/// What an authority gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// PEM.
    pub certificate: String,
    /// SHA-256.
    pub fingerprint: String,
    /// Not before.
    pub not_before: Timestamp,
    /// Not after.
    pub not_after: Timestamp,
}
