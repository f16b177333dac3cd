//! Load balancers, their types and their certificates, as the API shows them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::Deserialize;

use super::nothing_if_null;

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LoadBalancer {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) public_net: PublicNet,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) private_net: Vec<PrivateNet>,
    #[serde(rename = "load_balancer_type")]
    pub(crate) kind: BalancerType,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) protection: Protection,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) algorithm: AlgorithmField,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) services: Vec<Service>,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PublicNet {
    pub(crate) enabled: bool,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) ipv4: PublicAddress,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) ipv6: PublicAddress,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct PublicAddress {
    /// Missing while the balancer is being built.
    #[serde(default)]
    pub(crate) ip: Option<IpAddr>,
    #[serde(default)]
    pub(crate) dns_ptr: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PrivateNet {
    pub(crate) network: u64,
    pub(crate) ip: IpAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct Protection {
    pub(crate) delete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AlgorithmField {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// A type of load balancers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct BalancerType {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) max_targets: usize,
    #[serde(default)]
    pub(crate) deprecation: Option<Deprecation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Deprecation {
    pub(crate) unavailable_after: Timestamp,
}

/// What a balancer listens for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Service {
    pub(crate) protocol: String,
    pub(crate) listen_port: u16,
    pub(crate) destination_port: u16,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) proxyprotocol: bool,
    #[serde(default)]
    pub(crate) http: Option<ServiceHttp>,
    pub(crate) health_check: ServiceCheck,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceHttp {
    pub(crate) cookie_name: Option<String>,
    pub(crate) cookie_lifetime: Option<u64>,
    #[serde(deserialize_with = "nothing_if_null")]
    pub(crate) certificates: Vec<u64>,
    #[serde(deserialize_with = "nothing_if_null")]
    pub(crate) redirect_http: bool,
    #[serde(deserialize_with = "nothing_if_null")]
    pub(crate) sticky_sessions: bool,
    pub(crate) timeout_idle: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ServiceCheck {
    pub(crate) protocol: String,
    pub(crate) port: u16,
    #[serde(default)]
    pub(crate) interval: Option<u64>,
    #[serde(default)]
    pub(crate) timeout: Option<u64>,
    #[serde(default)]
    pub(crate) retries: Option<u32>,
    #[serde(default)]
    pub(crate) http: Option<ServiceCheckHttp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceCheckHttp {
    pub(crate) domain: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) status_codes: Option<Vec<String>>,
    pub(crate) tls: Option<bool>,
}

/// Where a balancer leads. What is neither a server nor an address is left alone, but counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Target {
    #[serde(default)]
    pub(crate) server: Option<TargetServer>,
    #[serde(default)]
    pub(crate) ip: Option<TargetIp>,
    #[serde(default)]
    pub(crate) label_selector: Option<TargetSelector>,
    #[serde(default)]
    pub(crate) use_private_ip: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct TargetServer {
    pub(crate) id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct TargetIp {
    pub(crate) ip: IpAddr,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TargetSelector {}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default, deserialize_with = "nothing_if_null")]
    pub(crate) labels: BTreeMap<String, String>,
    /// Only managed ones have one.
    #[serde(default)]
    pub(crate) status: Option<CertificateStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct CertificateStatus {
    #[serde(default)]
    pub(crate) issuance: Option<String>,
    #[serde(default)]
    pub(crate) error: Option<Trouble>,
}

/// How far the cloud is with a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Issuance {
    Done,
    Pending,
    Failed(String),
}

impl Certificate {
    pub(crate) fn issuance(&self) -> Issuance {
        let Some(status) = &self.status else {
            return Issuance::Done;
        };
        match status.issuance.as_deref() {
            Some("pending") => Issuance::Pending,
            Some("failed") => {
                let why = status.error.as_ref();
                Issuance::Failed(why.map_or_else(|| "no reason given".to_owned(), Trouble::text))
            }
            _ => Issuance::Done,
        }
    }
}

/// Work that the cloud does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Action {
    pub(crate) id: u64,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) error: Option<Trouble>,
}

/// Why work failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl Trouble {
    pub(crate) fn text(&self) -> String {
        format!("{} ({})", self.message, self.code)
    }
}
