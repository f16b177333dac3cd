//! How a provider author writes a balancer: observe, plan, execute. The rest is given.

mod attempt;
mod driven;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;

pub use self::driven::Driven;
use super::{
    BalancerProfile, DesiredState, Failures, LoadBalancerStatus, LockKey, OwnedResource, Plan,
    ServiceChanges, Step,
};
use crate::{
    BalancerRef, CloudError, LabelSelector, LoadBalancerSpec, Problem, UnknownAnnotation,
    UnprovenResource,
};

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It has happened; go on with the next.
    Done,
    /// The cloud has begun and takes its time: look again after this long.
    Started {
        /// When to look again.
        check_after: Duration,
    },
    /// It cannot be done yet, for a reason that passes. The rest of the plan goes on, and this step is planned
    /// again later.
    Postponed {
        /// What it waits for, for people.
        why: String,
        /// When to try again.
        retry_after: Duration,
    },
}

/// What became of a step, and what an observation would show now if that is known.
pub type Executed<O> = Result<(StepOutcome, Option<O>), CloudError>;

/// What an observation says about the desired state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Whether it exists, its ID and its addresses.
    pub status: LoadBalancerStatus,
    /// What the Service is to carry. Written also if a step fails.
    pub changes: ServiceChanges,
    /// Set while the cloud is still working on the balancer and will accept no change.
    pub busy: Option<Busy>,
    /// What of the desired state cannot be planned, because the Service or the configuration has to change first, or
    /// because a reference could not be resolved. The plan leaves it out, so that the rest is carried out; it
    /// is reported when that is done.
    pub unmet: Vec<Failures>,
    /// What stays on purpose although the Service goes, in words: what is protected from deletion, disowned or
    /// released. The plan leaves it out.
    pub kept: Vec<String>,
}

impl Report {
    /// Of a Service that goes: this stays, in words.
    pub fn keeping(kept: impl IntoIterator<Item = String>) -> Self {
        Self {
            kept: kept.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// What a look at a balancer shows: what there is to do, and its face as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// What differs from the desired state. While the cloud is at it, this may be what it is doing.
    pub plan: Plan,
    /// The rest.
    pub report: Report,
}

/// The cloud is still working on a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// What it is doing, for people.
    pub why: String,
    /// When to look again.
    pub check_after: Duration,
}

/// One cloud's balancers, in its own types. Wrapped in [`Driven`] it becomes [`LoadBalancers`](crate::LoadBalancers).
#[async_trait]
pub trait LoadBalancerDriver: Send + Sync {
    /// Everything the plan needs to know, read from the cloud. Includes what a desired state refers to by
    /// name (networks, certificates, sizes), so that planning needs no further question. Two that are
    /// equal show the same.
    type Observed: PartialEq + Send + Sync;
    /// What can be done, as plain data.
    type Step: Step;

    /// Reads the present state. Never mutates.
    ///
    /// A balancer that is there but not ours is [`NotOurs`](crate::ErrorKind::NotOurs).
    async fn observe(&self, desired: DesiredState<'_>) -> Result<Self::Observed, CloudError>;

    /// The steps from `have` to the desired state. Pure. Empty if and only if nothing differs.
    ///
    /// Targets and listeners come first: what comes later cannot keep them waiting. A plan may be
    /// partial: leave out steps whose inputs are not known yet, and they are planned in the next round.
    /// A desired state of which nothing can be honoured is [`Invalid`](crate::ErrorKind::Invalid); what cannot be
    /// honoured of an existing balancer's desired state belongs into [`Report::unmet`].
    fn plan(
        &self,
        desired: DesiredState<'_>,
        have: &Self::Observed,
    ) -> Result<Vec<Self::Step>, CloudError>;

    /// Carries out one step. Doing it twice must not hurt: it is repeated after a crash.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) leads to a new observation,
    /// [`Busy`](crate::ErrorKind::Busy) to a later look. After any other error the steps that
    /// [depend](Step::depends_on) on this one are left out, and the rest is carried out. What is to be
    /// removed and is not there is [`NotFound`](crate::ErrorKind::NotFound), not done: only what the cloud
    /// acknowledged counts as removed.
    ///
    /// `have` is the observation that the step was planned from, with whatever has to be sent back to the cloud
    /// (an `ETag`, a fingerprint, a version).
    ///
    /// If the answer to a step shows all that an observation would, such as the making of a balancer, it is returned with
    /// the outcome: an answer that shows nothing left to do spares the reading.
    async fn execute(
        &self,
        desired: DesiredState<'_>,
        have: &Self::Observed,
        step: &Self::Step,
    ) -> Executed<Self::Observed>;

    /// What the observation says about the desired state. Pure.
    fn report(&self, desired: DesiredState<'_>, have: &Self::Observed) -> Report;

    /// See [`LoadBalancers::profile`](crate::LoadBalancers::profile).
    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile;

    /// See [`LoadBalancers::classes`](crate::LoadBalancers::classes).
    fn classes(&self) -> Vec<String> {
        Vec::new()
    }

    /// See [`LoadBalancers::lock_keys`](crate::LoadBalancers::lock_keys). Override where Services share a resource.
    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        [LockKey::of_service(balancer_ref)].into()
    }

    /// See [`LoadBalancers::points_at_balancer`](crate::LoadBalancers::points_at_balancer). Override where the cloud has annotations of its own for
    /// that.
    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        balancer_ref.points_at_balancer()
    }

    /// See [`LoadBalancers::unknown_annotations`](crate::LoadBalancers::unknown_annotations). Override where the
    /// cloud has annotations of its own.
    fn unknown_annotations(
        &self,
        _annotations: &BTreeMap<String, String>,
    ) -> Vec<UnknownAnnotation> {
        Vec::new()
    }

    /// See [`LoadBalancers::node_selector`](crate::LoadBalancers::node_selector). Override where the cloud has an annotation of its own for that.
    fn node_selector(
        &self,
        _annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        Ok(None)
    }

    /// Reads the present state for many specs. Override where one list serves all.
    async fn observe_many(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Self::Observed, CloudError>> {
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            observed.push(self.observe(DesiredState::Present(spec)).await);
        }
        observed
    }

    /// See [`LoadBalancers::owned`](crate::LoadBalancers::owned).
    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        Err(CloudError::unsupported(
            "list owned load balancers",
            "this cloud keeps no label by which they could be listed",
        ))
    }

    /// See [`LoadBalancers::unproven`](crate::LoadBalancers::unproven).
    async fn unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
