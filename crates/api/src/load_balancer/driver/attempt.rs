//! What one attempt to make a desired state come true has done so far, and what it could not do. Pure.

use super::super::status::Failures;
use super::super::{DesiredState, Outcome, Plan, PlannedStep, Step};
use super::{Busy, Report};
use crate::{CloudError, ErrorKind};

/// As often as this a step may meet something that changed meanwhile; then it has failed.
const MAX_CONFLICTS: usize = 3;

/// After so many errors in a row that speak of a cloud in trouble, the rest is left to the next attempt.
const MAX_TROUBLE: usize = 3;

/// An attempt, as far as it has come.
pub(super) struct Attempt<S> {
    /// Every step that went well, in order.
    done: Vec<S>,
    /// Those of the last round.
    done_last: Vec<S>,
    /// Steps that did not, and why.
    failed: Vec<(S, CloudError)>,
    /// Steps that met something that changed meanwhile, once for each time.
    conflicted: Vec<S>,
    /// Errors in a row that speak of a cloud in trouble.
    trouble: usize,
    /// What was to be removed and was not there any more, although this attempt had not removed it: another
    /// client did, or this is not the same project any more.
    vanished: Vec<S>,
    /// Whether everything that the last round asked for was carried out, was begun or has vanished.
    is_round_over: bool,
    /// What stays on purpose, as every observation so far named it: what was released is not shown again.
    kept: Vec<String>,
}

impl<S: Step> Attempt<S> {
    pub(super) const fn new() -> Self {
        Self {
            done: Vec::new(),
            done_last: Vec::new(),
            failed: Vec::new(),
            conflicted: Vec::new(),
            trouble: 0,
            vanished: Vec::new(),
            is_round_over: false,
            kept: Vec::new(),
        }
    }

    /// Adds what an observation names as kept on purpose, and gives back all that is known.
    pub(super) fn note_kept(&mut self, kept: &mut Vec<String>) {
        for name in kept.drain(..) {
            if !self.kept.contains(&name) {
                self.kept.push(name);
            }
        }
        kept.clone_from(&self.kept);
    }

    pub(super) const fn has_done_nothing(&self) -> bool {
        self.done.is_empty()
    }

    pub(super) const fn has_done_nothing_lately(&self) -> bool {
        self.done_last.is_empty()
    }

    /// Everything that is so now.
    pub(super) fn plan_done(&self) -> Plan {
        let mut plan = Plan::of(&self.done);
        plan.steps.extend(Plan::of(&self.vanished).steps);
        plan
    }

    /// Of a removal: whether the cloud has agreed to remove everything that was there.
    const fn is_acknowledged(&self) -> bool {
        self.is_round_over && self.vanished.is_empty()
    }

    /// A round begins. Returns the steps that may be carried out: those that have not failed already and
    /// depend on none that has.
    pub(super) fn begin(&mut self, plan: Vec<S>) -> Vec<S> {
        let has_failed = |step: &S| self.failed.iter().any(|(failed, _)| step.repeats(failed));
        let mut out: Vec<S> = self.failed.iter().map(|(step, _)| step.clone()).collect();
        let mut possible = Vec::new();
        for step in plan {
            if has_failed(&step) {
                continue;
            }
            if out.iter().any(|failed| step.depends_on(failed)) {
                out.push(step);
            } else {
                possible.push(step);
            }
        }
        possible
    }

    /// Whether all of these went well in the last round: they have no effect.
    pub(super) fn are_repeated(&self, steps: &[S]) -> bool {
        let is_repeated = |step: &S| self.done_last.iter().any(|done| step.repeats(done));
        !steps.is_empty() && steps.iter().all(is_repeated)
    }

    pub(super) fn begin_round(&mut self) {
        self.done_last.clear();
        self.is_round_over = false;
    }

    /// Everything that the round asked for was carried out, was begun or has vanished.
    pub(super) const fn end_round(&mut self) {
        self.is_round_over = true;
    }

    /// Notes that what is to be removed is not there. Whether that is news.
    pub(super) fn is_first_time_missing(&mut self, step: &S) -> bool {
        let is_news = !self.done.contains(step) && !self.vanished.contains(step);
        if is_news {
            self.vanished.push(step.clone());
        }
        is_news
    }

    pub(super) fn went_well(&mut self, step: &S) {
        self.trouble = 0;
        self.vanished.retain(|vanished| vanished != step);
        self.done.push(step.clone());
        self.done_last.push(step.clone());
    }

    /// A step failed. Returns whether it makes sense to go on with others.
    pub(super) fn went_wrong(&mut self, step: &S, error: CloudError) -> bool {
        let kind = error.kind();
        if kind == ErrorKind::Conflict {
            self.conflicted.push(step.clone());
            let times = self.conflicted.iter().filter(|other| step.repeats(other));
            if times.count() < MAX_CONFLICTS {
                return true;
            }
        }
        self.failed.push((step.clone(), error));
        match kind {
            ErrorKind::Throttled { .. } | ErrorKind::Unauthenticated | ErrorKind::Cancelled => {
                false
            }
            ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::Malformed
            | ErrorKind::Incomplete => {
                self.trouble += 1;
                self.trouble < MAX_TROUBLE
            }
            _ => {
                self.trouble = 0;
                true
            }
        }
    }

    /// How it ended: as desired, except for what failed and what cannot be met.
    pub(super) fn end(
        self,
        desired: DesiredState<'_>,
        report: Report,
    ) -> Result<Outcome, CloudError> {
        self.end_without_effect(desired, report, &[])
    }

    /// The same, where the cloud took some steps without changing anything.
    pub(super) fn end_without_effect(
        self,
        desired: DesiredState<'_>,
        report: Report,
        steps: &[S],
    ) -> Result<Outcome, CloudError> {
        let mut done = self.plan_done();
        let acknowledged = self.is_acknowledged();
        let texts: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let is_one = |step: &&mut PlannedStep| texts.contains(&step.text);
        for step in done.steps.iter_mut().filter(is_one) {
            step.ineffective = true;
        }
        match self.failure(desired, &report, None) {
            Some(error) => incomplete(desired, report, done, error),
            None => Ok(settled(desired, report, done, acknowledged)),
        }
    }

    /// The cloud has to be waited for. What failed before that is reported, and tried again sooner.
    pub(super) fn wait(
        self,
        desired: DesiredState<'_>,
        report: Report,
        busy: Busy,
    ) -> Result<Outcome, CloudError> {
        let (done, acknowledged) = (self.plan_done(), self.is_acknowledged());
        if self.failed.is_empty() {
            return Ok(pending(busy, report, done, acknowledged));
        }
        let waits = CloudError::new(Failures::OPERATION, ErrorKind::Busy, busy.why);
        match self.failure(desired, &report, Some(waits)) {
            Some(error) => incomplete(desired, report, done, error),
            None => Ok(settled(desired, report, done, acknowledged)),
        }
    }

    /// Something else than a step failed: that, and what failed before it.
    pub(super) fn fail(self, error: CloudError) -> CloudError {
        let mut errors: Vec<_> = self.failed.into_iter().map(|(_, error)| error).collect();
        if errors.is_empty() {
            return error;
        }
        let last = error.clone_without_source();
        errors.push(error);
        CloudError::combine(Failures::OPERATION, errors).unwrap_or(last)
    }

    /// Everything that failed or cannot be met, as one error.
    fn failure(
        self,
        desired: DesiredState<'_>,
        report: &Report,
        waits: Option<CloudError>,
    ) -> Option<CloudError> {
        let mut errors: Vec<_> = self.failed.into_iter().map(|(_, error)| error).collect();
        let unmet = report.unmet.iter();
        let unmet = unmet.filter(|_| desired.spec().is_some());
        errors.extend(unmet.map(Failures::to_error));
        errors.extend(waits);
        CloudError::combine(Failures::OPERATION, errors)
    }
}

/// A balancer that is there is shown with what is wrong with it. One that is not is an error, unless the Service
/// is to carry something all the same.
fn incomplete(
    desired: DesiredState<'_>,
    report: Report,
    done: Plan,
    error: CloudError,
) -> Result<Outcome, CloudError> {
    let has_something = report.status.exists || !report.changes.is_empty();
    if desired.spec().is_none() || !has_something {
        return Err(error);
    }
    Ok(Outcome::Incomplete {
        status: report.status,
        changes: report.changes,
        done,
        failures: Failures::from(&error),
    })
}

fn pending(busy: Busy, report: Report, done: Plan, acknowledged: bool) -> Outcome {
    Outcome::Pending {
        why: busy.why,
        check_after: busy.check_after,
        status: Some(report.status).filter(|status| status.exists),
        changes: report.changes,
        done,
        acknowledged,
    }
}

fn settled(desired: DesiredState<'_>, report: Report, done: Plan, acknowledged: bool) -> Outcome {
    match desired {
        DesiredState::Present(_) => Outcome::Settled {
            status: report.status,
            changes: report.changes,
            done,
        },
        DesiredState::Absent(_) | DesiredState::Released(_) => Outcome::Gone {
            done,
            kept: report.kept,
            acknowledged,
        },
    }
}
