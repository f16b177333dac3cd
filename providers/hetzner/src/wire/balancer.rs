//! Load balancers, their types and their certificates, as the API shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cloudkeel_toolkit::json::null_as_default;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_field_names, reason = "as the API names it")]
pub(crate) struct LoadBalancer {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) public_net: PublicNet,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) private_net: Vec<PrivateNet>,
    pub(crate) load_balancer_type: BalancerType,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) protection: Protection,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) algorithm: AlgorithmField,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) services: Vec<Service>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PublicNet {
    pub(crate) enabled: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) ipv4: PublicAddress,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) ipv6: PublicAddress,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct PublicAddress {
    /// Missing while the balancer is being built.
    pub(crate) ip: Option<IpAddr>,
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

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct AlgorithmField {
    #[serde(rename = "type")]
    pub(crate) name: String,
}

/// A type of load balancers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct BalancerType {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) max_targets: usize,
    pub(crate) max_services: usize,
    pub(crate) deprecation: Option<Deprecation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Deprecation {
    pub(crate) unavailable_after: Timestamp,
}

/// What a balancer listens for: as it is, or as it should be. What should be and is `None` is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Service {
    pub(crate) protocol: String,
    pub(crate) listen_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) proxyprotocol: Option<bool>,
    pub(crate) http: Option<ServiceHttp>,
    pub(crate) health_check: ServiceCheck,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(crate) struct ServiceHttp {
    pub(crate) cookie_name: Option<String>,
    pub(crate) cookie_lifetime: Option<u64>,
    pub(crate) certificates: Option<BTreeSet<u64>>,
    pub(crate) redirect_http: Option<bool>,
    pub(crate) sticky_sessions: Option<bool>,
    pub(crate) timeout_idle: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(crate) struct ServiceCheck {
    pub(crate) protocol: String,
    pub(crate) port: u16,
    pub(crate) interval: Option<u64>,
    pub(crate) timeout: Option<u64>,
    pub(crate) retries: Option<u32>,
    pub(crate) http: Option<ServiceCheckHttp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub(crate) struct ServiceCheckHttp {
    pub(crate) domain: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) status_codes: Option<Vec<String>>,
    pub(crate) tls: Option<bool>,
}

/// Where a balancer leads. What is neither a server nor an address is left alone, but counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Target {
    pub(crate) server: Option<TargetServer>,
    pub(crate) ip: Option<TargetIp>,
    pub(crate) label_selector: Option<TargetSelector>,
    pub(crate) use_private_ip: Option<bool>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) health_status: HealthStatuses,
}

/// The health of a target for each port. It changes by itself, so two targets that differ only in it are equal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct HealthStatuses(pub(crate) Vec<HealthStatus>);

impl PartialEq for HealthStatuses {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for HealthStatuses {}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HealthStatus {
    pub(crate) listen_port: Option<u16>,
    pub(crate) status: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct TargetServer {
    pub(crate) id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
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
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) labels: BTreeMap<String, String>,
    /// Only managed ones have one.
    pub(crate) status: Option<CertificateStatus>,
    /// The balancers that serve it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) used_by: Vec<ResourceId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ResourceId {
    pub(crate) id: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct CertificateStatus {
    pub(crate) issuance: Option<String>,
    pub(crate) error: Option<ActionError>,
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
                Issuance::Failed(
                    why.map_or_else(|| "no reason given".to_owned(), ActionError::text),
                )
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
    pub(crate) error: Option<ActionError>,
}

/// Why work failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ActionError {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl ActionError {
    pub(crate) fn text(&self) -> String {
        format!("{} ({})", self.message, self.code)
    }
}
