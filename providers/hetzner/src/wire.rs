//! What goes over the wire: the parts of Hetzner's answers that matter here.

mod balancer;

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv6Net};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub(crate) use self::balancer::{
    Action, BalancerType, Certificate, Issuance, LoadBalancer, Service, ServiceCheck,
    ServiceCheckHttp, ServiceHttp, Target, Trouble,
};
#[cfg(test)]
pub(crate) use self::balancer::{
    AlgorithmField, PrivateNet as BalancerNet, Protection, PublicAddress,
    PublicNet as BalancerPublic, TargetIp, TargetSelector, TargetServer,
};

/// Go reads `null` as nothing, so whatever the API leaves open in that way is nothing here too. One odd
/// thing of somebody else must not make a whole list unreadable.
fn nothing_if_null<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    let value: Option<T> = Option::deserialize(deserializer)?;
    Ok(value.unwrap_or_default())
}

/// The part of a list that is the same for all.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Meta {
    pub(crate) pagination: Pagination,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Pagination {
    #[serde(default)]
    pub(crate) next_page: Option<u64>,
    #[serde(default)]
    pub(crate) total_entries: Option<u64>,
}

/// A list, whatever its things are called in it.
#[derive(Debug, Deserialize)]
pub(crate) struct List {
    #[serde(default)]
    pub(crate) meta: Option<Meta>,
    #[serde(flatten)]
    pub(crate) rest: serde_json::Map<String, Value>,
}

impl List {
    /// The things under this key.
    pub(crate) fn items<T: DeserializeOwned>(&mut self, key: &str) -> Result<Vec<T>, String> {
        let items = self.rest.remove(key);
        let items = items.ok_or_else(|| format!("it has no {key:?}"))?;
        serde_json::from_value(items).map_err(|error| format!("at {key}: {error}"))
    }
}

/// A cloud server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    #[serde(rename = "server_type")]
    pub(crate) kind: Named,
    /// Never the data centre, which the API no longer shows.
    #[serde(default)]
    pub(crate) location: Option<Named>,
    pub(crate) public_net: PublicNet,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) private_net: Vec<PrivateNet>,
}

/// Anything of which only the name matters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PublicNet {
    #[serde(default)]
    pub(crate) ipv4: Option<PublicIpv4>,
    #[serde(default)]
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
    #[serde(default, deserialize_with = "nothing_if_null")]
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
    #[serde(rename = "server_name", default, deserialize_with = "nothing_if_null")]
    pub(crate) name: String,
    /// Robot leaves it out, or empty, for servers without IPv4.
    #[serde(rename = "server_ip", default)]
    pub(crate) ip: Option<String>,
    /// A network without its prefix, such as `2a01:4f8:111:4221::`.
    #[serde(rename = "server_ipv6_net", default)]
    pub(crate) ipv6_net: Option<String>,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) product: String,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) dc: String,
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
    #[serde(default)]
    pub(crate) operating_status: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_null_is_nothing() {
        let read = |value: Value| serde_json::from_value::<RobotServer>(value).unwrap();
        let null = read(json!({
            "server_number": 7, "server_name": null, "server_ip": null, "server_ipv6_net": null,
            "product": null, "dc": null,
        }));
        assert_eq!(null, read(json!({"server_number": 7})));
        assert_eq!((null.ipv4(), null.ipv6()), (None, None));

        let balancer: LoadBalancer = serde_json::from_value(json!({
            "id": 1, "name": "b", "public_net": {"enabled": false, "ipv4": null, "ipv6": null},
            "load_balancer_type": {"id": 1, "name": "lb11", "max_targets": 25},
            "algorithm": {"type": "round_robin"}, "private_net": null, "protection": null,
            "labels": null, "targets": null,
            "services": [{
                "protocol": "http", "listen_port": 80, "destination_port": 80, "proxyprotocol": null,
                "http": {"certificates": null, "redirect_http": null, "sticky_sessions": null},
                "health_check": {"protocol": "tcp", "port": 80, "http": null},
            }],
        }))
        .unwrap();
        assert_eq!(balancer.services[0].http, Some(ServiceHttp::default()));
    }
}
