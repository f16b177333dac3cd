//! Addresses of an instance, as they appear in a Node's status.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The type of a Node address. Names are those of the Kubernetes API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AddressKind {
    /// The name that the instance gives itself.
    Hostname,
    /// Reachable inside the cluster's network.
    #[serde(rename = "InternalIP")]
    InternalIp,
    /// Reachable from outside.
    #[serde(rename = "ExternalIP")]
    ExternalIp,
    /// A name that resolves inside.
    #[serde(rename = "InternalDNS")]
    InternalDns,
    /// A name that resolves outside.
    #[serde(rename = "ExternalDNS")]
    ExternalDns,
}

impl AddressKind {
    /// The name used by the Kubernetes API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIp => "InternalIP",
            Self::ExternalIp => "ExternalIP",
            Self::InternalDns => "InternalDNS",
            Self::ExternalDns => "ExternalDNS",
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One address of an instance. Order matters: the first of a kind is the primary one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeAddress {
    /// What kind of address it is.
    pub kind: AddressKind,
    /// The address as text: an IP or a name.
    pub address: String,
}

impl NodeAddress {
    /// An address of any kind.
    pub fn new(kind: AddressKind, address: impl Into<String>) -> Self {
        Self {
            kind,
            address: address.into(),
        }
    }

    /// The instance's own name.
    pub fn hostname(name: impl Into<String>) -> Self {
        Self::new(AddressKind::Hostname, name)
    }

    /// An IP inside the cluster's network.
    pub fn internal(ip: IpAddr) -> Self {
        Self::new(AddressKind::InternalIp, ip.to_string())
    }

    /// An IP reachable from outside.
    pub fn external(ip: IpAddr) -> Self {
        Self::new(AddressKind::ExternalIp, ip.to_string())
    }

    /// The address as an IP, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.parse().ok()
    }
}

/// IP version 4 or 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IpFamily {
    /// IP version 4.
    #[serde(rename = "IPv4")]
    V4,
    /// IP version 6.
    #[serde(rename = "IPv6")]
    V6,
}

impl IpFamily {
    /// The family of an address.
    pub const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

impl fmt::Display for IpFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_spelled_like_the_kubernetes_api() {
        for kind in [
            AddressKind::Hostname,
            AddressKind::InternalIp,
            AddressKind::ExternalIp,
            AddressKind::InternalDns,
            AddressKind::ExternalDns,
        ] {
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
        }
    }

    #[test]
    fn a_name_is_not_an_ip() {
        assert_eq!(NodeAddress::hostname("node-1").ip(), None);
        let ip: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(NodeAddress::external(ip).ip(), Some(ip));
        assert_eq!(IpFamily::of(ip), IpFamily::V6);
    }
}
