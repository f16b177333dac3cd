//! Makes a Service's balancer as wished: finalizer, cloud, status, in this order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, ErrorKind, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers, Outcome, Plan, Wish,
};
use tokio::time::Instant;
use tracing::{debug, info};

use super::absence::{Missing, NOT_FOUND};
use super::aim::Aim;
use super::change::needs_update;
use super::claim::claim_of;
use super::conditions;
use super::controller::{ServiceController, looks_served};
use super::finalizer;
use super::marks::Marks;
use super::messages::{self, Stage};
use super::records::{Presence, Settled};
use super::status::StatusUpdate;
use super::wants::Serving;
use crate::planted::Bug;
use crate::runtime::{Cause, Verdict, WriteError};
use crate::view::{ServiceView, View as _};

/// Whoever waits for its turn is filed when it comes; this is only in case.
pub(super) const UNTIL_ITS_TURN: Verdict = Verdict::AgainAfter(Duration::from_mins(1));

/// How soon to look again if the watch and the API server disagree about a Service.
pub(super) const WATCH_LAG: Verdict = Verdict::AgainAfter(Duration::from_secs(1));

/// What became of an attempt.
enum Ended {
    /// The balancer is as wished.
    Settled {
        status: LoadBalancerStatus,
        done: Plan,
        is_published: bool,
    },
    /// The cloud is still at it.
    Pending { why: String, check_after: Duration },
    /// Somebody else does it.
    Elsewhere,
    /// The Service is gone.
    Gone,
}

/// Why an attempt failed.
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) cause: Cause,
    pub(super) verdict: Verdict,
    /// Whether our role does not allow it.
    pub(super) is_denied: bool,
    /// Whether the balancer is as wished but for what the cause names.
    is_partial: bool,
    /// Whether nothing failed but that the machines of some targets are missing.
    misses_machines: bool,
}

impl Failure {
    /// Something that no error of a cloud or of the API server says.
    pub(super) const fn new(stage: Stage, cause: Cause, verdict: Verdict) -> Self {
        Self {
            stage,
            cause,
            verdict,
            is_denied: false,
            is_partial: false,
            misses_machines: false,
        }
    }

    pub(super) fn of_cloud(stage: Stage, error: &CloudError) -> Self {
        let verdict = match error.kind() {
            // The work was stopped, not done.
            ErrorKind::Cancelled => Verdict::Failed,
            _ => Verdict::of(error),
        };
        Self::new(stage, Cause::of_cloud(error), verdict)
    }

    pub(super) fn of_write(stage: Stage, error: &WriteError) -> Self {
        let is_denied = matches!(
            error,
            WriteError::Api(kube::Error::Api(status)) if status.code == 403
        );
        let verdict = if is_denied {
            Verdict::NeedsPerson
        } else {
            Verdict::Failed
        };
        Self {
            is_denied,
            ..Self::new(stage, Cause::of_text(error), verdict)
        }
    }
}

/// An attempt, as far as it has come.
struct Attempt<'a> {
    serving: &'a Serving,
    began: Instant,
    /// The Service as it was worked on, with what was written meanwhile.
    service: Arc<ServiceView>,
    /// The targets, once they are known.
    marks: Option<Arc<Marks>>,
    /// Whether it is only about other targets.
    follows_nodes: bool,
}

impl ServiceController {
    pub(super) async fn ensure(
        &self,
        service: &Arc<ServiceView>,
        serving: &Serving,
        failures: u32,
    ) -> Verdict {
        let provider = self.provider_of(&serving.cloud);
        let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) else {
            return self.do_without(service, serving, failures).await;
        };
        let key = service.key();
        let locks = balancers.lock_keys(&claim_of(service, &self.parts.cluster));
        let Some(turn) = self.turns.take(&serving.cloud, locks, &key) else {
            return UNTIL_ITS_TURN;
        };
        self.begin(service);
        let mut attempt = Attempt {
            serving,
            began: Instant::now(),
            service: Arc::clone(service),
            marks: None,
            follows_nodes: false,
        };
        let ended = self.try_to_ensure(&mut attempt, balancers).await;
        drop(turn);
        let verdict = match ended {
            Ok(ended) => self.conclude(&attempt, ended),
            Err(failure) => return self.fail(&attempt, &failure, failures),
        };
        if verdict == Verdict::Done
            && let Err(verdict) = self.leave_other_clouds(service, serving, failures).await
        {
            return verdict;
        }
        if self.is_still_there(service) {
            verdict
        } else {
            // It went while its balancer was made; the next look removes that again.
            WATCH_LAG
        }
    }

    fn is_still_there(&self, service: &ServiceView) -> bool {
        let now = self.parts.services.get(&service.key());
        now.is_some_and(|now| now.service.uid == service.service.uid)
    }

    /// Tells that work begins, if the Service is new or has changed. A look at what somebody left in
    /// order, or at other Nodes, is not worth an event.
    fn begin(&self, service: &Arc<ServiceView>) {
        let begins = self.records.update(service, |record| {
            record.attempts += 1;
            record.was_ensured = true;
            record.seen = Arc::clone(service);
            let is_news = match &record.settled {
                Some(settled) => needs_update(&settled.service, service, &self.parts.classes),
                None => !looks_served(service),
            };
            if record.settled.is_none() && is_news && record.waits_since.is_none() {
                record.waits_since = Some(Instant::now());
            }
            let was_told = record.told.ensuring;
            record.told.ensuring |= is_news;
            is_news && !was_told
        });
        if begins {
            self.parts.events.emit(messages::ensuring(&service.service));
        }
    }

    async fn try_to_ensure(
        &self,
        attempt: &mut Attempt<'_>,
        balancers: &dyn LoadBalancers,
    ) -> Result<Ended, Failure> {
        let serving = attempt.serving;
        match self.add_finalizer(&attempt.service).await? {
            Some(service) => attempt.service = service,
            None => return Ok(Ended::Gone),
        }
        let drafted = self.draft(&attempt.service, serving, balancers);
        let Aim { draft, marks } = drafted.map_err(|problems| {
            let cause = Cause::of_problems(&problems);
            Failure::new(Stage::Ensure, cause, Verdict::NeedsPerson)
        })?;
        attempt.follows_nodes = self.aim_at(attempt, &marks);
        attempt.marks = Some(marks);
        self.advise(&attempt.service, draft.warnings);
        self.tell_unavailable(&attempt.service, draft.spec.targets.is_empty());
        let outcome = match self.apply(attempt, balancers, &draft.spec).await? {
            Ok(outcome) => outcome,
            Err(ended) => return Ok(ended),
        };
        Self::log_steps(&attempt.service, outcome.done());
        self.tell_ineffective(&attempt.service, outcome.done());
        let hostname = draft.spec.options.hostname.as_deref();
        let update = StatusUpdate::of(&outcome, &serving.cloud, hostname);
        let is_published = update.ingress.as_ref().is_some_and(|list| !list.is_empty());
        self.publish(attempt, &update).await?;
        match outcome {
            Outcome::Pending {
                why, check_after, ..
            } => Ok(Ended::Pending { why, check_after }),
            Outcome::Settled { status, done, .. } => Ok(Ended::Settled {
                status,
                done,
                is_published,
            }),
            Outcome::Incomplete { failures, .. } => Err(Failure {
                is_partial: failures.are_refusals(),
                misses_machines: failures.kind == ErrorKind::NotFound,
                ..Failure::of_cloud(Stage::Ensure, &failures.to_error())
            }),
            Outcome::Gone { .. } => {
                let cause = Cause::of_text("the cloud says it is gone, although it was asked for");
                Err(Failure::new(Stage::Ensure, cause, Verdict::Failed))
            }
        }
    }

    /// A balancer whose address is published must be there. If it is not, another one is made only
    /// after it was missed twice by a cloud that shows machines of this cluster: a wrong credential
    /// shows no balancer at all, and would get one for each Service.
    async fn apply(
        &self,
        attempt: &Attempt<'_>,
        balancers: &dyn LoadBalancers,
        spec: &LoadBalancerSpec,
    ) -> Result<Result<Outcome, Ended>, Failure> {
        let service = &attempt.service;
        let cloud = attempt.serving.cloud.as_str();
        let is_from_here = conditions::cloud_on(service).is_none_or(|from| from == cloud);
        let must_exist = !service.ingress.is_empty() && is_from_here && spec.claim.adopt.is_none();
        let mut applied = if must_exist {
            let applied = balancers.apply_to_existing(spec).await;
            self.note_order(cloud, spec, &applied);
            applied
        } else {
            self.make(cloud, balancers, spec).await?
        };
        let is_missing = |error: &CloudError| error.kind() == ErrorKind::NotFound;
        if must_exist && applied.as_ref().is_err_and(is_missing) {
            let missing = Missing {
                service,
                clouds: BTreeSet::from([cloud.to_owned()]),
                is_pointed_at: true,
            };
            if let Err(check_after) = self.confirm_absence(&missing).await {
                let why = NOT_FOUND.to_owned();
                return Ok(Err(Ended::Pending { why, check_after }));
            }
            applied = self.make(cloud, balancers, spec).await?;
        } else {
            let key = service.key();
            self.records.amend(&key, |record| {
                record.missing_since = None;
                record.no_ready_node_since = None;
            });
        }
        match applied {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => {
                Ok(Err(Ended::Elsewhere))
            }
            Err(error) => Err(Failure::of_cloud(Stage::Ensure, &error)),
        }
    }

    /// Makes the balancer if it is not there, in a project that is ours.
    async fn make(
        &self,
        cloud: &str,
        balancers: &dyn LoadBalancers,
        spec: &LoadBalancerSpec,
    ) -> Result<Result<Outcome, CloudError>, Failure> {
        self.may_make(cloud).await?;
        let applied = balancers.apply(Wish::Present(spec)).await;
        self.note_order(cloud, spec, &applied);
        Ok(applied)
    }

    /// There is a balancer now, or may be one: the answer may be lost, and not the order.
    fn note_order(
        &self,
        cloud: &str,
        spec: &LoadBalancerSpec,
        applied: &Result<Outcome, CloudError>,
    ) {
        let changed_nothing = |error: &CloudError| {
            error.had_no_effect() || error.kind() == ErrorKind::ImplementedElsewhere
        };
        if applied.as_ref().is_err_and(changed_nothing) {
            return;
        }
        let key = spec.claim.service.to_string();
        self.records.amend(&key, |record| {
            record.set_presence(cloud, Presence::Possible);
            record.worked_on = Instant::now();
        });
    }

    /// Nothing is asked of a cloud before the finalizer is there. `None` if the Service is gone.
    async fn add_finalizer(
        &self,
        service: &Arc<ServiceView>,
    ) -> Result<Option<Arc<ServiceView>>, Failure> {
        if Bug::FinalizerOnLate.is_planted() {
            return Ok(Some(Arc::clone(service)));
        }
        let Some(patch) = finalizer::add(service) else {
            return Ok(Some(Arc::clone(service)));
        };
        match self.parts.writer.patch(&service.service, &patch).await {
            Ok(written) => Ok(Some(self.note_written(written))),
            Err(WriteError::Gone) => Ok(None),
            Err(error) => Err(Failure::of_write(Stage::AddFinalizer, &error)),
        }
    }

    /// Remembers what is about to be applied. Returns whether only the targets differ.
    fn aim_at(&self, attempt: &Attempt<'_>, marks: &Arc<Marks>) -> bool {
        self.records.update(&attempt.service, |record| {
            record.note_request(&attempt.serving.cloud);
            record.told.deleting = false;
            record.applying = Some(Arc::clone(marks));
            !record.told.ensuring && record.applied().is_some_and(|applied| applied != marks)
        })
    }

    async fn publish(
        &self,
        attempt: &mut Attempt<'_>,
        update: &StatusUpdate,
    ) -> Result<(), Failure> {
        let service = &attempt.service;
        if let Some(ingress) = &update.ingress {
            let ingress = ingress.clone();
            self.records
                .update(service, |record| record.ingress = Some(ingress));
        }
        let Some(patch) = update.patch(service, self.parts.clock.now()) else {
            return Ok(());
        };
        match self.parts.writer.patch(&service.service, &patch).await {
            Ok(written) => {
                let written = self.note_written(written);
                // What else has changed meanwhile is not what the balancer was made for.
                let mut worked_on = ServiceView::clone(service);
                worked_on.annotations.clone_from(&written.annotations);
                attempt.service = Arc::new(worked_on);
                Ok(())
            }
            Err(WriteError::Gone) => Ok(()),
            Err(error) => Err(Failure::of_write(Stage::WriteStatus, &error)),
        }
    }

    /// Remembers what the API server answered, until the watch has caught up.
    pub(super) fn note_written(&self, written: ServiceView) -> Arc<ServiceView> {
        let written = Arc::new(written);
        self.records.update(&written, |record| {
            record.written = Some(Arc::clone(&written));
        });
        written
    }

    fn conclude(&self, attempt: &Attempt<'_>, ended: Ended) -> Verdict {
        match ended {
            Ended::Gone => Verdict::Done,
            Ended::Elsewhere => {
                debug!(service = %attempt.service.service, "another component does this");
                self.settle(attempt);
                Verdict::Done
            }
            Ended::Pending { why, check_after } => {
                self.tell_pending(&attempt.service, &why);
                Verdict::AgainAfter(check_after)
            }
            Ended::Settled {
                status,
                done,
                is_published,
            } => {
                let had_begun = self.settle(attempt);
                self.tell_settled(attempt, had_begun, &done, &status);
                if is_published {
                    self.tell_published(&attempt.service, &attempt.serving.cloud);
                }
                Verdict::Done
            }
        }
    }

    /// Remembers how the balancer was left. Returns whether it was told that work had begun.
    fn settle(&self, attempt: &Attempt<'_>) -> bool {
        let service = Arc::clone(&attempt.service);
        let (had_begun, drains) = self.records.update(&attempt.service, |record| {
            record.applying = None;
            record.partly = None;
            record.in_trouble = false;
            record.complaint = None;
            record.settled = attempt
                .marks
                .clone()
                .map(|marks| Settled { service, marks });
            record.told.pending = None;
            let had_begun = std::mem::take(&mut record.told.ensuring);
            (had_begun, !record.leaving.is_empty())
        });
        if drains {
            // Whoever follows the Nodes has to know when somebody has been drained.
            self.churn.note();
        }
        had_begun
    }

    fn tell_settled(
        &self,
        attempt: &Attempt<'_>,
        had_begun: bool,
        done: &Plan,
        status: &LoadBalancerStatus,
    ) {
        let service = &attempt.service.service;
        if attempt.follows_nodes {
            let took = attempt.began.elapsed();
            self.parts.observer.hosts_updated(took, false);
        }
        let is_aimed = attempt
            .marks
            .as_ref()
            .is_some_and(|marks| !marks.is_empty());
        if had_begun || (!done.is_empty() && !attempt.follows_nodes) {
            self.parts.events.emit(messages::ensured(service, status));
        } else if !done.is_empty() && is_aimed {
            self.parts.events.emit(messages::updated(service));
        }
    }

    fn fail(&self, attempt: &Attempt<'_>, failure: &Failure, failures: u32) -> Verdict {
        let aimed_at = attempt.marks.clone().filter(|_| failure.is_partial);
        let drains = self.records.update(&attempt.service, |record| {
            record.applying = None;
            record.partly = aimed_at;
            record.in_trouble = true;
            record.partly.is_some() && !record.leaving.is_empty()
        });
        if drains {
            // As when it is settled.
            self.churn.note();
        }
        let service = &attempt.service.service;
        let what = format!("{}: {}", service.uid, failure.cause);
        if failure.misses_machines && !self.patience.is_over(&what) {
            // As when a machine is replaced: its Node is about to go.
            info!(%service, cause = failure.cause.in_full(), "left out for now");
            return failure.verdict;
        }
        let cause = self.note_failure(service, failure, failures);
        let names = attempt.marks.iter().flat_map(|marks| marks.keys());
        let names: Vec<&str> = names.map(String::as_str).collect();
        self.parts.events.emit(if attempt.follows_nodes {
            let took = attempt.began.elapsed();
            self.parts.observer.hosts_updated(took, true);
            messages::update_failed(service, names.into_iter(), &cause)
        } else {
            messages::sync_failed(service, failure.stage, &cause)
        });
        failure.verdict
    }
}
