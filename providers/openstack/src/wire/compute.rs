//! Servers, flavors and volumes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: String,
    pub(crate) tenant_id: Option<String>,
    #[serde(rename = "accessIPv4", default)]
    pub(crate) access_ipv4: String,
    #[serde(rename = "accessIPv6", default)]
    pub(crate) access_ipv6: String,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) flavor: ServerFlavor,
    /// By the name of the network.
    #[serde(default)]
    pub(crate) addresses: BTreeMap<String, Vec<ServerAddress>>,
    #[serde(rename = "OS-EXT-AZ:availability_zone")]
    pub(crate) availability_zone: Option<String>,
    /// Filled in from the list of ports.
    #[serde(skip)]
    pub(crate) ports: Vec<super::network::Port>,
    /// The label of its flavor, where that is not its name.
    #[serde(skip)]
    pub(crate) flavor_label: Option<String>,
}

/// The flavor of a server: its name since 2.47, its ID before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct ServerFlavor {
    pub(crate) id: Option<String>,
    pub(crate) original_name: Option<String>,
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ServerAddress {
    pub(crate) addr: IpAddr,
    #[serde(rename = "OS-EXT-IPS:type")]
    pub(crate) kind: Option<String>,
}

/// A flavor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Flavor {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) availability_zone: Option<String>,
}

super::served! {
    Server: "server", "servers", Compute, "/servers", "/detail";
    Flavor: "flavor", "flavors", Compute, "/flavors", "/detail";
    Volume: "volume", "volumes", Volumes, "/volumes";
}
