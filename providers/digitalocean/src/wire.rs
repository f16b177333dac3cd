//! What goes over the wire: the parts of DigitalOcean's answers that matter here.

mod balancer;

use std::collections::BTreeSet;
use std::net::IpAddr;

use cloudkeel_toolkit::resources;
use serde::{Deserialize, Serialize};

pub(crate) use self::balancer::{
    BalancerRequest, BalancerSettings, ClientRules, ForwardingRule, HealthCheck, LoadBalancer,
    PORTS, StickySessions, units,
};

/// Whose token it is: a user's, or that of the team that the user works in.
#[derive(Debug, Deserialize)]
pub(crate) struct Account {
    pub(crate) uuid: String,
    pub(crate) team: Option<Box<Self>>,
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
    #[serde(default)]
    pub(crate) networks: Networks,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Networks {
    v4: Vec<NetworkAddress>,
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
    pub(crate) name: String,
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
#[serde(default)]
pub(crate) struct FirewallSettings {
    pub(crate) name: String,
    pub(crate) inbound_rules: BTreeSet<FirewallRule>,
    pub(crate) outbound_rules: BTreeSet<FirewallRule>,
    pub(crate) tags: BTreeSet<String>,
    /// Droplets that others have put behind it stay there.
    pub(crate) droplet_ids: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct FirewallRule {
    pub(crate) protocol: String,
    pub(crate) ports: String,
    /// Of what comes in.
    pub(crate) sources: Option<Peers>,
    /// Of what goes out.
    pub(crate) destinations: Option<Peers>,
}

/// Where traffic comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Peers {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) addresses: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) load_balancer_uids: BTreeSet<String>,
}

resources! {
    Region, slug: String = "region", "regions";
    Droplet, id: u64 = "droplet", "droplets";
    LoadBalancer, id: String = "load_balancer", "load_balancers";
    Tag, name: String = "tag", "tags";
    Certificate, id: String = "certificate", "certificates";
    Firewall, id: String = "firewall", "firewalls";
}
