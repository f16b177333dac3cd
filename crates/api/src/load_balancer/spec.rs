//! What a Service asks of a balancer, in words every cloud understands.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::{
    ClusterIdentity, HealthCheck, Ingress, IpFamily, IpMode, NodeFacts, OtherServices, Shared,
};

/// Which Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ServiceRef {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`: the owner label by which its balancer is recognised.
    pub uid: String,
}

/// As many digits of a UID as fit into a balancer's default name.
const DIGITS_IN_NAME: usize = 31;

impl ServiceRef {
    /// Whether this Service has that UID. One that a cloud keeps in a balancer's name only lacks its last digit.
    pub fn has_uid(&self, uid: &str) -> bool {
        let digits = |uid: &str| uid.replace('-', "");
        let own = digits(&self.uid);
        self.uid == uid || own.len() == DIGITS_IN_NAME && digits(uid).starts_with(&own)
    }

    /// The name that upstream gives a balancer: `a`, then the UID without dashes, 32 bytes in all.
    pub fn default_balancer_name(&self) -> String {
        let mut name: String = std::iter::once('a')
            .chain(self.uid.chars().filter(|c| *c != '-'))
            .collect();
        let end = name.floor_char_boundary(1 + DIGITS_IN_NAME);
        name.truncate(end);
        name
    }
}

impl fmt::Display for ServiceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The Service that owns a balancer, and everything on it that points at one.
///
/// A balancer is ours if its owner labels have this Service's UID. Labels without a UID count
/// only if the Service points back at that balancer by an annotation or its status. Any other
/// balancer is [`NotOurs`](crate::ErrorKind::NotOurs), unless `adopt` names it. One that another Service
/// of the cluster has is never adopted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerRef {
    /// The cluster.
    pub cluster: ClusterIdentity,
    /// The Service.
    pub service: ServiceRef,
    /// `spec.loadBalancerClass`
    pub class: Option<String>,
    /// All labels of the Service.
    pub labels: BTreeMap<String, String>,
    /// All annotations of the Service, for the provider's own keys.
    pub annotations: BTreeMap<String, String>,
    /// All finalizers of the Service: some clouds' other controllers mark theirs so.
    pub finalizers: Vec<String>,
    /// `spec.ipFamilyPolicy`
    pub ip_family_policy: Option<IpFamilyPolicy>,
    /// What the status of the Service says now.
    pub ingress: Vec<Ingress>,
    /// The balancer to adopt, by the cloud's ID.
    pub adopt: Option<String>,
    /// The other Services that the same cloud serves.
    #[serde(skip)]
    pub others: OtherServices,
}

/// `ipFamilyPolicy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IpFamilyPolicy {
    /// One family.
    SingleStack,
    /// Both where the cloud can, else one.
    PreferDualStack,
    /// Both, or an error.
    RequireDualStack,
}

/// The transport of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP
    Tcp,
    /// UDP
    Udp,
    /// SCTP
    Sctp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        })
    }
}

/// One port of the Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// The port's name, if it has one.
    pub name: Option<String>,
    /// Transport.
    pub protocol: Protocol,
    /// Where the balancer listens.
    pub port: u16,
    /// Where the nodes listen. `None` if the Service allocates no node ports.
    pub node_port: Option<u16>,
    /// `appProtocol`, verbatim.
    pub app_protocol: Option<String>,
    /// How targets are checked for this port; worked out by the framework from the provider's
    /// policy and the neutral annotations. A provider's own annotations go on top.
    pub health_check: HealthCheck,
}

/// How a balancer reaches a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TargetBy {
    /// As a machine of this cloud, by its ID.
    #[default]
    Machine,
    /// By address: the node belongs to another cloud, or the provider only knows addresses.
    Address,
}

/// Whether a target is to get new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TargetState {
    /// Yes.
    #[default]
    Serving,
    /// No; those it has may end. Only given to a provider that [can drain](crate::Features::drain).
    Draining,
}

/// A node that should receive traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The node, shared by all who have it as a target.
    pub node: Shared<NodeFacts>,
    /// How to reach it.
    pub by: TargetBy,
    /// Whether it is to get new connections.
    pub state: TargetState,
}

/// `externalTrafficPolicy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub enum TrafficPolicy {
    /// Any node answers and may pass the traffic on.
    #[default]
    Cluster,
    /// Only nodes with an endpoint answer; the client's address is kept.
    Local,
}

/// `sessionAffinity`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Affinity {
    /// None.
    #[default]
    None,
    /// A client address sticks to its backend for this long.
    ClientIp {
        /// How long.
        timeout: Duration,
    },
}

/// How connections are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// One after the other.
    RoundRobin,
    /// To the one with the fewest.
    LeastConnections,
    /// By client address.
    SourceIp,
}

/// PROXY protocol towards the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyProtocol {
    /// Version 1, text.
    V1,
    /// Version 2, binary.
    V2,
}

/// The neutral `cloudkeel.dev/lb-…` options. `None` means: the provider's own default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// A name for the balancer.
    pub name: Option<String>,
    /// Only reachable inside.
    pub internal: Option<bool>,
    /// The cloud's size or type.
    pub size: Option<String>,
    /// How connections are spread.
    pub algorithm: Option<Algorithm>,
    /// PROXY protocol towards the targets; `Some(None)` switches it off.
    pub proxy_protocol: Option<Option<ProxyProtocol>>,
    /// How long a leaving target may finish its connections.
    pub drain: Option<Duration>,
    /// A hostname to publish in place of addresses.
    pub hostname: Option<String>,
    /// The `ipMode` of the addresses, in place of the cloud's own.
    pub ip_mode: Option<IpMode>,
    /// Targets that drain stay although they are not asked for any more: an earlier leader may have begun to drain
    /// them. Never asked for by a Service.
    pub keeps_draining: bool,
}

/// Everything a Service asks for.
///
/// Made from the Service and the Nodes by one pure function of the service controller. Listeners
/// keep the order of `spec.ports`, because some clouds name things by index; targets are ordered by
/// node name, so that plans are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerSpec {
    /// Whose balancer it is.
    pub balancer_ref: BalancerRef,
    /// The ports.
    pub listeners: Vec<Listener>,
    /// The nodes, by name: shared by all Services that have the same.
    pub targets: Shared<BTreeMap<String, Target>>,
    /// `ipFamilies`, in their order.
    pub families: Vec<IpFamily>,
    /// The requested address: the neutral annotation, else `spec.loadBalancerIP`.
    pub address: Option<IpAddr>,
    /// Which clients may connect; empty means all.
    pub source_ranges: Vec<IpNet>,
    /// `externalTrafficPolicy`
    pub traffic_policy: TrafficPolicy,
    /// `healthCheckNodePort`, set with the `Local` policy.
    pub health_check_node_port: Option<u16>,
    /// `sessionAffinity`
    pub affinity: Affinity,
    /// The neutral options.
    pub options: Options,
}

/// What should be true of a balancer.
#[derive(Debug, Clone, Copy)]
pub enum DesiredState<'a> {
    /// It exists and looks like this.
    Present(&'a LoadBalancerSpec),
    /// Nothing of it is left.
    Absent(&'a BalancerRef),
    /// It is no longer the Service's: its owner labels are gone, and everything else of it stays.
    Released(&'a BalancerRef),
}

impl<'a> DesiredState<'a> {
    /// Whose balancer it is about.
    pub const fn balancer_ref(self) -> &'a BalancerRef {
        match self {
            Self::Present(spec) => &spec.balancer_ref,
            Self::Absent(balancer_ref) | Self::Released(balancer_ref) => balancer_ref,
        }
    }

    /// What is to be there, if anything is.
    pub const fn spec(self) -> Option<&'a LoadBalancerSpec> {
        match self {
            Self::Present(spec) => Some(spec),
            Self::Absent(_) | Self::Released(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_is_the_uid_cut_to_32_bytes() {
        let service = ServiceRef {
            namespace: "default".into(),
            name: "web".into(),
            uid: "12345678-1234-1234-1234-123456789abc".into(),
        };
        assert_eq!(
            service.default_balancer_name(),
            "a123456781234123412341234567 89ab".replace(' ', "")
        );
        assert_eq!(service.default_balancer_name().len(), 32);
        assert_eq!(service.to_string(), "default/web");
    }
}
