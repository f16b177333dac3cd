//! What goes over the wire: the parts of DigitalOcean's answers that matter here.

mod balancer;

use std::net::IpAddr;

use cloudkeel_toolkit::json::null_as_default;
use cloudkeel_toolkit::resources;
use serde::{Deserialize, Serialize};

pub(crate) use self::balancer::{
    BalancerRequest, BalancerSettings, ClientRules, ForwardingRule, HealthCheck, LoadBalancer,
    StickySessions,
};

/// Whose token it is.
#[derive(Debug, Deserialize)]
pub(crate) struct Account {
    pub(crate) uuid: String,
    pub(crate) team: Option<Team>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Team {
    pub(crate) uuid: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Region {
    pub(crate) slug: String,
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Droplet {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) size_slug: String,
    pub(crate) region: Region,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) networks: Networks,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct Networks {
    #[serde(default, deserialize_with = "null_as_default")]
    v4: Vec<NetworkAddress>,
    #[serde(default, deserialize_with = "null_as_default")]
    v6: Vec<NetworkAddress>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct NetworkAddress {
    ip_address: IpAddr,
    #[serde(rename = "type")]
    kind: String,
}

impl Networks {
    pub(crate) fn private_v4(&self) -> Option<IpAddr> {
        first(&self.v4, "private")
    }

    /// The first public address of each family.
    pub(crate) fn public(&self) -> impl Iterator<Item = IpAddr> {
        let both = [first(&self.v4, "public"), first(&self.v6, "public")];
        both.into_iter().flatten()
    }
}

fn first(addresses: &[NetworkAddress], kind: &str) -> Option<IpAddr> {
    let found = addresses.iter().find(|address| address.kind == kind);
    found.map(|address| address.ip_address)
}

/// A tag, and how many resources it is on.
#[derive(Debug, Deserialize)]
pub(crate) struct Tag {
    pub(crate) resources: TaggedResources,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TaggedResources {
    pub(crate) count: u64,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
}

/// A cloud firewall.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Firewall {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) settings: FirewallSettings,
}

/// What can be set of a firewall.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(crate) struct FirewallSettings {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) inbound_rules: Vec<InboundRule>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) outbound_rules: Vec<OutboundRule>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) tags: Vec<String>,
    /// Droplets that others have put behind it stay there.
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) droplet_ids: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct InboundRule {
    pub(crate) protocol: String,
    #[serde(default)]
    pub(crate) ports: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) sources: Peers,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct OutboundRule {
    pub(crate) protocol: String,
    #[serde(default)]
    pub(crate) ports: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) destinations: Peers,
}

/// Where traffic comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(crate) struct Peers {
    #[serde(default, deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) load_balancer_uids: Vec<String>,
}

resources! {
    Region, slug: String = "region", "regions";
    Droplet, id: u64 = "droplet", "droplets";
    LoadBalancer, id: String = "load_balancer", "load_balancers";
    Certificate, id: String = "certificate", "certificates";
    Firewall, id: String = "firewall", "firewalls";
}
