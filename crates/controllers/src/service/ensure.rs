//! Ensures a Service's load balancer: finalizer, cloud, status, in this order. The provider plans whether a balancer is
//! created, updated or adopted: `Candidates` of the toolkit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, DesiredState, ErrorKind, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers,
    Outcome, Plan, ServiceChanges,
};
use tokio::time::Instant;
use tracing::debug;

use super::absence::{Missing, NOT_FOUND};
use super::conditions;
use super::controller::{ServiceController, looks_served};
use super::events::{self, Stage};
use super::failure::Failure;
use super::owner::{ServiceOwner, needs_update};
use super::record::Presence;
use super::spec::balancer_ref_of;
use super::status::StatusUpdate;
use super::targets::keys::TargetKeys;
use crate::planted::Bug;
use crate::runtime::{FailureMessage, Verdict, WriteError};
use crate::view::{ServiceView, View as _};

/// A Service that waits for a lock is enqueued when it is free; this is only in case.
pub(super) const LOCKED: Verdict = Verdict::AgainAfter(Duration::from_mins(1));

/// How soon to try again if the watch and the API server disagree about a Service.
const WATCH_LAG_PAUSE: Duration = Duration::from_secs(1);
pub(super) const WATCH_LAG: Verdict = Verdict::AgainAfter(WATCH_LAG_PAUSE);

/// How soon to look again for a new balancer that the cloud does not show.
const NOT_SHOWN_PAUSE: Duration = Duration::from_secs(5);

/// An attempt, as far as it has come.
pub(super) struct Attempt<'a> {
    pub(super) owner: &'a ServiceOwner,
    /// When, before the provider was taken that makes it.
    pub(super) began: Instant,
    /// The Service as it was worked on, with what was written meanwhile.
    pub(super) service: Arc<ServiceView>,
    /// The targets, once they are known.
    pub(super) targets: Option<Arc<TargetKeys>>,
    /// Whether only the targets differ.
    pub(super) follows_nodes: bool,
}

/// Whether an outcome says that the balancer exists, or is being made.
fn shows_balancer(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Settled { status, .. } | Outcome::Incomplete { status, .. } => status.exists,
        // What was done and is waited for is its creation, which this observation does not show.
        Outcome::Pending { status, done, .. } => status.is_some() || !done.is_empty(),
        Outcome::Gone { .. } => false,
    }
}

/// The outcome for a Service whose balancer is not found.
fn not_found(check_after: Duration) -> Outcome {
    Outcome::Pending {
        why: NOT_FOUND.to_owned(),
        check_after,
        status: None,
        changes: ServiceChanges::default(),
        done: Plan::default(),
        acknowledged: false,
    }
}

impl ServiceController {
    pub(super) async fn ensure(
        &self,
        service: &Arc<ServiceView>,
        owner: &ServiceOwner,
        failures: u32,
    ) -> Verdict {
        let began = Instant::now();
        let provider = self.provider_of(&owner.cloud);
        let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) else {
            let left = self.leave_other_clouds(service, owner, failures).await;
            if left.is_ok() {
                self.report_unsupported(service, &owner.cloud);
            }
            // Another configuration of the cloud may have some.
            return left.err().unwrap_or(Verdict::UserAction);
        };
        let locks = balancers.lock_keys(&balancer_ref_of(service, &self.parts.cluster));
        let Some(guard) = self.locks.acquire(&owner.cloud, locks, &service.key()) else {
            return LOCKED;
        };
        self.begin(service);
        let mut attempt = Attempt {
            owner,
            began,
            service: Arc::clone(service),
            targets: None,
            follows_nodes: false,
        };
        let tried = self.try_to_ensure(&mut attempt, balancers).await;
        drop(guard);
        let verdict = match tried {
            Ok(verdict) => verdict,
            Err(failure) => return self.fail(&attempt, &failure, failures).await,
        };
        if verdict == Verdict::Done
            && let Err(verdict) = self.leave_other_clouds(service, owner, failures).await
        {
            return verdict;
        }
        let now = self.parts.services.get(&service.key());
        if now.is_some_and(|now| now.service.uid == service.service.uid) {
            verdict
        } else {
            // It went while its balancer was made, which is deleted next.
            WATCH_LAG
        }
    }

    /// Reports that work begins, if the Service is new or has changed. A check of what an earlier leader
    /// left in order, or other Nodes, are not worth an Event.
    fn begin(&self, service: &Arc<ServiceView>) {
        let begins = self.records.update(service, |record| {
            record.attempts += 1;
            record.seen = Arc::clone(service);
            let is_news = match &record.settled {
                Some(settled) => needs_update(settled, service, &self.parts.classes),
                None => !looks_served(service),
            };
            if record.settled.is_none() && is_news && record.waits_since.is_none() {
                record.waits_since = Some(Instant::now());
            }
            let was_reported = record.reported.ensuring;
            record.reported.ensuring |= is_news;
            is_news && !was_reported
        });
        if begins {
            self.record_event(&service.service, events::ENSURING);
        }
    }

    async fn try_to_ensure(
        &self,
        attempt: &mut Attempt<'_>,
        balancers: &dyn LoadBalancers,
    ) -> Result<Verdict, Failure> {
        let cloud = attempt.owner.cloud.as_str();
        // Its stand-in does not know what the cloud's balancers can do.
        let available = self
            .cloud(cloud)
            .map_or(Ok(()), |it| it.availability.check());
        available.map_err(|error| Failure::of_cloud(Stage::Ensure, &error))?;
        if !self.add_finalizer(&mut attempt.service).await? {
            return Ok(Verdict::Done);
        }
        let desired = self.desired(&attempt.service, attempt.owner, balancers);
        let (draft, keys) = desired.map_err(|problems| {
            let cause = FailureMessage::from_problems(&problems);
            Failure {
                is_rejected: true,
                ..Failure::new(Stage::Ensure, cause, Verdict::UserAction)
            }
        })?;
        attempt.follows_nodes = self.records.update(&attempt.service, |record| {
            record.note_request(cloud);
            record.reported.deleting = false;
            record.applying = Some(Arc::clone(&keys));
            record.attempted = None;
            let applied = record.applied.as_ref();
            !record.reported.ensuring && applied.is_some_and(|applied| *applied != keys)
        });
        attempt.targets = Some(keys);
        self.report_warnings(&attempt.service, draft.warnings);
        self.report_availability(&attempt.service, !draft.spec.targets.is_empty());
        let Some(outcome) = self.apply(attempt, balancers, &draft.spec).await? else {
            debug!(service = %attempt.service.service, "load balancer is implemented elsewhere");
            self.settle(attempt);
            return Ok(Verdict::Done);
        };
        self.report_steps(&attempt.service.service, outcome.done());
        let update = StatusUpdate::of(&outcome, cloud, &draft.spec.options);
        self.publish(attempt, &update).await?;
        match outcome {
            Outcome::Pending {
                why, check_after, ..
            } => {
                self.report_pending(&attempt.service, &why);
                Ok(Verdict::AgainAfter(check_after))
            }
            Outcome::Settled { status, done, .. } => {
                self.report_settled(attempt, &done, &status);
                self.report_health(&attempt.service, &draft.spec, &status.health);
                let left = self.inherited_drain(&attempt.service);
                let left = left.filter(|_| status.draining > 0);
                Ok(left.map_or(Verdict::Done, Verdict::AgainAfter))
            }
            Outcome::Incomplete { failures, .. } => Err(Failure {
                is_partial: failures.are_refusals(),
                misses_machines: failures.kind == ErrorKind::NotFound,
                ..Failure::of_cloud(Stage::Ensure, &failures.to_error())
            }),
            Outcome::Gone { .. } => {
                let cause = FailureMessage::from_text(
                    "the cloud reports the load balancer as deleted, although the Service asks for it",
                );
                Err(Failure::new(Stage::Ensure, cause, Verdict::Failed))
            }
        }
    }

    /// A balancer whose address is published, or that this process has seen, must be there. If it is not, another one
    /// is made only after it was missed twice by a cloud that shows machines of this cluster: a wrong credential
    /// shows no balancer at all, and would get one for each Service. `None` if another component makes it.
    async fn apply(
        &self,
        attempt: &Attempt<'_>,
        balancers: &dyn LoadBalancers,
        spec: &LoadBalancerSpec,
    ) -> Result<Option<Outcome>, Failure> {
        let service = &attempt.service;
        let cloud = attempt.owner.cloud.as_str();
        let is_from_here = conditions::cloud_on(service).is_none_or(|from| from == cloud);
        let is_published = !service.ingress.is_empty();
        let is_known = (is_published && is_from_here) || self.has_seen_balancer(service, cloud);
        let is_planted = is_known && Bug::RecreateAnywhere.is_planted();
        let must_exist = is_known && !is_planted && spec.balancer_ref.adopt.is_none();
        let mut applied = if must_exist {
            balancers.apply_to_existing(spec).await
        } else {
            if !is_planted {
                self.check_may_create(cloud, attempt.began).await?;
            }
            balancers.apply(DesiredState::Present(spec)).await
        };
        self.note_order(attempt, &applied);
        let is_missing = |error: &CloudError| error.kind() == ErrorKind::NotFound;
        if must_exist && applied.as_ref().is_err_and(is_missing) {
            let missing = Missing {
                service,
                began: attempt.began,
                clouds: BTreeSet::from([cloud.to_owned()]),
                is_pointed_at: true,
            };
            if let Err(check_after) = self.confirm_absence(&missing).await {
                // One without an address is new, and the cloud may show it any moment.
                let soon = if is_published {
                    check_after
                } else {
                    NOT_SHOWN_PAUSE
                };
                return Ok(Some(not_found(check_after.min(soon))));
            }
            if !self.confirm_finalizer(service).await? {
                return Ok(Some(not_found(WATCH_LAG_PAUSE)));
            }
            self.check_may_create(cloud, attempt.began).await?;
            applied = balancers.apply(DesiredState::Present(spec)).await;
            self.note_order(attempt, &applied);
        } else {
            self.records.amend(&service.key(), |record| {
                record.missing_since = None;
                record.no_ready_node_since = None;
            });
        }
        match applied {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => Ok(None),
            Err(error) => Err(Failure::of_cloud(Stage::Ensure, &error)),
        }
    }

    /// Whether a balancer is in the cloud beyond doubt, as far as this process knows.
    fn has_seen_balancer(&self, service: &ServiceView, cloud: &str) -> bool {
        let presence = self
            .records
            .read(&service.key(), |record| record.presence_in(cloud));
        presence.flatten() == Some(Presence::Seen)
    }

    /// There is a balancer now, or may be one: the answer may be lost, and not the order.
    fn note_order(&self, attempt: &Attempt<'_>, applied: &Result<Outcome, CloudError>) {
        let changed_nothing = |error: &CloudError| {
            error.had_no_effect() || error.kind() == ErrorKind::ImplementedElsewhere
        };
        if applied.as_ref().is_err_and(changed_nothing) {
            return;
        }
        let cloud = &attempt.owner.cloud;
        let is_seen = applied.as_ref().is_ok_and(shows_balancer);
        self.records.amend(&attempt.service.key(), |record| {
            if is_seen {
                record.set_presence(cloud, Presence::Seen);
            } else if record.presence_in(cloud) != Some(Presence::Seen) {
                record.set_presence(cloud, Presence::Possible);
            }
            record.worked_on = Some(Instant::now());
        });
    }

    async fn publish(&self, attempt: &mut Attempt<'_>, to: &StatusUpdate) -> Result<(), Failure> {
        let service = &attempt.service;
        if let Some(ingress) = to.ingress.clone() {
            self.records
                .update(service, |record| record.ingress = Some(ingress));
        }
        let Some(patch) = to.patch(service, self.parts.clock.now()) else {
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

    /// Remembers how the balancer was left. Returns whether it was reported that work had begun.
    fn settle(&self, attempt: &Attempt<'_>) -> bool {
        let service = Arc::clone(&attempt.service);
        let targets = attempt.targets.clone();
        self.records.update(&attempt.service, |record| {
            record.applying = None;
            record.attempted = None;
            record.needs_retry = false;
            record.last_error = None;
            record.settled = Some(service);
            record.applied = targets;
            record.reported.pending = None;
            std::mem::take(&mut record.reported.ensuring)
        })
    }

    fn report_settled(&self, attempt: &Attempt<'_>, done: &Plan, status: &LoadBalancerStatus) {
        let had_begun = self.settle(attempt);
        let service = &attempt.service;
        if attempt.follows_nodes {
            let took = attempt.began.elapsed();
            self.parts.observer.hosts_updated(took, false);
        }
        let has_targets = attempt.targets.as_ref().is_some_and(|it| !it.is_empty());
        if had_begun || (!done.is_empty() && !attempt.follows_nodes) {
            self.emit(events::ensured(&service.service, status));
        } else if !done.is_empty() && has_targets {
            self.record_event(&service.service, events::UPDATED);
        }
        let published = Some(service).filter(|_| !status.ingress.is_empty());
        let waited =
            published.and_then(|it| self.records.update(it, |record| record.waits_since.take()));
        if let Some(since) = waited {
            let cloud = &attempt.owner.cloud;
            self.parts.observer.published(cloud, since.elapsed());
        }
    }
}
