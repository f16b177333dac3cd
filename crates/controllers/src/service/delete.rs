//! Deletes the balancers of Services that are deleted, have another type, were deleted without their finalizer, or
//! moved to another cloud.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::{BalancerRef, DesiredState, ErrorKind, LoadBalancers, Outcome, Plan, names};
use tokio::time::Instant;
use tracing::{info, warn};

use super::absence::{Missing, MissingBalancer};
use super::conditions;
use super::controller::ServiceController;
use super::ensure::{LOCKED, WATCH_LAG};
use super::events::{self, Stage};
use super::failure::Failure;
use super::owner::{ServiceOwner, cleanup_of, wants_balancer};
use super::record::Presence;
use super::spec::balancer_ref_of;
use super::status::{self, StatusUpdate};
use crate::clouds::SCOPE_RETRY;
use crate::log_messages::{
    LOAD_BALANCER_KEPT, SERVICE_DELETED_WITHOUT_FINALIZER, SERVICE_NOT_READ,
};
use crate::paused::paused_by;
use crate::planted::Bug;
use crate::runtime::{FailureMessage, Verdict, WriteError};
use crate::view::{ServiceView, View as _};

type Clouds = BTreeSet<String>;

/// How often others may change a Service while its finalizer is added or removed.
pub(super) const MOST_CONFLICTS: usize = 4;

/// A balancer that is to be deleted.
struct Deletion<'a> {
    service: &'a Arc<ServiceView>,
    key: String,
    balancer_ref: BalancerRef,
    began: Instant,
    /// Whether the balancer stays, without its owner labels.
    is_retained: bool,
    /// Whether the Service is there and waits.
    is_waited_for: bool,
    failures: u32,
}

impl ServiceController {
    fn deletion<'a>(
        &self,
        service: &'a Arc<ServiceView>,
        is_waited_for: bool,
        failures: u32,
    ) -> Deletion<'a> {
        Deletion {
            service,
            key: service.key(),
            balancer_ref: balancer_ref_of(service, &self.parts.cluster),
            began: Instant::now(),
            is_retained: is_retained(service),
            is_waited_for,
            failures,
        }
    }

    /// Deletes the balancer of a Service that should have none. The finalizer is removed only when nothing of the
    /// balancer is left.
    pub(super) async fn delete(&self, service: &Arc<ServiceView>, failures: u32) -> Verdict {
        let cleanup = cleanup_of(service, &self.parts.classes, |cloud| {
            self.provider_of(cloud).is_some()
        });
        let mut clouds: Clouds = cleanup.clouds.iter().map(ToString::to_string).collect();
        let was_served = self.records.update(service, |record| {
            record.needs_retry = true;
            record.seen = Arc::clone(service);
            clouds.extend(record.clouds().cloned());
            record.clouds().next().is_some()
        });
        let deletion = self.deletion(service, true, failures);
        if Bug::FinalizerOffEarly.is_planted() {
            self.release(&deletion).await;
        }
        let deleted = match self.delete_from_all(&clouds, &deletion).await {
            Ok(deleted) => deleted,
            Err(verdict) => return verdict,
        };
        if cleanup.finalizer_is_ours || !deleted.is_empty() || was_served {
            return self.release(&deletion).await;
        }
        self.records.remove(&service.key());
        if conditions::cloud_on(service).is_none() {
            let class = service.class.as_deref();
            self.emit(events::finalizer_left(&service.service, class));
        }
        Verdict::Done
    }

    /// Nothing is left: lets the Service go.
    async fn release(&self, of: &Deletion<'_>) -> Verdict {
        let service = of.service;
        // Once the finalizer is off, the watch may forget the Service at any time.
        let was_kept = self.was_kept(&of.key);
        let released = match self.remove_finalizer(service).await {
            Ok(released) => released,
            Err(error) => {
                let failure = Failure::of_write(Stage::RemoveFinalizer, &error);
                return self.fail_to_delete(of, &failure);
            }
        };
        if !was_kept {
            self.record_event(&service.service, events::DELETED);
        }
        self.records.remove(&service.key());
        if let Some(released) = released.filter(|s| wants_balancer(s, &self.parts.classes)) {
            // It asks for another one by now. The watch may still show it with its address.
            self.note_written(released);
        }
        Verdict::Done
    }

    /// Removes the finalizer from the Service as it is now. Returns it as it is afterwards, unless it is gone or
    /// there was nothing to remove. One that asks for a balancer again keeps its finalizer, and loses the address of
    /// the balancer that is gone.
    async fn remove_finalizer(
        &self,
        service: &ServiceView,
    ) -> Result<Option<ServiceView>, WriteError> {
        let writer = &self.parts.writer;
        let mut latest = Some(service.clone());
        for _ in 0..MOST_CONFLICTS {
            let now = self.parts.clock.now();
            let patch = latest.as_ref().and_then(|latest| {
                if wants_balancer(latest, &self.parts.classes) {
                    StatusUpdate::released().patch(latest, now)
                } else {
                    status::release(latest, now)
                }
            });
            let Some(patch) = patch else {
                return Ok(None);
            };
            match writer.patch(&service.service, &patch).await {
                Ok(written) => return Ok(Some(written)),
                Err(WriteError::Gone) => return Ok(None),
                Err(WriteError::Conflict) => latest = writer.read(&service.service).await?,
                Err(error) => return Err(error),
            }
        }
        Err(WriteError::Conflict)
    }

    /// Deletes what these clouds have. Where nothing was found to delete although there may have been
    /// something, its absence has to be confirmed. Returns the clouds from which something was deleted.
    async fn delete_from_all(&self, clouds: &Clouds, of: &Deletion<'_>) -> Result<Clouds, Verdict> {
        let deleted = self.delete_from(clouds, of).await?;
        let service = of.service;
        let missing = Missing {
            service,
            began: of.began,
            clouds: clouds.difference(&deleted).cloned().collect(),
            // What the Service points at is the one that was deleted.
            is_pointed_at: deleted.is_empty() && self.points_at_balancer(service, clouds),
        };
        match self.confirm_absence(&missing).await {
            Ok(MissingBalancer::Confirmed) => {
                for cloud in &missing.clouds {
                    let provider = self.provider_of(cloud);
                    if let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) {
                        self.check_absent(cloud, balancers, of).await?;
                    }
                }
            }
            Ok(MissingBalancer::NothingToMiss) => {}
            Err(after) => return Err(Verdict::AgainAfter(after)),
        }
        Ok(deleted)
    }

    /// Deletes the balancer of a Service that went without its finalizer, whether another Service has its
    /// name by now or not.
    pub(super) async fn clean_up_replaced_service(
        &self,
        key: &str,
        failures: u32,
    ) -> Result<(), Verdict> {
        let remembered = self.records.read(key, |record| {
            let clouds: Clouds = record.clouds().cloned().collect();
            (Arc::clone(&record.seen), clouds)
        });
        let Some((gone, mut clouds)) = remembered else {
            return Ok(());
        };
        let successor = self.parts.services.get(key);
        if paused_by(&gone.annotations).is_some() {
            // Its balancer stays as it is, and is reported as an orphan.
            clouds.clear();
        }
        match &successor {
            Some(service) if service.service.uid == gone.service.uid => return Ok(()),
            None if !clouds.is_empty() => self.confirm_gone(&gone).await?,
            Some(_) | None => {}
        }
        if !clouds.is_empty() {
            let deletion = self.deletion(&gone, false, failures);
            self.delete_from_all(&clouds, &deletion).await?;
            if !self.was_kept(key) {
                self.record_event(&gone.service, events::DELETED);
            }
        }
        self.records.remove(key);
        Ok(())
    }

    /// A watch that shows no Service is no proof that there is none: asks the API server itself.
    async fn confirm_gone(&self, gone: &ServiceView) -> Result<(), Verdict> {
        let service = &gone.service;
        match self.parts.writer.read(service).await {
            Ok(Some(_)) => Err(WATCH_LAG),
            Ok(None) => {
                info!(%service, "{SERVICE_DELETED_WITHOUT_FINALIZER}");
                Ok(())
            }
            Err(error) => {
                warn!(%service, err = %error, "{SERVICE_NOT_READ}");
                Err(Verdict::Failed)
            }
        }
    }

    /// Deletes what a Service still has in clouds that do not serve it any more.
    pub(super) async fn leave_other_clouds(
        &self,
        service: &Arc<ServiceView>,
        owner: &ServiceOwner,
        failures: u32,
    ) -> Result<(), Verdict> {
        let key = service.key();
        let others = self.records.read(&key, |record| {
            let others = record.clouds().filter(|cloud| **cloud != owner.cloud);
            others.cloned().collect::<Clouds>()
        });
        let others = others.unwrap_or_default();
        if others.is_empty() {
            return Ok(());
        }
        let deletion = self.deletion(service, true, failures);
        for cloud in &others {
            if !self.is_our_project(cloud, &deletion).await? {
                // What its credential shows may be the balancer that serves, in the project of another cloud.
                return Err(Verdict::AgainAfter(SCOPE_RETRY));
            }
        }
        self.delete_from(&others, &deletion).await?;
        self.records.amend(&key, |record| {
            record.forget_clouds(&others);
            record.reported.deleting = false;
        });
        Ok(())
    }

    /// The clouds from which something was deleted, when none of them shows anything any more. One that
    /// fails does not keep the others from being asked.
    async fn delete_from(&self, clouds: &Clouds, of: &Deletion<'_>) -> Result<Clouds, Verdict> {
        let mut deleted = Clouds::new();
        let mut unfinished = None;
        for cloud in clouds {
            match self.delete_from_one(cloud, of).await {
                Ok(true) => _ = deleted.insert(cloud.clone()),
                Ok(false) => {}
                Err(verdict) => unfinished = unfinished.or(Some(verdict)),
            }
        }
        unfinished.map_or(Ok(deleted), Err)
    }

    async fn delete_from_one(&self, cloud: &str, of: &Deletion<'_>) -> Result<bool, Verdict> {
        let Deletion {
            key, balancer_ref, ..
        } = of;
        let provider = self.provider_of(cloud);
        let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) else {
            let cause = FailureMessage::from_text(format_args!(
                "cloud {cloud} is configured without load balancers, so the one that this Service may have \
                 there cannot be deleted: enable load balancers, or delete it by hand and remove the \
                 finalizer"
            ));
            let failure = Failure::new(Stage::Delete, cause, Verdict::UserAction);
            return Err(self.fail_to_delete(of, &failure));
        };
        let locks = balancers.lock_keys(balancer_ref);
        let Some(_guard) = self.locks.acquire(cloud, locks, key) else {
            return Err(LOCKED);
        };
        let here = self.reference_in(cloud, of);
        let desired = if of.is_retained {
            DesiredState::Released(&here)
        } else {
            DesiredState::Absent(&here)
        };
        let failure = match balancers.apply(desired).await {
            Ok(Outcome::Gone {
                done,
                kept,
                acknowledged,
            }) => {
                self.note_deletion(cloud, of, &done, acknowledged);
                if kept.is_empty() {
                    return self.is_deleted(cloud, balancers, of).await;
                }
                if of.is_retained {
                    self.emit(events::retained(&balancer_ref.service, cloud, &kept));
                }
                // It was found by the Service's own UID, and stays on purpose: there is nothing to miss.
                info!(service = %balancer_ref.service, cloud, kept = kept.join(", "), "{LOAD_BALANCER_KEPT}");
                self.records.amend(key, |record| {
                    record.set_presence(cloud, Presence::Removed);
                    record.reported.kept = true;
                });
                return Ok(true);
            }
            Ok(Outcome::Pending {
                why,
                check_after,
                done,
                acknowledged,
                ..
            }) => {
                self.note_deletion(cloud, of, &done, acknowledged);
                info!(service = %balancer_ref.service, cloud, why, "waiting for load balancer to be deleted");
                return Err(Verdict::AgainAfter(check_after));
            }
            Ok(Outcome::Settled { .. } | Outcome::Incomplete { .. }) => {
                let cause = FailureMessage::from_text(
                    "the cloud still shows the load balancer after its deletion",
                );
                Failure::new(Stage::Delete, cause, Verdict::Failed)
            }
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => return Ok(false),
            Err(error) => Failure::of_cloud(Stage::Delete, &error),
        };
        Err(self.fail_to_delete(of, &failure))
    }

    /// What points at the balancer in a cloud, which may show those of other Services too.
    fn reference_in(&self, cloud: &str, of: &Deletion<'_>) -> BalancerRef {
        BalancerRef {
            others: self.others(&of.balancer_ref.service, cloud),
            ..of.balancer_ref.clone()
        }
    }

    /// Remembers what an attempt to delete the balancer has shown.
    fn note_deletion(&self, cloud: &str, of: &Deletion<'_>, done: &Plan, is_agreed: bool) {
        if done.is_empty() {
            return;
        }
        let mut is_new = false;
        self.records.amend(&of.key, |record| {
            is_new = !std::mem::replace(&mut record.reported.deleting, true);
            // A cloud that shows late what it deleted does not take its word back.
            match record.presence_in(cloud) {
                _ if is_agreed => record.set_presence(cloud, Presence::Removing),
                Some(Presence::Removing | Presence::Removed) => {}
                _ => record.set_presence(cloud, Presence::Vanished),
            }
        });
        if is_new && !of.is_retained {
            self.record_event(&of.balancer_ref.service, events::DELETING);
        }
    }

    /// The cloud shows nothing any more. Whether that is because the balancer was deleted.
    ///
    /// What the cloud agreed to delete was found there by the UID of its Service, so the project was ours,
    /// and nothing else has to confirm that. What only vanished may be in another project by now, unless a
    /// machine of this cluster is seen after that, and a last check still finds nothing.
    async fn is_deleted(
        &self,
        cloud: &str,
        balancers: &dyn LoadBalancers,
        of: &Deletion<'_>,
    ) -> Result<bool, Verdict> {
        let known = self
            .records
            .read(&of.key, |record| record.presence_in(cloud));
        match known.flatten() {
            Some(Presence::Removing | Presence::Removed) => {}
            Some(Presence::Vanished) if Bug::BelieveVanished.is_planted() => {}
            Some(Presence::Vanished) => {
                if !self.is_our_project(cloud, of).await? {
                    return Ok(false);
                }
                self.check_absent(cloud, balancers, of).await?;
            }
            None | Some(Presence::Asked | Presence::Possible | Presence::Seen) => return Ok(false),
        }
        self.records.amend(&of.key, |record| {
            record.set_presence(cloud, Presence::Removed);
        });
        Ok(true)
    }

    /// Whether the cloud shows an instance of this cluster now. In a project that is not ours, that nothing is found
    /// says nothing about the balancer of the Service.
    async fn is_our_project(&self, cloud: &str, of: &Deletion<'_>) -> Result<bool, Verdict> {
        let confirmed = self.is_scope_confirmed(cloud, Instant::now(), of.began, Stage::Delete);
        let confirmed = confirmed.await;
        confirmed.map_err(|failure| self.fail_to_delete(of, &failure))
    }

    /// The last check, after one that found instances of this cluster. Nothing was seen before that
    /// either, so the credential was not another one meanwhile.
    async fn check_absent(
        &self,
        cloud: &str,
        balancers: &dyn LoadBalancers,
        of: &Deletion<'_>,
    ) -> Result<(), Verdict> {
        let here = self.reference_in(cloud, of);
        match balancers.plan(DesiredState::Absent(&here)).await {
            Ok(plan) if plan.is_empty() => Ok(()),
            Ok(_) => Err(WATCH_LAG),
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => Ok(()),
            Err(error) => {
                let failure = Failure::of_cloud(Stage::Delete, &error);
                Err(self.fail_to_delete(of, &failure))
            }
        }
    }

    fn fail_to_delete(&self, of: &Deletion<'_>, failure: &Failure) -> Verdict {
        let service = &of.balancer_ref.service;
        let cause = self.record_failure(service, failure, of.failures);
        self.emit(if of.is_waited_for {
            events::sync_failed(service, failure.stage, &cause)
        } else {
            events::delete_failed(service, &cause)
        });
        failure.verdict
    }

    /// Whether the balancer stays on purpose, so that no Event says that it is gone.
    fn was_kept(&self, key: &str) -> bool {
        let kept = self.records.read(key, |record| record.reported.kept);
        kept.unwrap_or_default()
    }
}

/// Whether the balancer of a Service stays when it goes. In doubt it does: what is deleted does not come back.
fn is_retained(service: &ServiceView) -> bool {
    names::LB_RETAIN.get(&service.annotations) != Ok(Some(false)) && !Bug::IgnoreRetain.is_planted()
}

#[cfg(test)]
mod tests;
