//! What is known of a balancer afterwards.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Plan, TargetHealth};
use crate::{CloudError, ErrorKind, ServiceRef};

/// `ipMode` of an ingress address.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum IpMode {
    /// Traffic arrives at the node with the balancer's address as destination.
    #[default]
    #[serde(rename = "VIP")]
    Vip,
    /// The balancer is not transparent, so pods must not take a short cut past it.
    Proxy,
}

/// Where clients find a balancer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ingress {
    /// At an address. The mode is always given: the API server defaults it, and an absent one
    /// would look like a change for ever.
    Ip {
        /// The address.
        ip: IpAddr,
        /// Its mode.
        mode: IpMode,
    },
    /// At a name.
    Hostname(String),
}

impl Ingress {
    /// The address or name alone.
    pub fn place(&self) -> String {
        match self {
            Self::Ip { ip, .. } => ip.to_string(),
            Self::Hostname(name) => name.clone(),
        }
    }
}

/// What is there of a balancer, and where clients find it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerStatus {
    /// Whether it exists. Some clouds have no single object with an ID for it.
    pub exists: bool,
    /// The cloud's ID, if it has one.
    pub id: Option<String>,
    /// Where clients find it.
    pub ingress: Vec<Ingress>,
    /// How many targets drain that are not asked for any more.
    pub draining: usize,
    /// The health of its targets, where the observation shows it. Nothing is planned from it.
    pub health: Vec<TargetHealth>,
}

impl LoadBalancerStatus {
    /// A balancer that exists under this ID.
    pub fn of(id: impl Into<String>, ingress: Vec<Ingress>) -> Self {
        Self {
            exists: true,
            id: Some(id.into()),
            ingress,
            draining: 0,
            health: Vec::new(),
        }
    }
}

/// What a provider asks to have written to the Service. `None` removes an annotation or a condition; what is so
/// already causes no write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceChanges {
    /// Annotations, by key.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Conditions of the status, by type.
    pub conditions: BTreeMap<String, Option<ServiceCondition>>,
}

impl ServiceChanges {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.conditions.is_empty()
    }

    /// Asks for an annotation.
    pub fn annotate(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.annotations.insert(key.into(), Some(value.into()));
    }

    /// Asks for an annotation, unless it is among the present ones with this value, or there is no value yet.
    pub fn ensure_annotation(
        &mut self,
        present: &BTreeMap<String, String>,
        key: &str,
        value: &str,
    ) {
        if !value.is_empty() && present.get(key).is_none_or(|now| now != value) {
            self.annotate(key, value);
        }
    }
}

/// A condition of a Service's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCondition {
    /// Whether it holds.
    pub status: bool,
    /// Why, in one `CamelCase` word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// How far a desired state has come true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The balancer is as desired.
    Settled {
        /// Its ID and addresses.
        status: LoadBalancerStatus,
        /// What the Service is to carry.
        changes: ServiceChanges,
        /// What was done for it; empty if nothing differed.
        done: Plan,
    },
    /// Not all of the desired state came true. What could be done was done. The balancer is there, unless `status` says
    /// otherwise: then it could not be made, and the Service is to carry something all the same.
    Incomplete {
        /// Its ID and addresses, which can be published.
        status: LoadBalancerStatus,
        /// What the Service is to carry.
        changes: ServiceChanges,
        /// What was done.
        done: Plan,
        /// What was not, and why.
        failures: Failures,
    },
    /// The cloud is still at it. Not a failure: look again, without holding a worker meanwhile.
    Pending {
        /// What it is waiting for, for people.
        why: String,
        /// When to look again.
        check_after: Duration,
        /// What is there of it already, if it exists.
        status: Option<LoadBalancerStatus>,
        /// What the Service is to carry.
        changes: ServiceChanges,
        /// What was done so far.
        done: Plan,
        /// Of a removal: whether the cloud has agreed to remove everything that was there.
        acknowledged: bool,
    },
    /// Nothing of it is left, but for what must not be deleted.
    Gone {
        /// What was done for it; empty if nothing was there.
        done: Plan,
        /// What stays on purpose although the Service goes, in words: what is protected from deletion, disowned
        /// or released.
        kept: Vec<String>,
        /// Whether the cloud has removed everything that was there at our word. If not, it may be that
        /// nothing was there, that another client was faster, or that this is not the project any more in
        /// which it was seen.
        acknowledged: bool,
    },
}

impl Outcome {
    /// The steps that were carried out.
    pub const fn done(&self) -> &Plan {
        match self {
            Self::Settled { done, .. }
            | Self::Incomplete { done, .. }
            | Self::Pending { done, .. }
            | Self::Gone { done, .. } => done,
        }
    }
}

/// What was not done of a desired state, and why: all of it in one sentence, with the kind that says when to try
/// again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// What the caller should do about them. [`NotFound`](ErrorKind::NotFound): the machines of targets are
    /// missing, and nothing else failed.
    pub kind: ErrorKind,
    /// Every one of them, for people.
    pub message: String,
    /// What differs from one attempt to the next, for logs.
    pub details: Option<String>,
}

impl Failures {
    /// Something that failed, for people.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: None,
        }
    }

    /// Something that the operator has to change first.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The same as an error.
    pub fn to_error(&self) -> CloudError {
        let error = CloudError::new(Self::OPERATION, self.kind, self.message.as_str());
        match &self.details {
            Some(details) => error.with_details(details.as_str()),
            None => error,
        }
    }

    /// Whether the cloud works and refused something. Then the rest was carried out, which it was not if
    /// the cloud is in trouble or asked for a pause.
    pub const fn are_refusals(&self) -> bool {
        match self.kind {
            ErrorKind::Throttled { .. }
            | ErrorKind::Unauthenticated
            | ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::Malformed
            | ErrorKind::Incomplete
            | ErrorKind::Cancelled => false,
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::Busy
            | ErrorKind::Denied
            | ErrorKind::Invalid
            | ErrorKind::LimitExceeded
            | ErrorKind::NotOurs
            | ErrorKind::Unsupported
            | ErrorKind::ImplementedElsewhere
            | ErrorKind::Other => true,
        }
    }

    pub(super) const OPERATION: &str = "apply load balancer";
}

impl From<&CloudError> for Failures {
    fn from(error: &CloudError) -> Self {
        Self {
            kind: error.kind(),
            message: if error.operation() == Self::OPERATION {
                error.message().to_owned()
            } else {
                error.cause()
            },
            details: error.all_details(),
        }
    }
}

/// What kind of thing a cloud made for a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceKind {
    /// A load balancer.
    LoadBalancer,
    /// A reserved or floating address.
    Address,
    /// A security group, or rules of a firewall.
    SecurityGroup,
    /// A certificate.
    Certificate,
    /// A group of targets that is an object of its own.
    TargetGroup,
}

impl ResourceKind {
    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load balancer",
            Self::Address => "address",
            Self::SecurityGroup => "security group",
            Self::Certificate => "certificate",
            Self::TargetGroup => "target group",
        }
    }
}

/// Something in the cloud that carries this cluster's owner labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedResource {
    /// What it is.
    pub kind: ResourceKind,
    /// The cloud's ID.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// The Service it was made for, as far as its labels tell.
    pub service: Option<ServiceRef>,
}

/// Something in the cloud that names a Service of a cluster called as this one, without proof that it is this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnprovenResource {
    /// What it is. Its Service has no UID where only the name is known.
    pub resource: OwnedResource,
    /// What is missing for a proof, for people.
    pub why: String,
}
