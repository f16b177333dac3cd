//! Nodes as targets: their instances, or their addresses. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use cloudkeel_api::{
    IpFamily, LoadBalancerSpec, Protocol, Target, TargetBy, TargetHealth, TargetState,
};
use cloudkeel_toolkit::{Capacity, DesiredTargets, TargetDiff, address_of};
use ipnet::IpNet;

use super::desired::{ANYWHERE, Desired};
use super::observe::{GroupState, NetworkState, Observed};
use crate::config::BalancerType;
use crate::id::AwsId;
use crate::wire::{Ec2Instance, Subnet};

const RANGES_NEED_GROUP: &str = "source ranges hold for targets by address only if the load balancer has a security \
                                 group, which it gets when it is created with NLBSecurityGroupMode=Managed";

/// What the targets of a group are. A group keeps it for life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TargetType {
    /// Instances by their IDs.
    #[default]
    Instance,
    /// Addresses, which may be of Nodes outside the VPC.
    Ip,
}

impl TargetType {
    /// In the words of the API.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Ip => "ip",
        }
    }

    /// What the groups of a balancer have now.
    pub(super) fn of(network: &NetworkState) -> Option<Self> {
        let of_group = network.groups.first()?.group.target_type.as_str();
        let mut types = [Self::Instance, Self::Ip].into_iter();
        types.find(|it| it.as_str() == of_group)
    }
}

/// The targets that a balancer should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) target_type: TargetType,
    /// By the ID of the instance, or by the address.
    pub(super) wanted: DesiredTargets<String>,
    /// Addresses that are in no subnet of the VPC.
    pub(super) outside: BTreeSet<String>,
    /// How many a balancer takes.
    pub(super) limit: usize,
    /// The security groups that have to let the balancer in, or why they are not known.
    pub(super) node_groups: Result<BTreeSet<String>, String>,
    /// Nodes whose instance is not there.
    pub(super) missing: Vec<String>,
    /// Nodes that this balancer can never reach, and why.
    pub(super) refused: BTreeMap<String, String>,
}

impl Default for Targets {
    fn default() -> Self {
        Self {
            target_type: TargetType::Instance,
            wanted: DesiredTargets::default(),
            outside: BTreeSet::new(),
            limit: usize::MAX,
            node_groups: Ok(BTreeSet::new()),
            missing: Vec::new(),
            refused: BTreeMap::new(),
        }
    }
}

impl Targets {
    /// What differs where these are registered.
    pub(super) fn diff(&self, present: impl IntoIterator<Item = String>) -> TargetDiff<String> {
        let present = present.into_iter();
        let present = present.map(|id| (id, TargetState::Serving)).collect();
        let capacity = Capacity::of(self.limit);
        self.wanted.diff(&present, 0, capacity, |_| false)
    }
}

/// Where Nodes are looked for.
pub(super) struct Reach<'a> {
    pub(super) instances: &'a [Ec2Instance],
    /// All of the VPC.
    pub(super) subnets: &'a [Subnet],
    /// The type of the groups that there are.
    pub(super) present: Option<TargetType>,
    /// Why addresses cannot be targets, if they cannot.
    pub(super) refusal: Option<String>,
}

/// Why the balancer of a Service cannot have targets by address.
pub(super) fn refusal(
    desired: &Desired,
    present: Option<TargetType>,
    network: Option<&NetworkState>,
    manages_groups: bool,
) -> Option<String> {
    if desired.kind == BalancerType::Classic {
        return Some("a classic load balancer takes instances only".to_owned());
    }
    if desired
        .ports
        .iter()
        .any(|port| port.protocol == Protocol::Udp)
    {
        return Some("UDP does not reach addresses outside the VPC".to_owned());
    }
    let has_group = network.map_or(manages_groups, |it| !it.balancer.groups.is_empty());
    // What has such targets already keeps them, and reports the ranges.
    let is_kept = present == Some(TargetType::Ip);
    (!has_group && !is_kept && !is_open(desired)).then(|| RANGES_NEED_GROUP.to_owned())
}

/// What source ranges of a balancer with targets by address cannot do.
pub(super) fn unmet_ranges(desired: &Desired, have: &Observed) -> Option<String> {
    let network = have.network.as_ref()?;
    let is_by_address = have.targets.target_type == TargetType::Ip;
    let is_unmet = is_by_address && network.balancer.groups.is_empty() && !is_open(desired);
    is_unmet.then(|| RANGES_NEED_GROUP.to_owned())
}

fn is_open(desired: &Desired) -> bool {
    let mut ranges = desired.ranges.iter();
    ranges.any(|range| range.to_string() == ANYWHERE)
}

impl Reach<'_> {
    /// The targets of a Service. All of its Nodes are targets by address if one of them has to be.
    pub(super) fn targets(&self, spec: &LoadBalancerSpec) -> Targets {
        let target_type = self.target_type(spec);
        let (mut missing, mut refused, mut never) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let wanted = DesiredTargets::resolve(spec, |target| {
            let found = match (target_type, self.instance(target)) {
                (TargetType::Instance, Ok(instance)) => Ok(instance.id.clone()),
                (TargetType::Ip, Ok(instance)) => self.address(target, Some(instance)),
                (_, Err(why)) if target.by == TargetBy::Machine => Err(why),
                (TargetType::Ip, Err(_)) => self.address(target, None),
                (TargetType::Instance, Err(Unreached::Foreign(why))) => {
                    let why = self.refusal.clone().unwrap_or(why);
                    Err(Unreached::Refused(why))
                }
                (TargetType::Instance, Err(why)) => Err(why),
            };
            let name = &target.node.name;
            found.map_err(|unreached| match unreached {
                Unreached::Yet(why) | Unreached::Foreign(why) => why,
                Unreached::Missing(id) => {
                    missing.push(format!("{name} ({id})"));
                    "its instance is not there, or lacks the cluster's tag".to_owned()
                }
                Unreached::Never(why) => {
                    never.insert(name.clone());
                    why
                }
                Unreached::Refused(why) => {
                    refused.insert(name.clone(), why.clone());
                    why
                }
            })
        });
        let mut targets = Targets {
            target_type,
            wanted,
            missing,
            ..Targets::default()
        };
        // They never become targets, so nothing waits for them.
        targets
            .wanted
            .unresolved
            .retain(|node, _| !refused.contains_key(node) && !never.contains(node));
        targets.refused = refused;
        if target_type == TargetType::Ip {
            let outside = targets.wanted.places.keys();
            let outside = outside.filter(|place| !place.parse().is_ok_and(|ip| self.is_inside(ip)));
            targets.outside = outside.cloned().collect();
        }
        targets
    }

    fn target_type(&self, spec: &LoadBalancerSpec) -> TargetType {
        let mut targets = spec.targets.values();
        if spec.targets.is_empty() {
            self.present.unwrap_or_default()
        } else if self.refusal.is_none() && targets.any(|it| it.by == TargetBy::Address) {
            TargetType::Ip
        } else {
            TargetType::Instance
        }
    }

    /// The instance of a Node of this cloud.
    fn instance(&self, target: &Target) -> Result<&Ec2Instance, Unreached> {
        let id = target.node.provider_id.as_ref();
        let id = id.ok_or_else(|| Unreached::Yet("it has no provider ID yet".to_owned()))?;
        let id = match AwsId::read(id) {
            Ok(AwsId::Instance(id)) => id,
            Ok(AwsId::Fargate(_)) => {
                return Err(Unreached::Never("Fargate Nodes are no targets".to_owned()));
            }
            Err(error) => return Err(Unreached::Foreign(error.to_string())),
        };
        let is_live = |instance: &&Ec2Instance| {
            instance.id == id && !matches!(instance.state.as_str(), "terminated" | "shutting-down")
        };
        let found = self.instances.iter().find(is_live);
        found.ok_or(Unreached::Missing(id))
    }

    /// The address of a Node, which the API has to accept.
    fn address(&self, target: &Target, own: Option<&Ec2Instance>) -> Result<String, Unreached> {
        if let Some(address) = own.and_then(address_of_instance) {
            return Ok(address.clone());
        }
        let Some(ip) = address_of(&target.node, &[IpFamily::V4]) else {
            return Err(Unreached::Yet("it has no address yet".to_owned()));
        };
        let std::net::IpAddr::V4(ip) = ip else {
            let why = format!("it has no IPv4 address, only {ip}");
            return Err(Unreached::Refused(why));
        };
        // What outside the VPC can be a target: private and shared addresses.
        let is_shared = matches!(ip.octets(), [100, 64..=127, ..]);
        if ip.is_private() || is_shared || self.is_inside(ip) {
            return Ok(ip.to_string());
        }
        let why = format!("{ip} is a public address: expected one of the VPC or a private one");
        Err(Unreached::Refused(why))
    }

    fn is_inside(&self, ip: Ipv4Addr) -> bool {
        let mut networks = self.subnets.iter().filter_map(|it| it.cidr.parse().ok());
        networks.any(|network: IpNet| network.contains(&std::net::IpAddr::V4(ip)))
    }
}

/// Why a Node is no target.
enum Unreached {
    Yet(String),
    /// No balancer has such targets, and no Node is like that by mistake.
    Never(String),
    /// Its ID is not one of this cloud.
    Foreign(String),
    /// The ID of an instance that is not there.
    Missing(String),
    /// It never is one of this balancer.
    Refused(String),
}

/// The primary address of an instance.
pub(super) fn address_of_instance(instance: &Ec2Instance) -> Option<&String> {
    instance.interfaces.first()?.private_ips.first()
}

/// What the cloud says about each target, behind each port where it says that. A plan never depends on it.
pub(super) fn health(have: &Observed) -> Vec<TargetHealth> {
    let of = |id: &String, listener, state| {
        let node = have.targets.wanted.places.get(id);
        TargetHealth {
            target: node.map_or_else(|| id.clone(), |target| target.node.clone()),
            listener,
            state,
        }
    };
    let classic = have.classic.iter().flat_map(|classic| &classic.health);
    let mut all: Vec<_> = classic.map(|it| of(&it.id, None, it.state)).collect();
    let network = have.network.iter();
    let ports = network.flat_map(|it| it.listeners.iter().map(move |listener| (it, listener)));
    for (network, listener) in ports {
        let leads_to = |group: &&GroupState| listener.group.as_ref() == Some(&group.group.arn);
        let group = network.groups.iter().find(leads_to);
        let targets = group.into_iter().flat_map(|group| &group.targets);
        all.extend(targets.map(|it| of(&it.id, Some(listener.port), it.health)));
    }
    all
}
