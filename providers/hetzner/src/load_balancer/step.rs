//! What can be done to a balancer, as data.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::service::WantedService;
use super::targets::TargetAt;
use crate::config::Algorithm;

/// One call that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Makes a balancer without services and targets.
    Create(Box<NewBalancer>),
    /// Has a certificate issued.
    IssueCertificate(NewCertificate),
    /// Renames a balancer, or puts our marks on it.
    Update {
        /// Which.
        id: u64,
        /// Its new name.
        name: Option<String>,
        /// All its labels.
        labels: Option<BTreeMap<String, String>>,
    },
    /// Changes one thing.
    Change {
        /// Which balancer.
        id: u64,
        /// What.
        change: Change,
    },
    /// Deletes a balancer.
    Delete {
        /// Which.
        id: u64,
    },
}

/// A balancer that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBalancer {
    pub(super) name: String,
    /// The number and the name of its type.
    pub(super) kind: (u64, String),
    pub(super) labels: BTreeMap<String, String>,
    pub(super) place: Place,
    pub(super) algorithm: Option<Algorithm>,
    pub(super) public: Option<bool>,
}

/// Where a balancer is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Location(String),
    NetworkZone(String),
}

/// A certificate that is to be issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewCertificate {
    pub(super) name: String,
    pub(super) domains: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
}

/// One change of a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Ptr {
        ip: IpAddr,
        name: String,
    },
    Algorithm(Algorithm),
    Type {
        id: u64,
        name: String,
    },
    Detach {
        network: u64,
    },
    Attach {
        network: u64,
        ip: Option<Ipv4Addr>,
        range: Option<IpNet>,
    },
    Public(bool),
    AddService(WantedService),
    UpdateService(WantedService),
    DeleteService(u16),
    AddTarget {
        at: TargetAt,
        private: bool,
    },
    RemoveTarget(TargetAt),
}

impl NewBalancer {
    pub(super) fn body(&self) -> Value {
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
        put("name", json!(self.name));
        put("load_balancer_type", json!(self.kind.0));
        put("labels", json!(self.labels));
        match &self.place {
            Place::Location(location) => put("location", json!(location)),
            Place::NetworkZone(zone) => put("network_zone", json!(zone)),
        };
        if let Some(algorithm) = self.algorithm {
            put("algorithm", json!({"type": algorithm.as_str()}));
        }
        if let Some(public) = self.public {
            put("public_interface", json!(public));
        }
        Value::Object(body)
    }
}

impl NewCertificate {
    pub(super) fn body(&self) -> Value {
        json!({
            "name": self.name,
            "type": "managed",
            "domain_names": self.domains,
            "labels": self.labels,
        })
    }
}

impl Change {
    /// The cloud's word for it.
    pub(super) const fn verb(&self) -> &'static str {
        match self {
            Self::Ptr { .. } => "change_dns_ptr",
            Self::Algorithm(_) => "change_algorithm",
            Self::Type { .. } => "change_type",
            Self::Detach { .. } => "detach_from_network",
            Self::Attach { .. } => "attach_to_network",
            Self::Public(true) => "enable_public_interface",
            Self::Public(false) => "disable_public_interface",
            Self::AddService(_) => "add_service",
            Self::UpdateService(_) => "update_service",
            Self::DeleteService(_) => "delete_service",
            Self::AddTarget { .. } => "add_target",
            Self::RemoveTarget(_) => "remove_target",
        }
    }

    /// What the cloud is sent.
    pub(super) fn body(&self) -> Option<Value> {
        Some(match self {
            Self::Ptr { ip, name } => json!({"ip": ip.to_string(), "dns_ptr": name}),
            Self::Algorithm(algorithm) => json!({"type": algorithm.as_str()}),
            Self::Type { id, .. } => json!({"load_balancer_type": id}),
            Self::Detach { network } => json!({"network": network}),
            Self::Attach { network, ip, range } => {
                let mut body = Map::from_iter([("network".to_owned(), json!(network))]);
                if let Some(ip) = ip {
                    body.insert("ip".to_owned(), json!(ip.to_string()));
                }
                if let Some(range) = range {
                    // A network, also if it was written as an address in it.
                    let network = range.trunc().to_string();
                    body.insert("ip_range".to_owned(), json!(network));
                }
                Value::Object(body)
            }
            Self::Public(_) => return None,
            Self::AddService(service) | Self::UpdateService(service) => service.body(),
            Self::DeleteService(port) => json!({"listen_port": port}),
            Self::AddTarget { at, private } => at.body(Some(*private)),
            Self::RemoveTarget(at) => at.body(None),
        })
    }
}

impl cloudkeel_api::Step for Step {
    fn is_destructive(&self) -> bool {
        match self {
            Self::Delete { .. } => true,
            Self::Change { change, .. } => matches!(
                change,
                Change::Detach { .. }
                    | Change::Public(false)
                    | Change::DeleteService(_)
                    | Change::RemoveTarget(_)
            ),
            Self::Create(_) | Self::IssueCertificate(_) | Self::Update { .. } => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(new) => {
                let place = match &new.place {
                    Place::Location(place) | Place::NetworkZone(place) => place,
                };
                let (_, kind) = &new.kind;
                write!(f, "create load balancer {} ({kind}) in {place}", new.name)
            }
            Self::IssueCertificate(new) => {
                let domains = new.domains.join(", ");
                write!(f, "issue certificate {} for {domains}", new.name)
            }
            Self::Update { id, name, labels } => match (name, labels) {
                (Some(name), None) => write!(f, "rename load balancer {id} to {name}"),
                (None, _) => write!(f, "adopt load balancer {id}"),
                (Some(name), Some(_)) => write!(f, "adopt load balancer {id} as {name}"),
            },
            Self::Change { id, change } => write!(f, "{change} at load balancer {id}"),
            Self::Delete { id } => write!(f, "delete load balancer {id}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptr { ip, name } => write!(f, "set the reverse DNS of {ip} to {name}"),
            Self::Algorithm(algorithm) => write!(f, "set algorithm {}", algorithm.as_str()),
            Self::Type { name, .. } => write!(f, "change type to {name}"),
            Self::Detach { network } => write!(f, "detach from network {network}"),
            Self::Attach { network, .. } => write!(f, "attach to network {network}"),
            Self::Public(true) => f.write_str("enable the public interface"),
            Self::Public(false) => f.write_str("disable the public interface"),
            Self::AddService(service) => write!(f, "add service on port {}", service.listen_port),
            Self::UpdateService(service) => {
                write!(f, "update service on port {}", service.listen_port)
            }
            Self::DeleteService(port) => write!(f, "delete service on port {port}"),
            Self::AddTarget { at, .. } => write!(f, "add {at}"),
            Self::RemoveTarget(at) => write!(f, "remove {at}"),
        }
    }
}
