//! How a provider author writes a balancer: observe, plan, execute. The rest is given.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    AnnotationChanges, Features, HealthCheckPolicy, LoadBalancerStatus, LoadBalancers, LockKey,
    Outcome, OwnedBalancer, Plan, Step, Wish,
};
use crate::{Claim, CloudError, ErrorKind, LoadBalancerSpec};

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

/// One cloud's balancers, in its own types. Wrapped in [`Driven`] it becomes [`LoadBalancers`].
#[async_trait]
pub trait LoadBalancerDriver: Send + Sync {
    /// Everything the plan needs to know, read from the cloud. Includes what a wish refers to by
    /// name (networks, certificates, sizes), so that planning needs no further question.
    type Observed: Send + Sync;
    /// What can be done, as plain data.
    type Step: Step;

    /// Reads the present state. Never mutates.
    ///
    /// A balancer that is there but not ours is [`NotOurs`](ErrorKind::NotOurs).
    async fn observe(&self, wish: Wish<'_>) -> Result<Self::Observed, CloudError>;

    /// The steps from `have` to the wish. Pure. Empty if and only if nothing differs.
    ///
    /// A plan may be partial: leave out steps whose inputs are not known yet, and they are planned
    /// in the next round. A wish that cannot be honoured is [`Invalid`](ErrorKind::Invalid).
    fn plan(&self, wish: Wish<'_>, have: &Self::Observed) -> Result<Vec<Self::Step>, CloudError>;

    /// Carries out one step. Doing it twice must not hurt: it is repeated after a crash.
    ///
    /// [`Conflict`](ErrorKind::Conflict) leads to a new observation, [`Busy`](ErrorKind::Busy) to a
    /// later look; any other error ends the attempt.
    async fn execute(&self, wish: Wish<'_>, step: &Self::Step) -> Result<StepOutcome, CloudError>;

    /// What the observation says about the wish. Pure.
    fn report(&self, wish: Wish<'_>, have: &Self::Observed) -> Report;

    /// What this cloud's balancers can do.
    fn features(&self) -> Features;

    /// The check a Service gets by default.
    fn health_checks(&self) -> HealthCheckPolicy;

    /// See [`LoadBalancers::lock_key`].
    fn lock_key(&self, claim: &Claim) -> LockKey {
        LockKey::of_service(claim)
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

    /// See [`LoadBalancers::owned`].
    async fn owned(&self) -> Result<Vec<OwnedBalancer>, CloudError> {
        Err(CloudError::unsupported(
            "list owned load balancers",
            "this cloud keeps no mark by which they could be listed",
        ))
    }
}

/// Turns a driver into [`LoadBalancers`]: observes, plans and executes until nothing differs, in a
/// bounded number of rounds.
#[derive(Debug)]
pub struct Driven<D> {
    driver: D,
}

impl<D: LoadBalancerDriver> Driven<D> {
    /// Enough for a plan that unfolds in parts, few enough to notice one that never ends.
    const MAX_ROUNDS: u32 = 8;

    /// How long to wait when the cloud says "busy" without saying for how long.
    const BUSY_PAUSE: Duration = Duration::from_secs(5);

    /// Wraps a driver.
    pub const fn new(driver: D) -> Self {
        Self { driver }
    }

    /// The driver itself.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    async fn apply_unless_missing(
        &self,
        wish: Wish<'_>,
        must_exist: bool,
    ) -> Result<Outcome, CloudError> {
        let mut done = Vec::new();
        let mut rounds = 0;
        loop {
            let have = self.driver.observe(wish).await?;
            let report = self.driver.report(wish, &have);
            if must_exist && done.is_empty() && report.status.id.is_none() {
                return Err(missing(wish));
            }
            if let Some(busy) = report.busy.clone() {
                return Ok(pending(busy, report, Plan::of(&done)));
            }
            let steps = self.driver.plan(wish, &have)?;
            if steps.is_empty() {
                return Ok(settled(wish, report, Plan::of(&done)));
            }
            if rounds == Self::MAX_ROUNDS {
                return Err(unsettled(wish, rounds, &Plan::of(&steps)));
            }
            rounds += 1;
            if let RoundEnd::Wait(busy) = self.execute_all(wish, &steps, &mut done).await? {
                return Ok(pending(busy, report, Plan::of(&done)));
            }
        }
    }

    /// Executes steps until one has to be waited for or conflicts. `done` records what happened.
    async fn execute_all(
        &self,
        wish: Wish<'_>,
        steps: &[D::Step],
        done: &mut Vec<D::Step>,
    ) -> Result<RoundEnd, CloudError> {
        for step in steps {
            match self.driver.execute(wish, step).await {
                Ok(StepOutcome::Done) => done.push(step.clone()),
                Ok(StepOutcome::Started { check_after }) => {
                    done.push(step.clone());
                    let why = format!("waiting for: {step}");
                    return Ok(RoundEnd::Wait(Busy { why, check_after }));
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    return Ok(RoundEnd::LookAgain);
                }
                Err(error) if error.kind() == ErrorKind::Busy => {
                    return Ok(RoundEnd::Wait(Busy {
                        why: error.to_string(),
                        check_after: Self::BUSY_PAUSE,
                    }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(RoundEnd::LookAgain)
    }
}

enum RoundEnd {
    LookAgain,
    Wait(Busy),
}

fn pending(busy: Busy, report: Report, done: Plan) -> Outcome {
    let published = !report.status.ingress.is_empty();
    Outcome::Pending {
        why: busy.why,
        check_after: busy.check_after,
        status: published.then_some(report.status),
        annotations: report.annotations,
        done,
    }
}

fn settled(wish: Wish<'_>, report: Report, done: Plan) -> Outcome {
    match wish {
        Wish::Present(_) => Outcome::Settled {
            status: report.status,
            annotations: report.annotations,
            done,
        },
        Wish::Absent(_) => Outcome::Gone { done },
    }
}

#[async_trait]
impl<D: LoadBalancerDriver> LoadBalancers for Driven<D> {
    fn features(&self) -> Features {
        self.driver.features()
    }

    fn health_checks(&self) -> HealthCheckPolicy {
        self.driver.health_checks()
    }

    fn lock_key(&self, claim: &Claim) -> LockKey {
        self.driver.lock_key(claim)
    }

    async fn plan(&self, wish: Wish<'_>) -> Result<Plan, CloudError> {
        let have = self.driver.observe(wish).await?;
        Ok(Plan::of(&self.driver.plan(wish, &have)?))
    }

    async fn apply(&self, wish: Wish<'_>) -> Result<Outcome, CloudError> {
        self.apply_unless_missing(wish, false).await
    }

    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        self.apply_unless_missing(Wish::Present(spec), true).await
    }

    async fn survey(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Surveyed, CloudError>> {
        let observed = self.driver.observe_many(specs).await;
        let looks = specs.iter().zip(observed).map(|(spec, have)| {
            let (wish, have) = (Wish::Present(spec), have?);
            Ok(Surveyed {
                plan: Plan::of(&self.driver.plan(wish, &have)?),
                report: self.driver.report(wish, &have),
            })
        });
        looks.collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedBalancer>, CloudError> {
        self.driver.owned().await
    }
}

fn unsettled(wish: Wish<'_>, rounds: u32, left: &Plan) -> CloudError {
    let service = &wish.claim().service;
    let message = format!(
        "the load balancer of {service} did not settle after {rounds} rounds; still to do:\n{left}"
    );
    CloudError::new("apply load balancer", ErrorKind::Conflict, message)
}

fn missing(wish: Wish<'_>) -> CloudError {
    let service = &wish.claim().service;
    let message =
        format!("the load balancer of {service}, whose address is published, is not found");
    CloudError::new("apply load balancer", ErrorKind::NotFound, message)
}

#[cfg(test)]
mod tests;
