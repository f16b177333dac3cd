//! Load balancers: what is asked for, what is done, and the capability itself.

mod choices;
mod driver;
mod health;
mod others;
mod plain;
mod plan;
mod spec;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

pub use choices::{CheckProtocol, DriftPolicy, ProxyProtocolChoice};
pub use driver::{Busy, Driven, Executed, LoadBalancerDriver, Observation, Report, StepOutcome};
pub use health::{
    HealthCheck, HealthCheckPolicy, HealthProbe, HealthState, HealthSummary, TargetHealth,
};
pub use others::{OtherService, OtherServices, ServiceSearch};
pub use plan::{Plan, PlannedStep, Step, StepAction};
pub use spec::{
    Affinity, Algorithm, BalancerRef, DesiredState, IpFamilyPolicy, Listener, LoadBalancerSpec,
    Options, Protocol, ProxyProtocol, ServiceRef, Target, TargetBy, TargetState, TrafficPolicy,
};
pub use status::{
    Failures, Ingress, IpMode, LoadBalancerStatus, Outcome, OwnedResource, ResourceKind,
    ServiceChanges, ServiceCondition, UnprovenResource,
};

use crate::{CloudError, LabelSelector, Problem, UnknownAnnotation};

/// What a cloud's balancers can do. A neutral annotation that asks for something missing here
/// becomes an Event instead of being ignored in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Features {
    /// A target can be drained.
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
    /// A requested address.
    pub chosen_address: bool,
    /// IPv4 and IPv6 on one Service.
    pub dual_stack: bool,
    /// Health checks count successes until a target is in again.
    pub healthy_threshold: bool,
    /// Listeners and targets of other clients can be left alone.
    pub shared: bool,
}

/// How much a balancer takes. `None` where the cloud names no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Targets.
    pub targets: Option<u32>,
    /// Listeners.
    pub listeners: Option<u32>,
    /// Rules of its firewall or security group.
    pub rules: Option<u32>,
}

/// What the balancer of one Service is like. Clouds with several types of balancers have one for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerProfile {
    /// What it can do.
    pub features: Features,
    /// The check that it gets by default.
    pub health_check: HealthCheckPolicy,
    /// How much it takes.
    pub limits: Limits,
}

impl BalancerProfile {
    /// One with these features that checks the node port, without limits.
    pub fn with_features(features: Features) -> Self {
        Self {
            features,
            health_check: HealthCheckPolicy::NodePort,
            limits: Limits::default(),
        }
    }
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
    pub fn of_service(balancer_ref: &BalancerRef) -> Self {
        Self(balancer_ref.service.uid.clone())
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
    /// What the balancer of a Service is like: its annotations, its class and the configuration choose the type.
    /// A Service that asks for no type that exists gets the profile of the default. Pure.
    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile;

    /// The values of `spec.loadBalancerClass` that this cloud serves without being configured. Pure.
    fn classes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which work must not overlap: Services that have one of these keys in common are worked on one after the
    /// other. By default each Service has a key of its own. Pure.
    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        [LockKey::of_service(balancer_ref)].into()
    }

    /// Whether anything on a Service points at its balancer, such as an annotation with its ID: then one
    /// that is not found is missed. Pure.
    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        balancer_ref.points_at_balancer()
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
    async fn plan(&self, desired: DesiredState<'_>) -> Result<Plan, CloudError>;

    /// Makes the desired state come true, as far as the cloud goes along.
    ///
    /// Idempotent: equal state means no mutating call. May be dropped at any await and repeated.
    /// Absent already: `DesiredState::Absent` is [`Outcome::Gone`] with nothing done. Released: [`Outcome::Gone`] with what
    /// stays in `kept`. A balancer that takes
    /// minutes is [`Outcome::Pending`], not an error and not a long wait. Where a balancer is there and
    /// something of the desired state is refused, the rest is carried out: [`Outcome::Incomplete`]. Errors:
    /// `NotOurs` if a foreign balancer is in the way, `Invalid` if the Service asks for the impossible,
    /// `LimitExceeded` at a quota, `ImplementedElsewhere` if another controller has the Service.
    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError>;

    /// The same for a balancer that must be there already, because its address is published.
    /// `NotFound` if it is not: the caller decides whether that is certain before another one
    /// is created.
    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        self.apply(DesiredState::Present(spec)).await
    }

    /// Looks at the balancers of many Services with as few reads as the cloud allows, for the first
    /// look after a start and for the drift list. One answer per spec, in their order. Never mutates.
    async fn observe_all(&self, specs: &[LoadBalancerSpec])
    -> Vec<Result<Observation, CloudError>>;

    /// Everything that carries this cluster's owner labels, of every kind, for finding left-overs. `Unsupported`
    /// where the cloud keeps no labels.
    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError>;

    /// What only names a cluster called as this one, as older managers left it: it is listed for people, and never removed.
    async fn unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        Ok(Vec::new())
    }
}
