//! Removes balancers: of Services that are deleted, have another type, went without saying goodbye, or
//! moved to another cloud.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::{Claim, ErrorKind, LoadBalancers, Outcome, Wish};
use tracing::{info, warn};

use super::absence::Absence;
use super::claim::claim_of;
use super::conditions;
use super::controller::ServiceController;
use super::ensure::{Failure, UNTIL_ITS_TURN, WATCH_LAG};
use super::finalizer;
use super::messages::{self, Cause, Stage};
use super::wants::{Serving, cleanup_of, wants_balancer};
use crate::planted::Bug;
use crate::runtime::{Verdict, WriteError};
use crate::view::{ServiceView, View as _};

/// Which events tell of a failure.
#[derive(Clone, Copy)]
enum Bereaved {
    /// The Service is there and waits.
    Service,
    /// The Service is gone.
    Nobody,
}

/// A balancer that is to be removed.
struct Removal<'a> {
    key: &'a str,
    claim: Claim,
    bereaved: Bereaved,
    failures: u32,
}

impl ServiceController {
    /// Removes the balancer of a Service that wants none any more. The finalizer goes only when
    /// nothing of the balancer is left.
    pub(super) async fn remove(&self, service: &Arc<ServiceView>, failures: u32) -> Verdict {
        let key = service.key();
        let cleanup = cleanup_of(service, &self.parts.classes, |cloud| {
            self.balancers_of(cloud).is_some()
        });
        let mut clouds: BTreeSet<String> = cleanup.clouds.iter().map(ToString::to_string).collect();
        let was_served = self.records.update(service, |record| {
            record.attempts += 1;
            record.in_trouble = true;
            record.seen = Arc::clone(service);
            clouds.extend(record.clouds.iter().cloned());
            record.may_have_balancer()
        });
        let removal = Removal {
            key: &key,
            claim: claim_of(service, &self.parts.cluster),
            bereaved: Bereaved::Service,
            failures,
        };
        if Bug::FinalizerOffEarly.is_planted() {
            self.release(service, failures).await;
        }
        let has_removed = match self.remove_from(&clouds, &removal).await {
            Ok(has_removed) => has_removed,
            Err(verdict) => return verdict,
        };
        if !has_removed && !clouds.is_empty() {
            let proven = self.prove_absence(service, &clouds, was_served, &removal);
            if let Err(verdict) = proven.await {
                return verdict;
            }
        }
        if !(cleanup.finalizer_is_ours || has_removed || was_served) {
            self.records.remove(&key);
            if conditions::cloud_on(service).is_none() {
                let class = service.class.as_deref();
                let event = messages::finalizer_left(&service.service, class);
                self.parts.events.emit(event);
            }
            return Verdict::Done;
        }
        self.release(service, failures).await
    }

    /// Nothing is left: lets the Service go.
    async fn release(&self, service: &Arc<ServiceView>, failures: u32) -> Verdict {
        let mut released = None;
        if let Some(patch) = finalizer::release(service, self.parts.clock.now()) {
            match self.parts.writer.patch(&service.service, &patch).await {
                Ok(written) => released = Some(written),
                Err(WriteError::Gone) => {}
                Err(error) => {
                    let failure = Failure::of_write(Stage::RemoveFinalizer, &error);
                    let cause = self.note_failure(&service.service, &failure, failures);
                    let event = messages::sync_failed(&service.service, failure.stage, &cause);
                    self.parts.events.emit(event);
                    return failure.verdict;
                }
            }
        }
        self.parts.events.emit(messages::deleted(&service.service));
        self.records.remove(&service.key());
        if let Some(released) = released.filter(|s| wants_balancer(s, &self.parts.classes)) {
            // It wants another one by now. The watch may still show it with its finalizer.
            self.note_written(released);
        }
        Verdict::Done
    }

    /// Nothing was found to remove. If there may have been something, its absence has to be proven.
    async fn prove_absence(
        &self,
        service: &Arc<ServiceView>,
        clouds: &BTreeSet<String>,
        was_served: bool,
        removal: &Removal<'_>,
    ) -> Result<(), Verdict> {
        match self.confirm_absence(service, clouds, was_served).await {
            Ok(Absence::Confirmed) => self.is_absent_from(clouds, removal).await,
            Ok(Absence::NothingToMiss) => Ok(()),
            Err(after) => Err(Verdict::AgainAfter(after)),
        }
    }

    /// Removes the balancer of a Service that is gone without having waited for that, whether another
    /// has its name by now or not.
    pub(super) async fn bury_predecessor(&self, key: &str, failures: u32) -> Result<(), Verdict> {
        let remembered = self.records.read(key, |record| {
            (Arc::clone(&record.seen), record.clouds.clone())
        });
        let Some((gone, clouds)) = remembered else {
            return Ok(());
        };
        let successor = self.parts.services.get(key);
        match &successor {
            Some(service) if service.service.uid == gone.service.uid => return Ok(()),
            None if !clouds.is_empty() => self.confirm_gone(&gone).await?,
            Some(_) | None => {}
        }
        if !clouds.is_empty() {
            let removal = Removal {
                key,
                claim: claim_of(&gone, &self.parts.cluster),
                bereaved: Bereaved::Nobody,
                failures,
            };
            if !self.remove_from(&clouds, &removal).await? {
                self.prove_absence(&gone, &clouds, true, &removal).await?;
            }
            self.parts.events.emit(messages::deleted(&gone.service));
        }
        self.records.remove(key);
        Ok(())
    }

    /// A watch that shows no Service is no proof that there is none: asks the API server itself.
    async fn confirm_gone(&self, gone: &ServiceView) -> Result<(), Verdict> {
        let service = &gone.service;
        match self.parts.writer.uid_of(service).await {
            Ok(Some(uid)) if uid == service.uid => Err(WATCH_LAG),
            Ok(_) => {
                info!(%service, "gone without its finalizer: its load balancer is removed");
                Ok(())
            }
            Err(error) => {
                warn!(%service, %error, "cannot tell whether the service is gone");
                Err(Verdict::Failed)
            }
        }
    }

    /// Removes what a Service still has in clouds that do not serve it any more.
    pub(super) async fn leave_other_clouds(
        &self,
        service: &Arc<ServiceView>,
        serving: &Serving,
        failures: u32,
    ) -> Result<(), Verdict> {
        let key = service.key();
        let others = self.records.read(&key, |record| {
            let mut others = record.clouds.clone();
            others.remove(&serving.cloud);
            others
        });
        let others = others.unwrap_or_default();
        if others.is_empty() {
            return Ok(());
        }
        let removal = Removal {
            key: &key,
            claim: claim_of(service, &self.parts.cluster),
            bereaved: Bereaved::Service,
            failures,
        };
        self.remove_from(&others, &removal).await?;
        self.records.amend(&key, |record| {
            record.clouds.retain(|cloud| !others.contains(cloud));
            record.told.deleting = false;
        });
        Ok(())
    }

    /// Whether anything had to be removed, when nothing is left in any of these clouds. One that fails
    /// does not keep the others from being asked.
    async fn remove_from(
        &self,
        clouds: &BTreeSet<String>,
        removal: &Removal<'_>,
    ) -> Result<bool, Verdict> {
        let mut has_removed = false;
        let mut unfinished = None;
        for cloud in clouds {
            match self.remove_from_one(cloud, removal).await {
                Ok(removed) => has_removed |= removed,
                Err(verdict) => unfinished = unfinished.or(Some(verdict)),
            }
        }
        unfinished.map_or(Ok(has_removed), Err)
    }

    async fn remove_from_one(&self, cloud: &str, removal: &Removal<'_>) -> Result<bool, Verdict> {
        let Removal { key, claim, .. } = removal;
        let Some(balancers) = self.balancers_of(cloud) else {
            let cause = Cause::of_text(format_args!(
                "cloud {cloud} has no load balancers as it is configured now, so what it may have of \
                 this Service cannot be removed: switch them on, or remove it by hand and take the \
                 finalizer away"
            ));
            let failure = Failure::new(Stage::Delete, cause, Verdict::NeedsPerson);
            return Err(self.fail_to_remove(removal, &failure));
        };
        let lock = balancers.lock_key(claim);
        let Some(_turn) = self.turns.take(cloud, lock, key) else {
            return Err(UNTIL_ITS_TURN);
        };
        let outcome = match balancers.apply(Wish::Absent(claim)).await {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => return Ok(false),
            Err(error) => {
                let failure = Failure::of_cloud(Stage::Delete, &error);
                return Err(self.fail_to_remove(removal, &failure));
            }
        };
        let has_removed = !outcome.done().is_empty();
        if has_removed {
            self.tell_deleting(removal);
        }
        match outcome {
            Outcome::Gone { .. } => {
                let has_removed = has_removed || self.was_deleting(key);
                if has_removed {
                    let ours = self.may_give_up(cloud).await;
                    ours.map_err(|failure| self.fail_to_remove(removal, &failure))?;
                    self.is_absent(balancers, removal).await?;
                    self.records.amend(key, |record| {
                        record.clouds.remove(cloud);
                    });
                }
                Ok(has_removed)
            }
            Outcome::Pending {
                why, check_after, ..
            } => {
                info!(service = %claim.service, cloud, why, "the load balancer is on its way out");
                Err(Verdict::AgainAfter(check_after))
            }
            Outcome::Settled { .. } => {
                let cause = Cause::of_text("the cloud says it is there, although it was to go");
                let failure = Failure::new(Stage::Delete, cause, Verdict::Failed);
                Err(self.fail_to_remove(removal, &failure))
            }
        }
    }

    async fn is_absent_from(
        &self,
        clouds: &BTreeSet<String>,
        removal: &Removal<'_>,
    ) -> Result<(), Verdict> {
        for balancers in clouds.iter().filter_map(|cloud| self.balancers_of(cloud)) {
            self.is_absent(balancers, removal).await?;
        }
        Ok(())
    }

    /// The last look, after one that found machines of this cluster. Nothing was seen before that
    /// either, so the credential was not another one meanwhile.
    async fn is_absent(
        &self,
        balancers: &dyn LoadBalancers,
        removal: &Removal<'_>,
    ) -> Result<(), Verdict> {
        match balancers.plan(Wish::Absent(&removal.claim)).await {
            Ok(plan) if plan.is_empty() => Ok(()),
            Ok(_) => Err(WATCH_LAG),
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => Ok(()),
            Err(error) => {
                let failure = Failure::of_cloud(Stage::Delete, &error);
                Err(self.fail_to_remove(removal, &failure))
            }
        }
    }

    fn fail_to_remove(&self, removal: &Removal<'_>, failure: &Failure) -> Verdict {
        let service = &removal.claim.service;
        let cause = self.note_failure(service, failure, removal.failures);
        self.parts.events.emit(match removal.bereaved {
            Bereaved::Service => messages::sync_failed(service, failure.stage, &cause),
            Bereaved::Nobody => messages::delete_failed(service, &cause),
        });
        failure.verdict
    }

    fn was_deleting(&self, key: &str) -> bool {
        let told = self.records.read(key, |record| record.told.deleting);
        told.unwrap_or_default()
    }

    fn tell_deleting(&self, removal: &Removal<'_>) {
        if self.was_deleting(removal.key) {
            return;
        }
        self.records
            .amend(removal.key, |record| record.told.deleting = true);
        let event = messages::deleting(&removal.claim.service);
        self.parts.events.emit(event);
    }
}

#[cfg(test)]
mod tests;
