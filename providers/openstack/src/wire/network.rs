//! Networks, ports, routers, floating IPs and security groups.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A port.
#[expect(clippy::struct_field_names, reason = "the names are Neutron's")]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Port {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) device_id: String,
    #[serde(default)]
    pub(crate) network_id: String,
    #[serde(default)]
    pub(crate) fixed_ips: Vec<FixedIp>,
    #[serde(default)]
    pub(crate) security_groups: Vec<String>,
    #[serde(default)]
    pub(crate) allowed_address_pairs: Vec<AddressPair>,
    /// Where it is not shown, it is off.
    #[serde(default)]
    pub(crate) port_security_enabled: bool,
    pub(crate) trunk_details: Option<TrunkDetails>,
    pub(crate) revision_number: Option<u64>,
}

impl Port {
    pub(crate) fn has_ip(&self, ip: IpAddr) -> bool {
        self.fixed_ips.iter().any(|fixed| fixed.ip_address == ip)
    }
}

/// An address of a port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct FixedIp {
    #[serde(default)]
    pub(crate) subnet_id: String,
    pub(crate) ip_address: IpAddr,
}

/// Addresses that a port may send from besides its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddressPair {
    pub(crate) ip_address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mac_address: Option<String>,
}

/// The ports inside of a trunk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TrunkDetails {
    #[serde(default)]
    pub(crate) sub_ports: Vec<SubPort>,
}

/// A port inside of a trunk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct SubPort {
    pub(crate) port_id: String,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Network {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) subnets: Vec<String>,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Subnet {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) cidr: IpNet,
}

/// A router.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Router {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) routes: Vec<ExtraRoute>,
    pub(crate) revision_number: Option<u64>,
}

/// A route of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ExtraRoute {
    pub(crate) destination: IpNet,
    pub(crate) nexthop: IpAddr,
}

/// A floating IP.
#[expect(clippy::struct_field_names, reason = "the names are Neutron's")]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct FloatingIp {
    pub(crate) id: String,
    pub(crate) floating_ip_address: IpAddr,
    pub(crate) port_id: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
}

/// A floating IP that is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewFloatingIp {
    pub(crate) floating_network_id: String,
    pub(crate) port_id: String,
    pub(crate) description: String,
    pub(crate) subnet_id: Option<String>,
    pub(crate) floating_ip_address: Option<IpAddr>,
}

/// A security group.
#[expect(clippy::struct_field_names, reason = "the names are Neutron's")]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct SecurityGroup {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) security_group_rules: Vec<GroupRule>,
}

/// A rule of a security group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct GroupRule {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
}

/// What a rule lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) direction: String,
    pub(crate) ethertype: String,
    pub(crate) protocol: Option<String>,
    pub(crate) port_range_min: Option<u16>,
    pub(crate) port_range_max: Option<u16>,
    pub(crate) remote_ip_prefix: Option<IpNet>,
}

super::served! {
    Port: "port", "ports", Network, "/ports";
    Network: "network", "networks", Network, "/networks";
    Subnet: "subnet", "subnets", Network, "/subnets";
    Router: "router", "routers", Network, "/routers";
    FloatingIp: "floatingip", "floatingips", Network, "/floatingips";
    SecurityGroup: "security_group", "security_groups", Network, "/security-groups";
    GroupRule: "security_group_rule", "security_group_rules", Network, "/security-group-rules";
}
