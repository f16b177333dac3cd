//! What can be done to a balancer, as data.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use cloudkeel_api::StepAction;
use cloudkeel_toolkit::{Labels, json};
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::owner_labels::Aspect;
use super::targets::{TargetAt, TargetBody};
use crate::config::Algorithm;
use crate::wire::{AlgorithmField, Service};

/// One call that changes something. A number is the ID of the balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a plan has a handful of steps, nearly all of them changes"
)]
pub(crate) enum Step {
    /// Creates a balancer with everything that belongs to it.
    Create(Box<NewBalancer>),
    /// Has a certificate issued.
    IssueCertificate(NewCertificate),
    /// Adds our owner labels to a balancer: all its labels.
    Adopt(u64, Labels),
    /// Writes down what is set because the Service asked for it: all its labels.
    Label(u64, Labels),
    /// Renames a balancer.
    Rename(u64, String),
    /// Changes one thing.
    Change {
        /// Which balancer.
        id: u64,
        /// What.
        change: Change,
    },
    /// Takes our owner labels off a balancer, which stays: all its labels.
    Release(u64, Labels),
    /// Deletes a balancer.
    Delete(u64),
    /// Deletes a certificate that was issued for a Service that goes.
    DeleteCertificate(u64),
}

/// A balancer that is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewBalancer {
    pub(super) name: String,
    pub(super) load_balancer_type: u64,
    #[serde(skip)]
    pub(super) type_name: String,
    pub(super) labels: Labels,
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) algorithm: Option<AlgorithmField>,
    #[serde(rename = "public_interface")]
    pub(super) public: Option<bool>,
    /// The network that it is attached to, if it may have any address there.
    pub(super) network: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) services: Vec<Service>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) targets: Vec<TargetBody>,
}

/// Where a balancer is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    Location(String),
    NetworkZone(String),
}

/// A managed certificate that is to be issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewCertificate {
    pub(super) name: String,
    #[serde(rename = "domain_names")]
    pub(super) domains: Vec<String>,
    pub(super) labels: Labels,
}

/// One change of a balancer, with the body that the cloud is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Change {
    Ptr {
        ip: IpAddr,
        #[serde(rename = "dns_ptr")]
        name: String,
    },
    Algorithm {
        #[serde(rename = "type")]
        algorithm: Algorithm,
    },
    Type {
        #[serde(rename = "load_balancer_type")]
        id: u64,
        #[serde(skip)]
        name: String,
    },
    Detach {
        network: u64,
    },
    Attach {
        network: u64,
        ip: Option<Ipv4Addr>,
        ip_range: Option<IpNet>,
    },
    /// Out of the network and in again with another address; back with the old one if that is refused.
    Move {
        network: u64,
        ip: Option<Ipv4Addr>,
        ip_range: Option<IpNet>,
        #[serde(skip)]
        from: IpAddr,
    },
    #[serde(skip)]
    Public(bool),
    AddService(Service),
    UpdateService(Service),
    DeleteService {
        listen_port: u16,
    },
    #[serde(skip)]
    AddTarget {
        at: TargetAt,
        private: bool,
        /// Whether the balancer takes it only once it has its new type.
        needs_capacity: bool,
    },
    /// Out and in again in the other way; back in the old one if that is refused.
    #[serde(skip)]
    Retarget {
        at: TargetAt,
        private: bool,
    },
    #[serde(skip)]
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
}

#[derive(Serialize)]
struct ManagedCertificate<'a> {
    #[serde(rename = "type")]
    issued_by: &'static str,
    #[serde(flatten)]
    certificate: &'a NewCertificate,
}

impl NewCertificate {
    pub(super) fn body(&self) -> Value {
        json::body(&ManagedCertificate {
            issued_by: "managed",
            certificate: self,
        })
    }
}

impl Change {
    /// The aspects that it sets.
    pub(super) fn aspects(&self) -> &'static [Aspect] {
        match self {
            Self::Algorithm { .. } => &[Aspect::Algorithm],
            Self::Public(_) => &[Aspect::Public],
            Self::AddService(_) | Self::UpdateService(_) => &[Aspect::Check, Aspect::Proxy],
            _ => &[],
        }
    }

    /// The cloud's word for it.
    pub(super) const fn verb(&self) -> &'static str {
        match self {
            Self::Ptr { .. } => "change_dns_ptr",
            Self::Algorithm { .. } => "change_algorithm",
            Self::Type { .. } => "change_type",
            Self::Detach { .. } => "detach_from_network",
            Self::Attach { .. } | Self::Move { .. } => "attach_to_network",
            Self::Public(true) => "enable_public_interface",
            Self::Public(false) => "disable_public_interface",
            Self::AddService(_) => "add_service",
            Self::UpdateService(_) => "update_service",
            Self::DeleteService { .. } => "delete_service",
            Self::AddTarget { .. } | Self::Retarget { .. } => "add_target",
            Self::RemoveTarget { .. } => "remove_target",
        }
    }

    /// What the cloud is sent.
    pub(super) fn body(&self) -> Option<Value> {
        match self {
            Self::Public(_) => None,
            Self::AddTarget { at, private, .. } | Self::Retarget { at, private } => {
                Some(json::body(&at.body(Some(*private))))
            }
            Self::RemoveTarget { at, .. } => Some(json::body(&at.body(None))),
            other => Some(json::body(other)),
        }
    }
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> StepAction {
        match self {
            Self::Create(_) | Self::IssueCertificate(_) => StepAction::Create,
            Self::Change { change, .. } => match change {
                Change::AddService(_) | Change::AddTarget { .. } => StepAction::Create,
                Change::DeleteService { .. } | Change::RemoveTarget { .. } => StepAction::Delete,
                _ => StepAction::Change,
            },
            Self::Delete(_) | Self::DeleteCertificate(_) => StepAction::Delete,
            _ => StepAction::Change,
        }
    }

    fn depends_on(&self, failed: &Self) -> bool {
        match (self, failed) {
            // A certificate needs no balancer.
            (Self::IssueCertificate(_), _) => false,
            // A certificate that is in use cannot be deleted, and a balancer is released without what was ours.
            (Self::DeleteCertificate(_), Self::Delete(_))
            | (Self::Release(..), _)
            | (_, Self::Create(_) | Self::Adopt(..)) => true,
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
            // Without the network there is no way to a private target, without the type no capacity for more.
            Self::AddTarget {
                private,
                needs_capacity,
                ..
            } => match failed {
                Self::Attach { .. } | Self::Detach { .. } => *private,
                Self::Type { .. } => *needs_capacity,
                _ => false,
            },
            // The first that is refused is the last that is taken out.
            Self::Retarget { private, .. } => match failed {
                Self::Retarget { .. } => true,
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
                    | Self::Retarget { .. }
                    | Self::Attach { .. }
                    | Self::Detach { .. }
            ),
            _ => false,
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
                write!(
                    f,
                    "create load balancer {} ({}) in {place} with {} services and {} targets",
                    new.name,
                    new.type_name,
                    new.services.len(),
                    new.targets.len()
                )
            }
            Self::IssueCertificate(new) => {
                let domains = new.domains.join(", ");
                write!(f, "issue certificate {} for {domains}", new.name)
            }
            Self::Adopt(id, _) => write!(f, "adopt load balancer {id}"),
            Self::Label(id, _) => write!(f, "label load balancer {id}"),
            Self::Release(id, _) => write!(f, "release load balancer {id}"),
            Self::Rename(id, name) => write!(f, "rename load balancer {id} to {name}"),
            Self::Change { id, change } => write!(f, "{change} at load balancer {id}"),
            Self::Delete(id) => write!(f, "delete load balancer {id}"),
            Self::DeleteCertificate(id) => write!(f, "delete certificate {id}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptr { ip, name } => write!(f, "set the reverse DNS of {ip} to {name}"),
            Self::Algorithm { algorithm } => write!(f, "set algorithm {}", algorithm.as_str()),
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
            Self::DeleteService { listen_port } => {
                write!(f, "delete service on port {listen_port}")
            }
            Self::AddTarget { at, .. } => write!(f, "add {at}"),
            Self::Retarget { at, private: true } => {
                write!(f, "reach {at} through the network")
            }
            Self::Retarget { at, .. } => write!(f, "reach {at} by its public address"),
            Self::RemoveTarget { at, .. } => write!(f, "remove {at}"),
        }
    }
}
