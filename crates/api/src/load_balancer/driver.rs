//! How a provider author writes a balancer: observe, plan, execute. The rest is given.

mod attempt;
mod driven;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

pub use self::driven::Driven;
use super::{
    AnnotationChanges, Failures, Features, HealthCheckPolicy, LoadBalancerStatus, LockKey,
    OwnedBalancer, Plan, Step, Wish,
};
use crate::{Claim, CloudError, LabelSelector, LoadBalancerSpec, Problem, UnknownAnnotation};

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// It has happened; go on with the next.
    Done,
    /// The cloud has begun and takes its time: look again after this long.
    Started {
        /// When to look again.
        check_after: Duration,
    },
}

/// What an observation says about the wish.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The balancer's face.
    pub status: LoadBalancerStatus,
    /// What should be remembered on the Service.
    pub annotations: AnnotationChanges,
    /// Set while the cloud is still working on the balancer and will accept no change.
    pub busy: Option<Busy>,
    /// What of the wish cannot be planned, because the Service or the configuration has to change first, or
    /// because a reference could not be resolved. The plan leaves it out, so that the rest is carried out; it
    /// is reported when that is done.
    pub unmet: Vec<Failures>,
    /// Balancers that stay although the Service goes, because they are protected from deletion, in words. The
    /// plan leaves them out.
    pub kept: Vec<String>,
}

/// What a look at a balancer shows: what there is to do, and its face as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surveyed {
    /// What differs from the wish. While the cloud is at it, this may be what it is doing.
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
    /// Everything the plan needs to know, read from the cloud. Includes what a wish refers to by
    /// name (networks, certificates, sizes), so that planning needs no further question. Two that are
    /// equal show the same.
    type Observed: PartialEq + Send + Sync;
    /// What can be done, as plain data.
    type Step: Step;

    /// Reads the present state. Never mutates.
    ///
    /// A balancer that is there but not ours is [`NotOurs`](crate::ErrorKind::NotOurs).
    async fn observe(&self, wish: Wish<'_>) -> Result<Self::Observed, CloudError>;

    /// The steps from `have` to the wish. Pure. Empty if and only if nothing differs.
    ///
    /// Targets and listeners come first: what comes later cannot keep them waiting. A plan may be
    /// partial: leave out steps whose inputs are not known yet, and they are planned in the next round.
    /// A wish of which nothing can be honoured is [`Invalid`](crate::ErrorKind::Invalid); what cannot be
    /// honoured of an existing balancer's wish belongs into [`Report::unmet`].
    fn plan(&self, wish: Wish<'_>, have: &Self::Observed) -> Result<Vec<Self::Step>, CloudError>;

    /// Carries out one step. Doing it twice must not hurt: it is repeated after a crash.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) leads to a new observation,
    /// [`Busy`](crate::ErrorKind::Busy) to a later look. After any other error the steps that
    /// [depend](Step::depends_on) on this one are left out, and the rest is carried out. What is to be
    /// removed and is not there is [`NotFound`](crate::ErrorKind::NotFound), not done: only what the cloud
    /// acknowledged counts as removed.
    async fn execute(&self, wish: Wish<'_>, step: &Self::Step) -> Result<StepOutcome, CloudError>;

    /// The same for a step whose answer shows all that an observation would, such as the making of a
    /// balancer: an answer that shows nothing left to do spares the reading.
    async fn execute_and_observe(
        &self,
        wish: Wish<'_>,
        step: &Self::Step,
    ) -> Result<(StepOutcome, Option<Self::Observed>), CloudError> {
        let outcome = self.execute(wish, step).await?;
        Ok((outcome, None))
    }

    /// What the observation says about the wish. Pure.
    fn report(&self, wish: Wish<'_>, have: &Self::Observed) -> Report;

    /// What this cloud's balancers can do.
    fn features(&self) -> Features;

    /// The check a Service gets by default.
    fn health_checks(&self) -> HealthCheckPolicy;

    /// See [`LoadBalancers::lock_key`](crate::LoadBalancers::lock_key).
    fn lock_key(&self, claim: &Claim) -> LockKey {
        LockKey::of_service(claim)
    }

    /// See [`LoadBalancers::points_at_balancer`](crate::LoadBalancers::points_at_balancer). Override where the cloud has annotations of its own for
    /// that.
    fn points_at_balancer(&self, claim: &Claim) -> bool {
        claim.points_at_balancer()
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

    /// Reads the present state for many wishes. Override where one list serves all.
    async fn observe_many(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Self::Observed, CloudError>> {
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            observed.push(self.observe(Wish::Present(spec)).await);
        }
        observed
    }

    /// See [`LoadBalancers::owned`](crate::LoadBalancers::owned).
    async fn owned(&self) -> Result<Vec<OwnedBalancer>, CloudError> {
        Err(CloudError::unsupported(
            "list owned load balancers",
            "this cloud keeps no mark by which they could be listed",
        ))
    }
}

#[cfg(test)]
mod tests;
