//! What can be done to a balancer, as data.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::marks::Aspect;
use super::service::WantedService;
use super::targets::TargetAt;
use crate::config::Algorithm;

/// One call that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Makes a balancer with everything that belongs to it.
    Create(Box<NewBalancer>),
    /// Has a certificate issued.
    IssueCertificate(NewCertificate),
    /// Puts our marks on a balancer.
    Adopt {
        /// Which.
        id: u64,
        /// All its labels.
        labels: BTreeMap<String, String>,
    },
    /// Writes down what is set because the Service asked for it.
    Label {
        /// Which.
        id: u64,
        /// All its labels.
        labels: BTreeMap<String, String>,
    },
    /// Renames a balancer.
    Rename {
        /// Which.
        id: u64,
        /// Its new name.
        name: String,
    },
    /// Changes one thing.
    Change {
        /// Which balancer.
        id: u64,
        /// What.
        change: Change,
    },
    /// Takes our owner labels off a balancer, which stays.
    Release {
        /// Which.
        id: u64,
        /// All its labels.
        labels: BTreeMap<String, String>,
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
    /// The network that it is attached to, if it may have any address there.
    pub(super) network: Option<u64>,
    pub(super) services: Vec<WantedService>,
    /// Servers, and whether they are reached through the network.
    pub(super) targets: Vec<(TargetAt, bool)>,
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
    /// Out of the network and in again with another address; back with the old one if that is refused.
    Move {
        network: u64,
        from: IpAddr,
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
        /// Whether there is only room for it once the balancer has its new type.
        needs_room: bool,
    },
    /// Out and in again in the other way; back in the old one if that is refused.
    TurnTarget {
        at: TargetAt,
        private: bool,
    },
    RemoveTarget {
        at: TargetAt,
        /// Whether one of the new targets has to be there before.
        is_last: bool,
    },
}

impl NewBalancer {
    /// Whether anything of it could be added later.
    pub(super) const fn has_parts(&self) -> bool {
        self.network.is_some()
            || self.algorithm.is_some()
            || !self.services.is_empty()
            || !self.targets.is_empty()
    }

    /// The same without what can be added later.
    pub(super) fn bare(&self) -> Self {
        Self {
            algorithm: None,
            network: None,
            services: Vec::new(),
            targets: Vec::new(),
            ..self.clone()
        }
    }

    pub(super) fn body(&self) -> Value {
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
        if let Some(network) = self.network {
            put("network", json!(network));
        }
        if !self.services.is_empty() {
            let services: Vec<_> = self.services.iter().map(WantedService::body).collect();
            put("services", json!(services));
        }
        if !self.targets.is_empty() {
            let targets = self.targets.iter();
            let targets: Vec<_> = targets
                .map(|(at, private)| at.body(Some(*private)))
                .collect();
            put("targets", json!(targets));
        }
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

impl Change {
    /// The aspects that it sets.
    pub(super) fn aspects(&self) -> Vec<Aspect> {
        match self {
            Self::Algorithm(_) => vec![Aspect::Algorithm],
            Self::Public(_) => vec![Aspect::Public],
            Self::AddService(_) | Self::UpdateService(_) => vec![Aspect::Check, Aspect::Proxy],
            Self::Ptr { .. }
            | Self::Type { .. }
            | Self::Detach { .. }
            | Self::Attach { .. }
            | Self::Move { .. }
            | Self::DeleteService(_)
            | Self::AddTarget { .. }
            | Self::TurnTarget { .. }
            | Self::RemoveTarget { .. } => Vec::new(),
        }
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
            Self::Attach { .. } | Self::Move { .. } => "attach_to_network",
            Self::Public(true) => "enable_public_interface",
            Self::Public(false) => "disable_public_interface",
            Self::AddService(_) => "add_service",
            Self::UpdateService(_) => "update_service",
            Self::DeleteService(_) => "delete_service",
            Self::AddTarget { .. } | Self::TurnTarget { .. } => "add_target",
            Self::RemoveTarget { .. } => "remove_target",
        }
    }

    /// What the cloud is sent.
    pub(super) fn body(&self) -> Option<Value> {
        Some(match self {
            Self::Ptr { ip, name } => json!({"ip": ip.to_string(), "dns_ptr": name}),
            Self::Algorithm(algorithm) => json!({"type": algorithm.as_str()}),
            Self::Type { id, .. } => json!({"load_balancer_type": id}),
            Self::Detach { network } => json!({"network": network}),
            Self::Attach { network, ip, range }
            | Self::Move {
                network, ip, range, ..
            } => {
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
            Self::AddTarget { at, private, .. } | Self::TurnTarget { at, private } => {
                at.body(Some(*private))
            }
            Self::RemoveTarget { at, .. } => at.body(None),
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
                    | Change::RemoveTarget { .. }
            ),
            Self::Create(_)
            | Self::IssueCertificate(_)
            | Self::Adopt { .. }
            | Self::Label { .. }
            | Self::Release { .. }
            | Self::Rename { .. } => false,
        }
    }

    fn depends_on(&self, failed: &Self) -> bool {
        match (self, failed) {
            // A certificate needs no balancer.
            (Self::IssueCertificate(_), _) => false,
            (_, Self::Create(_) | Self::Adopt { .. }) => true,
            (Self::Change { change, .. }, Self::Change { change: failed, .. }) => {
                change.depends_on(failed)
            }
            _ => false,
        }
    }
}

impl Change {
    /// What must not be done after something else was refused: it would be refused too, or take away what
    /// still serves.
    const fn depends_on(&self, failed: &Self) -> bool {
        match self {
            Self::Attach { .. } => matches!(failed, Self::Detach { .. }),
            // Without the network there is no way to a private target, without the type no room for more.
            Self::AddTarget {
                private,
                needs_room,
                ..
            } => match failed {
                Self::Attach { .. } | Self::Detach { .. } => *private,
                Self::Type { .. } => *needs_room,
                _ => false,
            },
            // The first that is refused is the last that is taken out.
            Self::TurnTarget { private, .. } => match failed {
                Self::TurnTarget { .. } => true,
                Self::Attach { .. } | Self::Detach { .. } => *private,
                _ => false,
            },
            Self::RemoveTarget { is_last, .. } => {
                *is_last && matches!(failed, Self::AddTarget { .. })
            }
            // A type shrinks when all fits.
            Self::Type { .. } => matches!(failed, Self::RemoveTarget { .. }),
            // The public side closes when nothing needs it any more.
            Self::Public(false) => matches!(
                failed,
                Self::RemoveTarget { .. }
                    | Self::TurnTarget { .. }
                    | Self::Attach { .. }
                    | Self::Detach { .. }
            ),
            Self::Ptr { .. }
            | Self::Algorithm(_)
            | Self::Detach { .. }
            | Self::Move { .. }
            | Self::Public(true)
            | Self::AddService(_)
            | Self::UpdateService(_)
            | Self::DeleteService(_) => false,
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
                write!(
                    f,
                    "create load balancer {} ({kind}) in {place} with {} services and {} targets",
                    new.name,
                    new.services.len(),
                    new.targets.len()
                )
            }
            Self::IssueCertificate(new) => {
                let domains = new.domains.join(", ");
                write!(f, "issue certificate {} for {domains}", new.name)
            }
            Self::Adopt { id, .. } => write!(f, "adopt load balancer {id}"),
            Self::Label { id, .. } => write!(f, "label load balancer {id}"),
            Self::Release { id, .. } => write!(f, "release load balancer {id}"),
            Self::Rename { id, name } => write!(f, "rename load balancer {id} to {name}"),
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
            Self::Move { network, ip, .. } => match ip {
                Some(ip) => write!(f, "change the address in network {network} to {ip}"),
                None => write!(f, "change the address in network {network}"),
            },
            Self::Public(true) => f.write_str("enable the public interface"),
            Self::Public(false) => f.write_str("disable the public interface"),
            Self::AddService(service) => write!(f, "add service on port {}", service.listen_port),
            Self::UpdateService(service) => {
                write!(f, "update service on port {}", service.listen_port)
            }
            Self::DeleteService(port) => write!(f, "delete service on port {port}"),
            Self::AddTarget { at, .. } => write!(f, "add {at}"),
            Self::TurnTarget { at, private: true } => {
                write!(f, "reach {at} through the network")
            }
            Self::TurnTarget { at, .. } => write!(f, "reach {at} by its public address"),
            Self::RemoveTarget { at, .. } => write!(f, "remove {at}"),
        }
    }
}
