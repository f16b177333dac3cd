//! Load balancers: what is asked for, what is done, and the capability itself.

mod driver;
mod finder;
mod health;
mod ownership;
mod plain;
mod plan;
mod shared_list;
mod spec;
mod status;

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

pub use driver::{Busy, Driven, LoadBalancerDriver, Report, StepOutcome, Surveyed};
pub use finder::BalancerFinder;
pub use health::{HealthCheck, HealthCheckPolicy, HealthProbe};
pub use ownership::{Candidates, Claimable, Judged, Namesakes, Owner};
pub use plan::{Plan, PlannedStep, Step};
pub use shared_list::{Asking, SharedList};
pub use spec::{
    Affinity, Algorithm, Claim, Listener, LoadBalancerSpec, Options, Protocol, ProxyProtocol,
    ServiceRef, Target, TargetBy, TargetState, TrafficPolicy, Wish,
};
pub use status::{
    AnnotationChanges, Failures, Ingress, IpMode, LoadBalancerStatus, Outcome, OwnedBalancer,
};

use crate::{CloudError, LabelSelector, Problem, UnknownAnnotation};

/// What a cloud's balancers can do. A neutral annotation that asks for something missing here
/// becomes an Event instead of being ignored in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Features {
    /// A target can be told to finish what it has.
    pub drain: bool,
    /// Targets can be given by address, so other clouds' nodes can be reached.
    pub targets_by_address: bool,
    /// Nodes that no cloud here claims are targets too, by address: the machines of this cloud are the
    /// Nodes of the cluster, whatever IDs these have from others.
    pub every_node: bool,
    /// UDP listeners.
    pub udp: bool,
    /// SCTP listeners.
    pub sctp: bool,
    /// TCP and UDP on one balancer.
    pub mixed_protocols: bool,
    /// Source ranges are enforced.
    pub source_ranges: bool,
    /// Session affinity by client address.
    pub client_affinity: bool,
    /// PROXY protocol, and which versions of it.
    pub proxy_protocol: ProxyProtocols,
    /// Balancers that are only reachable inside.
    pub internal: bool,
    /// A wished-for address.
    pub chosen_address: bool,
    /// IPv4 and IPv6 on one Service.
    pub dual_stack: bool,
}

/// The versions of the PROXY protocol that a cloud's balancers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProxyProtocols {
    /// None.
    #[default]
    None,
    /// Version 1 alone.
    V1,
    /// Version 2 alone.
    V2,
    /// Whichever is asked for.
    Both,
}

impl ProxyProtocols {
    /// The version that is spoken if this one is asked for.
    pub const fn instead_of(self, asked: ProxyProtocol) -> Option<ProxyProtocol> {
        match self {
            Self::None => None,
            Self::V1 => Some(ProxyProtocol::V1),
            Self::V2 => Some(ProxyProtocol::V2),
            Self::Both => Some(asked),
        }
    }
}

/// Work under the same key is never done twice at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(String);

impl LockKey {
    /// A key of the provider's choice, such as the ID of a balancer that several Services share.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// One balancer per Service: its UID.
    pub fn of_service(claim: &Claim) -> Self {
        Self(claim.service.uid.clone())
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The load balancers of a cloud, as controllers see them. Providers implement
/// [`LoadBalancerDriver`] and wrap it in [`Driven`].
#[async_trait]
pub trait LoadBalancers: Send + Sync {
    /// What they can do.
    fn features(&self) -> Features;

    /// The check a Service gets by default.
    fn health_checks(&self) -> HealthCheckPolicy;

    /// Which work must not overlap. By Service, unless several Services share a resource.
    fn lock_key(&self, claim: &Claim) -> LockKey;

    /// Whether anything on a Service points at its balancer, such as an annotation with its ID: then one
    /// that is not found is missed. Pure.
    fn points_at_balancer(&self, claim: &Claim) -> bool {
        claim.points_at_balancer()
    }

    /// Annotations under this cloud's own prefix that it does not know: typos that would be ignored in silence.
    /// Pure.
    fn unknown_annotations(
        &self,
        _annotations: &BTreeMap<String, String>,
    ) -> Vec<UnknownAnnotation> {
        Vec::new()
    }

    /// Which Nodes a Service selects as targets by an annotation of this cloud's own. `None` leaves it to
    /// the neutral `cloudkeel.dev/lb-node-selector`. The service controller chooses the targets, so that
    /// balancers follow the labels of Nodes; a provider takes those that it is given. Pure.
    fn node_selector(
        &self,
        _annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        Ok(None)
    }

    /// What [`apply`](Self::apply) would do now. Never mutates.
    async fn plan(&self, wish: Wish<'_>) -> Result<Plan, CloudError>;

    /// Makes the wish come true, as far as the cloud goes along.
    ///
    /// Idempotent: equal state means no mutating call. May be dropped at any await and repeated.
    /// Absent already: `Wish::Absent` is [`Outcome::Gone`] with nothing done. A balancer that takes
    /// minutes is [`Outcome::Pending`], not an error and not a long wait. Where a balancer is there and
    /// something of the wish is refused, the rest is carried out: [`Outcome::Incomplete`]. Errors:
    /// `NotOurs` if a foreign balancer is in the way, `Invalid` if the Service asks for the impossible,
    /// `LimitExceeded` at a quota, `ImplementedElsewhere` if another controller has the Service.
    async fn apply(&self, wish: Wish<'_>) -> Result<Outcome, CloudError>;

    /// The same for a balancer that must be there already, because its address is published.
    /// `NotFound` if it is not: whoever asked decides whether that can be believed before another one
    /// is made.
    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        self.apply(Wish::Present(spec)).await
    }

    /// Looks at the balancers of many Services with as few reads as the cloud allows, for the first
    /// look after a start and for the drift sweep. One answer per spec, in their order. Never mutates.
    async fn survey(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Surveyed, CloudError>>;

    /// Every balancer that carries this cluster's mark, for finding left-overs. `Unsupported` where
    /// the cloud keeps no marks.
    async fn owned(&self) -> Result<Vec<OwnedBalancer>, CloudError>;
}
