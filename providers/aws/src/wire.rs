//! What EC2 shows, as far as it matters here.

pub(crate) mod classic;
pub(crate) mod network;

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_toolkit::has_id;
use cloudkeel_toolkit::xml::Element;
use ipnet::IpNet;

use crate::client::FromXml;

has_id!(
    Interface.id: String,
    Ec2Instance.id: String,
    Subnet.id: String,
    RouteTable.id: String,
    Topology.instance: String,
    SecurityGroup.id: String,
);

/// Tags of a resource.
pub(crate) type Tags = BTreeMap<String, String>;

/// The text at a path, if there is any.
pub(crate) fn text(element: &Element, path: &str) -> Option<String> {
    element.text_at(path).map(str::to_owned)
}

/// All texts at a path.
pub(crate) fn texts<C: FromIterator<String>>(element: &Element, path: &str) -> C {
    let found = element.all_at(path).filter(|found| !found.text.is_empty());
    found.map(|found| found.text.clone()).collect()
}

/// Tags, whose elements have other names in EC2 (`key`) than in the load balancing APIs (`Key`).
pub(crate) fn tags_at(element: &Element, path: &str, key: &str, value: &str) -> Tags {
    let tag = |tag: &Element| Some((text(tag, key)?, text(tag, value).unwrap_or_default()));
    element.all_at(path).filter_map(tag).collect()
}

fn ec2_tags(element: &Element) -> Tags {
    tags_at(element, "tagSet/item", "key", "value")
}

/// A network interface of an instance, or of a Fargate Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Interface {
    pub(crate) id: String,
    pub(crate) device_index: Option<u32>,
    pub(crate) status: String,
    pub(crate) zone: Option<String>,
    pub(crate) private_dns_name: Option<String>,
    /// The first is the primary one.
    pub(crate) private_ips: Vec<String>,
    pub(crate) ipv6: Vec<String>,
}

impl FromXml for Interface {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let mut private_ips: Vec<String> =
            texts(element, "privateIpAddressesSet/item/privateIpAddress");
        if private_ips.is_empty() {
            private_ips = texts(element, "privateIpAddress");
        }
        Ok(Self {
            id: element.value_at("networkInterfaceId")?,
            device_index: element.value_at("attachment/deviceIndex").ok(),
            status: text(element, "status").unwrap_or_default(),
            zone: text(element, "availabilityZone"),
            private_dns_name: text(element, "privateDnsName"),
            private_ips,
            ipv6: texts(element, "ipv6AddressesSet/item/ipv6Address"),
        })
    }
}

/// An EC2 instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ec2Instance {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) vpc: Option<String>,
    pub(crate) subnet: Option<String>,
    pub(crate) private_dns_name: Option<String>,
    pub(crate) public_dns_name: Option<String>,
    pub(crate) public_ip: Option<String>,
    pub(crate) source_dest_check: bool,
    pub(crate) groups: Vec<String>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) tags: Tags,
}

impl FromXml for Ec2Instance {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let interfaces = element.all_at("networkInterfaceSet/item");
        let interfaces: Result<Vec<_>, _> = interfaces.map(Interface::from_xml).collect();
        let mut interfaces = interfaces?;
        // One without an attachment is last.
        interfaces.sort_by_key(|nic| nic.device_index.unwrap_or(u32::MAX));
        Ok(Self {
            id: element.value_at("instanceId")?,
            state: element.value_at("instanceState/name")?,
            instance_type: text(element, "instanceType").unwrap_or_default(),
            zone: element.value_at("placement/availabilityZone")?,
            vpc: text(element, "vpcId"),
            subnet: text(element, "subnetId"),
            private_dns_name: text(element, "privateDnsName"),
            public_dns_name: text(element, "dnsName"),
            public_ip: text(element, "ipAddress"),
            source_dest_check: element.text_at("sourceDestCheck") != Some("false"),
            groups: texts(element, "groupSet/item/groupId"),
            interfaces,
            tags: ec2_tags(element),
        })
    }
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Subnet {
    pub(crate) id: String,
    pub(crate) zone: String,
    pub(crate) cidr: String,
    pub(crate) tags: Tags,
}

impl FromXml for Subnet {
    fn from_xml(element: &Element) -> Result<Self, String> {
        Ok(Self {
            id: element.value_at("subnetId")?,
            zone: element.value_at("availabilityZone")?,
            cidr: text(element, "cidrBlock").unwrap_or_default(),
            tags: ec2_tags(element),
        })
    }
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) destination: Option<IpNet>,
    pub(crate) instance: Option<String>,
    pub(crate) gateway: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) is_blackhole: bool,
}

/// A route table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouteTable {
    pub(crate) id: String,
    pub(crate) is_main: bool,
    pub(crate) tags: Tags,
    pub(crate) subnets: BTreeSet<String>,
    pub(crate) routes: Vec<Route>,
}

impl FromXml for RouteTable {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let route = |route: &Element| Route {
            destination: text(route, "destinationCidrBlock").and_then(|cidr| cidr.parse().ok()),
            instance: text(route, "instanceId"),
            gateway: text(route, "gatewayId"),
            interface: text(route, "networkInterfaceId"),
            is_blackhole: route.text_at("state") == Some("blackhole"),
        };
        let mains = texts::<Vec<String>>(element, "associationSet/item/main");
        Ok(Self {
            id: element.value_at("routeTableId")?,
            is_main: mains.iter().any(|main| main == "true"),
            tags: ec2_tags(element),
            subnets: texts(element, "associationSet/item/subnetId"),
            routes: element.all_at("routeSet/item").map(route).collect(),
        })
    }
}

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    /// `availability-zone`, unless it is a local one or the like.
    pub(crate) kind: Option<String>,
}

impl FromXml for Zone {
    fn from_xml(element: &Element) -> Result<Self, String> {
        Ok(Self {
            name: element.value_at("zoneName")?,
            id: text(element, "zoneId"),
            kind: text(element, "zoneType"),
        })
    }
}

/// Where an instance is in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) instance: String,
    pub(crate) nodes: Vec<String>,
}

impl FromXml for Topology {
    fn from_xml(element: &Element) -> Result<Self, String> {
        Ok(Self {
            instance: element.value_at("instanceId")?,
            nodes: texts(element, "networkNodeSet/item"),
        })
    }
}

/// Who may connect: one source of one range of ports. EC2 joins rules of the same ports, and shows them joined; here
/// each stands for itself, so that they can be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) protocol: String,
    pub(crate) from: Option<i32>,
    pub(crate) to: Option<i32>,
    pub(crate) source: Source,
}

/// Where connections come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A network.
    Cidr(String),
    /// The members of a group.
    Group(String),
    /// Another kind, which is never changed.
    Other(String),
}

/// A security group with the rules for incoming connections, and the description of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SecurityGroup {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Tags,
    pub(crate) rules: BTreeMap<Rule, Option<String>>,
}

impl FromXml for SecurityGroup {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let mut rules = BTreeMap::new();
        for permission in element.all_at("ipPermissions/item") {
            rules.extend(rules_of(permission)?);
        }
        Ok(Self {
            id: element.value_at("groupId")?,
            name: text(element, "groupName").unwrap_or_default(),
            description: text(element, "groupDescription").unwrap_or_default(),
            tags: ec2_tags(element),
            rules,
        })
    }
}

/// Where sources of one kind are, the field that names them, and what they are.
type Kind = (&'static str, &'static str, fn(String) -> Source);

/// The rules that a joined one stands for.
fn rules_of(permission: &Element) -> Result<Vec<(Rule, Option<String>)>, String> {
    let protocol: String = permission.value_at("ipProtocol")?;
    let (from, to) = (
        permission.value_at("fromPort").ok(),
        permission.value_at("toPort").ok(),
    );
    let kinds: [Kind; 4] = [
        ("ipRanges/item", "cidrIp", Source::Cidr),
        ("ipv6Ranges/item", "cidrIpv6", Source::Other),
        ("groups/item", "groupId", Source::Group),
        ("prefixListIds/item", "prefixListId", Source::Other),
    ];
    let mut rules = Vec::new();
    for (path, field, source) in kinds {
        for item in permission.all_at(path) {
            let rule = Rule {
                protocol: protocol.clone(),
                from,
                to,
                source: source(item.value_at(field)?),
            };
            rules.push((rule, text(item, "description")));
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests;
