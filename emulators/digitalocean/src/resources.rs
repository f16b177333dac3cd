//! The resources of an account, as the API shows them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::list::Listed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

/// What a droplet does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropletStatus {
    /// It is being made.
    New,
    /// It runs.
    Active,
    /// It is switched off.
    Off,
    /// It is switched off for good.
    Archive,
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Droplet {
    /// Its number.
    pub id: u64,
    /// Its name. Several may have the same.
    pub name: String,
    /// What it does.
    pub status: DropletStatus,
    /// Its size.
    pub size_slug: String,
    /// Where it is.
    pub region: Region,
    /// Its address in the VPC.
    pub private_ipv4: Option<Ipv4Addr>,
    /// Its public IPv4 address.
    pub public_ipv4: Option<Ipv4Addr>,
    /// Its public IPv6 address.
    pub public_ipv6: Option<Ipv6Addr>,
    /// When it was made.
    pub created_at: String,
}

/// A region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Region {
    /// The name for programs.
    pub slug: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// The sizes that it has.
    pub sizes: [&'static str; 2],
    /// Whether anything new can be made there.
    pub available: bool,
    /// What it can do.
    pub features: [&'static str; 3],
}

const fn region(slug: &'static str, name: &'static str) -> Region {
    Region {
        slug,
        name,
        sizes: ["s-1vcpu-2gb", "s-2vcpu-4gb"],
        available: true,
        features: ["backups", "ipv6", "metadata"],
    }
}

/// The regions that there are.
pub const REGIONS: [Region; 3] = [
    region("nyc3", "New York 3"),
    region("fra1", "Frankfurt 1"),
    region("sgp1", "Singapore 1"),
];

/// How a port of a load balancer is passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardingRule {
    /// `tcp`, `udp`, `http`, `https`, `http2` or `http3`.
    pub entry_protocol: String,
    /// Where the balancer listens.
    pub entry_port: u16,
    /// The protocol towards the droplets.
    pub target_protocol: String,
    /// Where the droplets listen.
    pub target_port: u16,
    /// The certificate of TLS that ends here.
    #[serde(default)]
    pub certificate_id: String,
    /// Whether TLS is passed on.
    #[serde(default)]
    pub tls_passthrough: bool,
}

/// How droplets are checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheck {
    /// `tcp`, `http` or `https`.
    pub protocol: String,
    /// On which port.
    pub port: u16,
    /// At which path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The pause between two checks.
    pub check_interval_seconds: u32,
    /// How long an answer may take.
    pub response_timeout_seconds: u32,
    /// Failures until a droplet is out.
    pub unhealthy_threshold: u32,
    /// Successes until it is in again.
    pub healthy_threshold: u32,
    /// Whether checks speak the PROXY protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<bool>,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            protocol: "http".to_owned(),
            port: 80,
            path: String::new(),
            check_interval_seconds: 10,
            response_timeout_seconds: 5,
            unhealthy_threshold: 3,
            healthy_threshold: 5,
            proxy_protocol: None,
        }
    }
}

/// Whether clients stay with their droplet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StickySessions {
    /// `none` or `cookies`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_name: Option<String>,
    /// How long the cookie lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_ttl_seconds: Option<u32>,
}

impl Default for StickySessions {
    fn default() -> Self {
        Self {
            kind: "none".to_owned(),
            cookie_name: None,
            cookie_ttl_seconds: None,
        }
    }
}

/// Who may connect: `ip:…` and `cidr:…`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BalancerFirewall {
    /// Only these, if there are any.
    pub allow: Vec<String>,
    /// Not these.
    pub deny: Vec<String>,
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadBalancer {
    /// Its UUID.
    pub id: String,
    /// Its name, which no other has.
    pub name: String,
    /// Its public address, once it has one; that of its VPC if it is internal.
    pub ip: String,
    /// Its public IPv6 address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ipv6: String,
    /// The old name of its size.
    pub size: String,
    /// How many nodes it has.
    pub size_unit: u32,
    /// `REGIONAL` or `REGIONAL_NETWORK`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Always `round_robin`: it can no longer be chosen.
    pub algorithm: String,
    /// `new`, `active` or `errored`.
    pub status: String,
    /// When it was made.
    pub created_at: String,
    /// Its ports.
    pub forwarding_rules: Vec<ForwardingRule>,
    /// How droplets are checked.
    pub health_check: HealthCheck,
    /// Whether clients stay with their droplet.
    pub sticky_sessions: StickySessions,
    /// Where it is.
    pub region: Region,
    /// The tag of its droplets.
    pub tag: String,
    /// Its droplets.
    pub droplet_ids: Vec<u64>,
    /// Its own tags.
    pub tags: Vec<String>,
    /// Whether requests are redirected.
    pub redirect_http_to_https: bool,
    /// Whether droplets get the PROXY protocol.
    pub enable_proxy_protocol: bool,
    /// Whether connections to droplets are kept.
    pub enable_backend_keepalive: bool,
    /// Its VPC.
    pub vpc_uuid: String,
    /// Its subnet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subnet_uuid: String,
    /// Whether no DNS records are made.
    pub disable_lets_encrypt_dns_records: bool,
    /// How long idle connections are kept.
    pub http_idle_timeout_seconds: u32,
    /// Who may connect.
    pub firewall: BalancerFirewall,
    /// `EXTERNAL` or `INTERNAL`.
    pub network: String,
    /// `IPV4` or `DUALSTACK`.
    pub network_stack: String,
    /// Its project.
    pub project_id: String,
    /// Until when it works on what it was asked for.
    #[serde(skip)]
    pub busy_until: Option<Instant>,
    /// When it was made or resized.
    #[serde(skip)]
    pub resized: Option<Instant>,
}

impl LoadBalancer {
    /// Where clients find it.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let both = [&self.ip, &self.ipv6].into_iter();
        both.filter_map(|text| text.parse().ok()).collect()
    }
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Its UUID.
    pub id: String,
    /// Its name, which no other has.
    pub name: String,
    /// `lets_encrypt` or `custom`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `pending`, `verified` or `error`.
    pub state: String,
    /// Its domains.
    pub dns_names: Vec<String>,
    /// When it ends.
    pub not_after: String,
    /// Its fingerprint.
    pub sha1_fingerprint: String,
    /// When it was made.
    pub created_at: String,
}

/// A cloud firewall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Firewall {
    /// Its UUID.
    pub id: String,
    /// Its name, which no other has.
    pub name: String,
    /// `waiting`, `succeeded` or `failed`.
    pub status: String,
    /// What comes in.
    pub inbound_rules: Vec<Value>,
    /// What goes out.
    pub outbound_rules: Vec<Value>,
    /// The droplets that it is for.
    pub droplet_ids: Vec<u64>,
    /// The tags of droplets that it is for.
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: String,
    /// What is not in force yet.
    pub pending_changes: Vec<Value>,
}

/// As the API writes it: all addresses in one list per family.
impl Droplet {
    pub(crate) fn wire(&self) -> Value {
        let v4 = |ip: Option<Ipv4Addr>, kind: &str| {
            ip.map(|ip| {
                json!({
                    "ip_address": ip, "netmask": "255.255.240.0", "gateway": "10.0.0.1", "type": kind,
                })
            })
        };
        let v6 = self.public_ipv6.map(|ip| {
            json!({"ip_address": ip, "netmask": 64, "gateway": "2001:db8::1", "type": "public"})
        });
        // The public address comes first, as from the real API.
        let v4s = [
            v4(self.public_ipv4, "public"),
            v4(self.private_ipv4, "private"),
        ];
        let v4s: Vec<_> = v4s.into_iter().flatten().collect();
        json!({
            "id": self.id, "name": self.name, "memory": 2048, "vcpus": 1, "disk": 50,
            "locked": false, "status": self.status, "created_at": self.created_at,
            "features": ["ipv6"], "backup_ids": [], "snapshot_ids": [], "volume_ids": [],
            "size_slug": self.size_slug, "region": self.region, "tags": [],
            "networks": {"v4": v4s, "v6": v6.into_iter().collect::<Vec<_>>()},
            "vpc_uuid": crate::DigitalOceanCloud::VPC,
        })
    }
}

macro_rules! listed {
    ($($Resource:ty),+) => {
        $(impl Listed for $Resource {
            fn field(&self, name: &str) -> Option<Value> {
                match name {
                    "id" => Some(json!(self.id)),
                    "name" => Some(json!(self.name)),
                    _ => None,
                }
            }
        })+
    };
}

listed!(Droplet, LoadBalancer, Certificate, Firewall);
