//! What goes over the wire: the parts of Hetzner's answers that matter here.

mod balancer;

use std::net::{IpAddr, Ipv4Addr};

use cloudkeel_api::InstanceState;
use cloudkeel_toolkit::json::null_as_default;
use cloudkeel_toolkit::{HasId, resources};
use ipnet::{IpNet, Ipv6Net};
use serde::{Deserialize, Serialize};

pub(crate) use self::balancer::{
    Action, ActionError, AlgorithmField, BalancerType, Certificate, Issuance, LoadBalancer,
    ResourceId, Service, ServiceCheck, ServiceCheckHttp, ServiceHttp, Target, TargetIp,
    TargetServer,
};
#[cfg(test)]
pub(crate) use self::balancer::{
    HealthStatuses, PrivateNet as BalancerNet, Protection, PublicAddress,
    PublicNet as BalancerPublic, TargetSelector,
};

resources! {
    Server, id: u64 = "server", "servers";
    Network, id: u64 = "network", "networks";
    LoadBalancer, id: u64 = "load_balancer", "load_balancers";
    BalancerType, id: u64 = "load_balancer_type", "load_balancer_types";
    Certificate, id: u64 = "certificate", "certificates";
}

/// A cloud server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_field_names, reason = "as the API names it")]
pub(crate) struct Server {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) server_type: Named,
    /// Never the data centre, which the API no longer shows.
    pub(crate) location: Option<Named>,
    pub(crate) public_net: PublicNet,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) private_net: Vec<PrivateNet>,
}

/// Anything of which only the name matters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PublicNet {
    pub(crate) ipv4: Option<PublicIpv4>,
    pub(crate) ipv6: Option<PublicIpv6>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PublicIpv4 {
    pub(crate) ip: Ipv4Addr,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PublicIpv6 {
    /// All its addresses.
    pub(crate) ip: Ipv6Net,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PrivateNet {
    pub(crate) network: u64,
    pub(crate) ip: IpAddr,
}

impl Server {
    /// Its address in a network.
    pub(crate) fn ip_in(&self, network: u64) -> Option<IpAddr> {
        let mut nets = self.private_net.iter();
        nets.find(|net| net.network == network).map(|net| net.ip)
    }
}

/// A private network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Network {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) routes: Vec<Route>,
}

/// A route of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Route {
    pub(crate) destination: IpNet,
    pub(crate) gateway: IpAddr,
}

/// A dedicated server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct RobotServer {
    #[serde(rename = "server_number")]
    pub(crate) number: u64,
    #[serde(rename = "server_name", default, deserialize_with = "null_as_default")]
    pub(crate) name: String,
    /// Robot leaves it out, or empty, for servers without IPv4.
    #[serde(rename = "server_ip")]
    pub(crate) ip: Option<String>,
    /// A network without its prefix, such as `2a01:4f8:111:4221::`.
    #[serde(rename = "server_ipv6_net")]
    pub(crate) ipv6_net: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) product: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) dc: String,
    /// Another call shows it.
    #[serde(skip)]
    pub(crate) state: InstanceState,
}

impl HasId for RobotServer {
    type Id = u64;

    fn id(&self) -> u64 {
        self.number
    }
}

impl RobotServer {
    /// Its main address.
    pub(crate) fn ipv4(&self) -> Option<IpAddr> {
        self.ip.as_deref()?.parse().ok()
    }

    /// Its first IPv6 address.
    pub(crate) fn ipv6(&self) -> Option<IpAddr> {
        format!("{}1", self.ipv6_net.as_deref()?).parse().ok()
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RobotServerAnswer {
    pub(crate) server: RobotServer,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RobotResetAnswer {
    pub(crate) reset: RobotReset,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RobotReset {
    pub(crate) operating_status: Option<String>,
}

#[cfg(test)]
mod tests;
