//! The loop that makes a desired state come true: observe, plan, execute, until nothing differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::attempt::Attempt;
use super::{Busy, LoadBalancerDriver, Observation, Report, StepOutcome};
use crate::load_balancer::status::Failures;
use crate::{
    BalancerProfile, BalancerRef, CloudError, DesiredState, ErrorKind, LabelSelector,
    LoadBalancerSpec, LoadBalancers, LockKey, Outcome, OwnedResource, Plan, Problem, Step as _,
    UnknownAnnotation, UnprovenResource,
};

/// How long to wait when the cloud says "busy" without saying for how long.
const BUSY_PAUSE: Duration = Duration::from_secs(5);

/// Turns a driver into [`LoadBalancers`]: observes, plans and executes until nothing differs, in a
/// bounded number of rounds.
///
/// A step that fails keeps back only those that [depend](crate::Step::depends_on) on it. Steps that the
/// cloud accepts without changing anything, because it spells a field in another way than the desired state, are
/// carried out once and not again while the observation is equal.
pub struct Driven<D: LoadBalancerDriver> {
    driver: D,
    /// Per UID of the Service: steps without effect, and the observation that they did not change.
    ineffective: Mutex<BTreeMap<String, Ineffective<D>>>,
    /// Per UID of the Service: when an answer showed its new balancer, which lists may show later.
    made: Mutex<BTreeMap<String, Instant>>,
}

struct Ineffective<D: LoadBalancerDriver> {
    have: D::Observed,
    steps: Vec<D::Step>,
}

/// How a round ended.
enum RoundEnd<O> {
    /// Observe again, unless an answer showed the new state already.
    LookAgain(Option<O>),
    /// The cloud has to be waited for.
    Wait(Busy),
    /// Nothing more can be done in this attempt.
    Stop,
}

impl<D: LoadBalancerDriver + fmt::Debug> fmt::Debug for Driven<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Driven").field(&self.driver).finish()
    }
}

impl<D: LoadBalancerDriver> Driven<D> {
    /// Enough for a plan that unfolds in parts, few enough to notice one that never ends.
    const MAX_ROUNDS: u32 = 8;

    /// How long a cloud may take to show what it has made.
    const SHOWN_WITHIN: Duration = Duration::from_mins(2);

    /// Wraps a driver.
    pub const fn new(driver: D) -> Self {
        Self {
            driver,
            ineffective: Mutex::new(BTreeMap::new()),
            made: Mutex::new(BTreeMap::new()),
        }
    }

    /// The driver itself.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    async fn apply_unless_missing(
        &self,
        desired: DesiredState<'_>,
        must_exist: bool,
    ) -> Result<Outcome, CloudError> {
        let mut changed_nothing = true;
        let advanced = self
            .advance(desired, must_exist, &mut changed_nothing)
            .await;
        advanced.map_err(|error| {
            if changed_nothing {
                error.without_effect()
            } else {
                error.after_a_change()
            }
        })
    }

    /// `changed_nothing` says afterwards whether the cloud was certainly not changed.
    async fn advance(
        &self,
        desired: DesiredState<'_>,
        must_exist: bool,
        changed_nothing: &mut bool,
    ) -> Result<Outcome, CloudError> {
        let mut attempt = Attempt::new();
        let mut rounds = 0;
        let mut answered = None;
        loop {
            let is_read = answered.is_none();
            let have = match answered.take() {
                Some(have) => have,
                None => match self.driver.observe(desired).await {
                    Ok(have) => have,
                    Err(error) => return Err(attempt.fail(error)),
                },
            };
            let mut report = self.driver.report(desired, &have);
            attempt.note_kept(&mut report.kept);
            if must_exist && attempt.has_done_nothing() && !report.status.exists {
                if self.was_made_lately(desired) {
                    return attempt.wait(desired, report, not_shown_yet());
                }
                return Err(missing(desired));
            }
            if let Some(busy) = report.busy.clone() {
                if is_read {
                    return attempt.wait(desired, report, busy);
                }
                continue;
            }
            let steps = match self.plan_for(desired, &have) {
                Ok(steps) => attempt.begin(steps),
                Err(error) => return Err(attempt.fail(error)),
            };
            if steps.is_empty() {
                if !is_read {
                    self.note_made(desired);
                }
                return attempt.end(desired, report);
            }
            if !is_read {
                // The answer may have been given before the work was over.
                continue;
            }
            if attempt.are_repeated(&steps) {
                return self.end_without_effect(desired, attempt, report, have, steps);
            }
            if rounds == Self::MAX_ROUNDS {
                return Err(attempt.fail(unsettled(desired, rounds, &Plan::of(&steps))));
            }
            rounds += 1;
            let executing = self.execute_all(desired, &have, &steps, &mut attempt, changed_nothing);
            match executing.await {
                RoundEnd::LookAgain(seen) => answered = seen,
                RoundEnd::Wait(busy) => return attempt.wait(desired, report, busy),
                RoundEnd::Stop => return attempt.end(desired, report),
            }
        }
    }

    /// Executes steps until one has to be waited for. What depends on one that fails is left out.
    async fn execute_all(
        &self,
        desired: DesiredState<'_>,
        have: &D::Observed,
        steps: &[D::Step],
        attempt: &mut Attempt<D::Step>,
        changed_nothing: &mut bool,
    ) -> RoundEnd<D::Observed> {
        attempt.begin_round();
        let mut left_out: Vec<&D::Step> = Vec::new();
        let mut has_conflict = false;
        let mut locked: Option<Busy> = None;
        let mut postponed: Option<Busy> = None;
        let mut seen = None;
        let mut missing = Missing::default();
        for (place, step) in steps.iter().enumerate() {
            if left_out.iter().any(|failed| step.depends_on(failed)) {
                left_out.push(step);
                continue;
            }
            seen = None;
            let executed = self.driver.execute(desired, have, step).await;
            *changed_nothing &= had_no_effect(executed.as_ref());
            match executed {
                Ok((StepOutcome::Done, shown)) => {
                    attempt.went_well(step);
                    seen = shown;
                }
                Ok((StepOutcome::Started { check_after }, _)) => {
                    attempt.went_well(step);
                    if place + 1 == steps.len() && left_out.is_empty() {
                        attempt.end_round();
                    }
                    let why = format!("waiting for: {step}");
                    return RoundEnd::Wait(Busy { why, check_after });
                }
                Ok((StepOutcome::Postponed { why, retry_after }, _)) => {
                    left_out.push(step);
                    let check_after = retry_after;
                    postponed = Some(sooner(postponed, Busy { why, check_after }));
                }
                Err(error) if error.kind() == ErrorKind::Busy => {
                    // Perhaps only what this one step is about is locked; two are a sign of more.
                    if let Some(locked) = locked {
                        return RoundEnd::Wait(locked);
                    }
                    left_out.push(step);
                    let (why, check_after) = (error.cause(), BUSY_PAUSE);
                    locked = Some(Busy { why, check_after });
                }
                Err(error) if is_missing(desired, &error) => {
                    let is_news = attempt.is_first_time_missing(step);
                    missing.note(is_news, step);
                }
                Err(error) => {
                    has_conflict |= error.kind() == ErrorKind::Conflict;
                    left_out.push(step);
                    if !attempt.went_wrong(step, error) {
                        return RoundEnd::Stop;
                    }
                }
            }
        }
        if let Some(busy) = locked.or(postponed) {
            return RoundEnd::Wait(busy);
        }
        if attempt.has_done_nothing_lately() && !has_conflict && !missing.is_any {
            return RoundEnd::Stop;
        }
        if left_out.is_empty() {
            attempt.end_round();
        }
        if let Some(busy) = missing.still_shown {
            return RoundEnd::Wait(busy);
        }
        RoundEnd::LookAgain(seen.filter(|_| left_out.is_empty()))
    }

    /// The plan, without what is known to have no effect on a balancer in this state.
    fn plan_for(
        &self,
        desired: DesiredState<'_>,
        have: &D::Observed,
    ) -> Result<Vec<D::Step>, CloudError> {
        let mut steps = self.driver.plan(desired, have)?;
        let uid = &desired.balancer_ref().service.uid;
        if let Some(known) = self.known().get(uid).filter(|known| known.have == *have) {
            let is_in_vain = |step: &D::Step| known.steps.iter().any(|vain| step.repeats(vain));
            steps.retain(|step| !is_in_vain(step));
        }
        Ok(steps)
    }

    /// The cloud accepted steps and shows what it showed before. If it shows a balancer that was to be
    /// there, its own spelling will do. Otherwise it has yet to show what was made or removed.
    fn end_without_effect(
        &self,
        desired: DesiredState<'_>,
        attempt: Attempt<D::Step>,
        report: Report,
        have: D::Observed,
        steps: Vec<D::Step>,
    ) -> Result<Outcome, CloudError> {
        let is_there = desired.spec().is_some() && report.status.exists;
        if !is_there {
            return attempt.wait(desired, report, not_shown_yet());
        }
        let ended = attempt.end_without_effect(desired, report, &steps);
        let uid = desired.balancer_ref().service.uid.clone();
        self.known().insert(uid, Ineffective { have, steps });
        ended
    }

    fn note_made(&self, desired: DesiredState<'_>) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|_, at| at.elapsed() < Self::SHOWN_WITHIN);
        made.insert(desired.balancer_ref().service.uid.clone(), Instant::now());
    }

    fn was_made_lately(&self, desired: DesiredState<'_>) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let at = made.get(&desired.balancer_ref().service.uid);
        at.is_some_and(|at| at.elapsed() < Self::SHOWN_WITHIN)
    }

    /// What cannot be met is an error once nothing else is left to do.
    fn check_unmet(
        desired: DesiredState<'_>,
        plan: &Plan,
        report: &Report,
    ) -> Result<(), CloudError> {
        if !plan.is_empty() || desired.spec().is_none() {
            return Ok(());
        }
        let unmet = report.unmet.iter().map(Failures::to_error).collect();
        CloudError::combine(Failures::OPERATION, unmet).map_or(Ok(()), Err)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Ineffective<D>>> {
        let known = self.ineffective.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<D: LoadBalancerDriver> LoadBalancers for Driven<D> {
    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        self.driver.profile(balancer_ref)
    }

    fn classes(&self) -> Vec<String> {
        self.driver.classes()
    }

    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        self.driver.lock_keys(balancer_ref)
    }

    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        self.driver.points_at_balancer(balancer_ref)
    }

    fn unknown_annotations(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Vec<UnknownAnnotation> {
        self.driver.unknown_annotations(annotations)
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        self.driver.node_selector(annotations)
    }

    async fn plan(&self, desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        let have = self.driver.observe(desired).await?;
        let plan = Plan::of(&self.plan_for(desired, &have)?);
        Self::check_unmet(desired, &plan, &self.driver.report(desired, &have))?;
        Ok(plan)
    }

    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        let applied = self.apply_unless_missing(desired, false).await;
        if let Ok(Outcome::Gone { .. }) = applied {
            let uid = &desired.balancer_ref().service.uid;
            self.known().remove(uid);
            let made = self.made.lock();
            made.unwrap_or_else(PoisonError::into_inner).remove(uid);
        }
        applied
    }

    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        self.apply_unless_missing(DesiredState::Present(spec), true)
            .await
    }

    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        let observed = self.driver.observe_many(specs).await;
        let looks = specs.iter().zip(observed).map(|(spec, have)| {
            let (desired, have) = (DesiredState::Present(spec), have?);
            let plan = Plan::of(&self.plan_for(desired, &have)?);
            let report = self.driver.report(desired, &have);
            Self::check_unmet(desired, &plan, &report)?;
            Ok(Observation { plan, report })
        });
        looks.collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        self.driver.owned().await
    }

    async fn unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        self.driver.unproven().await
    }
}

/// What was to be removed and is not there.
#[derive(Default)]
struct Missing {
    is_any: bool,
    /// The cloud shows it all the same, again and again.
    still_shown: Option<Busy>,
}

impl Missing {
    fn note(&mut self, is_news: bool, step: &impl fmt::Display) {
        self.is_any = true;
        if !is_news {
            self.still_shown = Some(Busy {
                why: format!("the cloud still shows what was deleted: {step}"),
                check_after: BUSY_PAUSE,
            });
        }
    }
}

/// Whether a step has certainly not changed the cloud.
fn had_no_effect<O>(executed: Result<&(StepOutcome, O), &CloudError>) -> bool {
    match executed {
        Ok((outcome, _)) => matches!(outcome, StepOutcome::Postponed { .. }),
        Err(error) => error.had_no_effect(),
    }
}

/// The one of both that is over first.
fn sooner(one: Option<Busy>, other: Busy) -> Busy {
    match one {
        Some(one) if one.check_after <= other.check_after => one,
        _ => other,
    }
}

/// Whether what is to be removed is not there.
fn is_missing(desired: DesiredState<'_>, error: &CloudError) -> bool {
    desired.spec().is_none() && error.kind() == ErrorKind::NotFound
}

/// What was made or removed can only be waited for.
fn not_shown_yet() -> Busy {
    Busy {
        why: "the cloud does not show it yet".to_owned(),
        check_after: BUSY_PAUSE,
    }
}

fn unsettled(desired: DesiredState<'_>, rounds: u32, left: &Plan) -> CloudError {
    let service = &desired.balancer_ref().service;
    let message = format!(
        "the load balancer of {service} did not settle after {rounds} rounds; still to do:\n{left}"
    );
    CloudError::new(Failures::OPERATION, ErrorKind::Conflict, message)
}

fn missing(desired: DesiredState<'_>) -> CloudError {
    let service = &desired.balancer_ref().service;
    let message =
        format!("the load balancer of {service}, whose address is published, is not found");
    CloudError::new(Failures::OPERATION, ErrorKind::NotFound, message)
}
