//! What is known of a balancer afterwards.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::ServiceRef;

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

/// The published face of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerStatus {
    /// The cloud's ID.
    pub id: Option<String>,
    /// Where clients find it.
    pub ingress: Vec<Ingress>,
}

/// Annotations that a provider asks to have written to the Service; `None` removes one.
pub type AnnotationChanges = BTreeMap<String, Option<String>>;

/// How far a wish has come true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The balancer is as wished.
    Settled {
        /// Its face.
        status: LoadBalancerStatus,
        /// What the provider wants remembered on the Service.
        annotations: AnnotationChanges,
        /// What was done for it; empty if nothing differed.
        done: Plan,
    },
    /// The cloud is still at it. Not a failure: look again, without holding a worker meanwhile.
    Pending {
        /// What it is waiting for, for people.
        why: String,
        /// When to look again.
        check_after: Duration,
        /// Its face, if it can be published already.
        status: Option<LoadBalancerStatus>,
        /// What the provider wants remembered on the Service.
        annotations: AnnotationChanges,
        /// What was done so far.
        done: Plan,
    },
    /// Nothing of it is left.
    Gone {
        /// What was done for it; empty if nothing was there.
        done: Plan,
    },
}

impl Outcome {
    /// The steps that were carried out.
    pub const fn done(&self) -> &Plan {
        match self {
            Self::Settled { done, .. } | Self::Pending { done, .. } | Self::Gone { done } => done,
        }
    }
}

/// A balancer in the cloud that carries this cluster's mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedBalancer {
    /// The cloud's ID.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// The Service it was made for, as far as its marks tell.
    pub service: Option<ServiceRef>,
}
