//! The security group that lets a load balancer reach the node ports.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_api::{BalancerRef, CloudError, LoadBalancerSpec, Priority, Protocol};
use cloudkeel_toolkit::OwnerText;
use ipnet::IpNet;

use super::OpenStackBalancers;
use super::capabilities::Capabilities;
use super::desired::{Desired, source_ranges};
use super::owner::{LONGEST, cut};
use crate::wire::network::{Port, SecurityGroup, Subnet, Traffic};

/// How long a list of groups serves while they are not managed.
const GROUPS_FRESH: Duration = Duration::from_mins(10);

/// For how many servers ports are asked for at once, so that the address of the request stays short.
const PORTS_AT_ONCE: usize = 50;

/// How the groups of Services are described. That of a load balancer that stays without its Service names no owner.
pub(super) const TEXT: OwnerText = OwnerText {
    before: "Security Group for ",
    between: " Service LoadBalancer in cluster ",
    longest: LONGEST,
};

/// What the names of the groups of Services begin with.
pub(super) const GROUP_PREFIX: &str = "lb-sg-";

/// The group of a Service as it is and as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Groups {
    pub(super) wanted: Option<WantedGroup>,
    pub(super) present: Option<SecurityGroup>,
    /// The ports that have it, if it is to go.
    pub(super) attached: Vec<Port>,
}

/// A group as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedGroup {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) rules: Vec<Traffic>,
    /// The ports of Nodes that should have it and do not.
    pub(super) ports: Vec<Port>,
}

/// As the Go CCM names the group of a Service.
fn group_name(balancer_ref: &BalancerRef) -> String {
    let service = &balancer_ref.service;
    cut(format!(
        "{GROUP_PREFIX}{}-{}-{}",
        service.uid, service.namespace, service.name
    ))
}

impl OpenStackBalancers {
    pub(super) async fn groups(
        &self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
        can: Capabilities,
    ) -> Result<Groups, CloudError> {
        if !self.config.load_balancers.manage_security_groups {
            return self.unmanaged(&spec.balancer_ref, GROUPS_FRESH).await;
        }
        let balancer_ref = &spec.balancer_ref;
        let name = group_name(balancer_ref);
        let present: Vec<SecurityGroup> = self.servers.api.all(&[("name", &name)]).await?;
        let present = present.into_iter().find(|group| group.name == name);
        let members = asked
            .listeners
            .first()
            .map(|listener| listener.members.as_slice())
            .unwrap_or_default();
        let subnet = members.first().and_then(|member| member.subnet_id.clone());
        let Some(subnet) = subnet.or_else(|| asked.network.member_subnet.clone()) else {
            // Without a subnet it is not known what to let through, so nothing is changed.
            return Ok(Groups::default());
        };
        let cidr = self
            .servers
            .api
            .get::<Subnet>(&subnet, Priority::Normal)
            .await?
            .cidr;
        let mut ports = self.ports_of_targets(spec).await?;
        let is_member = |port: &Port| {
            let fixed = port
                .fixed_ips
                .iter()
                .filter(|fixed| fixed.subnet_id == subnet);
            fixed.into_iter().any(|fixed| {
                members
                    .iter()
                    .any(|member| member.address == fixed.ip_address)
            })
        };
        let lacks_it = |port: &Port| {
            !present
                .as_ref()
                .is_some_and(|group| port.security_groups.contains(&group.id))
        };
        ports.retain(|port| port.port_security_enabled && is_member(port) && lacks_it(port));
        Ok(Groups {
            wanted: Some(WantedGroup {
                description: TEXT.owned(balancer_ref, self.cluster()),
                rules: rules(spec, cidr, can),
                name,
                ports,
            }),
            present,
            attached: Vec::new(),
        })
    }

    /// The group of a Service that goes.
    pub(super) async fn groups_of_removed(
        &self,
        balancer_ref: &BalancerRef,
    ) -> Result<Groups, CloudError> {
        self.unmanaged(balancer_ref, Duration::ZERO).await
    }

    /// A group that was made while groups were managed.
    async fn unmanaged(
        &self,
        balancer_ref: &BalancerRef,
        age: Duration,
    ) -> Result<Groups, CloudError> {
        let (api, name) = (&self.servers.api, group_name(balancer_ref));
        let present = if age.is_zero() {
            api.all(&[("name", &name)]).await?
        } else {
            let fields = [("fields", "id"), ("fields", "name")];
            let read = || api.all_with::<SecurityGroup>(&fields, Priority::Background);
            self.security_groups
                .no_older_than(age, read)
                .await?
                .to_vec()
        };
        let Some(present) = present.into_iter().find(|group| group.name == name) else {
            return Ok(Groups::default());
        };
        Ok(Groups {
            wanted: None,
            attached: api.all(&[("security_groups", &present.id)]).await?,
            present: Some(present),
        })
    }

    async fn ports_of_targets(&self, spec: &LoadBalancerSpec) -> Result<Vec<Port>, CloudError> {
        let ids = &self.servers.rules.ids;
        let targets = spec
            .targets
            .values()
            .filter_map(|target| target.node.provider_id.as_ref());
        let servers: Vec<String> = targets.filter_map(|id| ids.read(id).ok()).collect();
        let mut ports = Vec::new();
        for servers in servers.chunks(PORTS_AT_ONCE) {
            let filters: Vec<_> = servers
                .iter()
                .map(|id| ("device_id", id.as_str()))
                .collect();
            ports.extend(self.servers.api.all::<Port>(&filters).await?);
        }
        Ok(ports)
    }
}

/// What has to reach the Nodes: each node port, and the port of health checks. OVN keeps the addresses of clients.
fn rules(spec: &LoadBalancerSpec, subnet: IpNet, can: Capabilities) -> Vec<Traffic> {
    let sources = if can.is_ovn {
        source_ranges(spec)
    } else {
        BTreeSet::from([subnet])
    };
    let rule = |protocol: Protocol, port: u16, source: IpNet| Traffic {
        direction: "ingress".to_owned(),
        ethertype: if source.addr().is_ipv4() {
            "IPv4"
        } else {
            "IPv6"
        }
        .to_owned(),
        protocol: Some(protocol.to_string().to_lowercase()),
        port_range_min: Some(port),
        port_range_max: Some(port),
        remote_ip_prefix: Some(source),
    };
    let mut rules: Vec<Traffic> = Vec::new();
    let checks = spec
        .health_check_node_port
        .map(|port| rule(Protocol::Tcp, port, subnet));
    let ports = spec
        .listeners
        .iter()
        .filter_map(|port| Some((port.protocol, port.node_port?)));
    let ports = ports
        .flat_map(|(protocol, port)| sources.iter().map(move |source| (protocol, port, *source)));
    for wanted in checks
        .into_iter()
        .chain(ports.map(|(protocol, port, source)| rule(protocol, port, source)))
    {
        if !rules.contains(&wanted) {
            rules.push(wanted);
        }
    }
    rules
}

/// Whether two rules let the same through, whatever the case of their protocols.
pub(super) fn is_same_traffic(one: &Traffic, other: &Traffic) -> bool {
    let lower = |traffic: &Traffic| Traffic {
        protocol: traffic
            .protocol
            .as_ref()
            .map(|protocol| protocol.to_lowercase()),
        remote_ip_prefix: traffic.remote_ip_prefix.map(|prefix| prefix.trunc()),
        ..traffic.clone()
    };
    lower(one) == lower(other)
}
