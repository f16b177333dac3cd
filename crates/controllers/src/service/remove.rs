//! Removes balancers: of Services that are deleted, have another type, went without saying goodbye, or
//! moved to another cloud.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::{Claim, ErrorKind, LoadBalancers, Outcome, Wish};
use tracing::{info, warn};

use super::absence::{AGAIN, Absence, Missing};
use super::claim::claim_of;
use super::conditions;
use super::controller::ServiceController;
use super::ensure::{Failure, UNTIL_ITS_TURN, WATCH_LAG};
use super::finalizer;
use super::messages::{self, Stage};
use super::records::Presence;
use super::wants::{Serving, cleanup_of, wants_balancer};
use crate::planted::Bug;
use crate::runtime::{Cause, Verdict, WriteError};
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
            clouds.extend(record.clouds().cloned());
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
        let removed = match self.remove_all(service, &clouds, &removal).await {
            Ok(removed) => removed,
            Err(verdict) => return verdict,
        };
        if !(cleanup.finalizer_is_ours || !removed.is_empty() || was_served) {
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
        // Once the finalizer is off, the watch may forget the Service at any time.
        let was_kept = self.was_kept(&service.key());
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
        if !was_kept {
            self.parts.events.emit(messages::deleted(&service.service));
        }
        self.records.remove(&service.key());
        if let Some(released) = released.filter(|s| wants_balancer(s, &self.parts.classes)) {
            // It wants another one by now. The watch may still show it with its finalizer.
            self.note_written(released);
        }
        Verdict::Done
    }

    /// Removes what these clouds have. Where nothing was found to remove although there may have been
    /// something, its absence has to be confirmed. Returns the clouds from which something was removed.
    async fn remove_all(
        &self,
        service: &Arc<ServiceView>,
        clouds: &BTreeSet<String>,
        removal: &Removal<'_>,
    ) -> Result<BTreeSet<String>, Verdict> {
        let removed = self.remove_from(clouds, removal).await?;
        let missing = Missing {
            service,
            clouds: clouds.difference(&removed).cloned().collect(),
            // What the Service points at is the one that was removed.
            is_pointed_at: removed.is_empty() && self.points_at_balancer(service, clouds),
        };
        match self.confirm_absence(&missing).await {
            Ok(Absence::Confirmed) => self.is_absent_from(&missing.clouds, removal).await?,
            Ok(Absence::NothingToMiss) => {}
            Err(after) => return Err(Verdict::AgainAfter(after)),
        }
        Ok(removed)
    }

    /// Removes the balancer of a Service that is gone without having waited for that, whether another
    /// has its name by now or not.
    pub(super) async fn bury_predecessor(&self, key: &str, failures: u32) -> Result<(), Verdict> {
        let remembered = self.records.read(key, |record| {
            let clouds: BTreeSet<String> = record.clouds().cloned().collect();
            (Arc::clone(&record.seen), clouds)
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
            self.remove_all(&gone, &clouds, &removal).await?;
            if !self.was_kept(key) {
                self.parts.events.emit(messages::deleted(&gone.service));
            }
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
            let others = record.clouds().filter(|cloud| **cloud != serving.cloud);
            others.cloned().collect::<BTreeSet<_>>()
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
        for cloud in &others {
            let is_ours = self.may_give_up(cloud).await;
            if !is_ours.map_err(|failure| self.fail_to_remove(&removal, &failure))? {
                // What its credential shows may be the balancer that serves, in the project of another cloud.
                return Err(Verdict::AgainAfter(AGAIN));
            }
        }
        self.remove_from(&others, &removal).await?;
        self.records.amend(&key, |record| {
            record.forget_clouds(&others);
            record.told.deleting = false;
        });
        Ok(())
    }

    /// The clouds from which something was removed, when none of them shows anything any more. One that
    /// fails does not keep the others from being asked.
    async fn remove_from(
        &self,
        clouds: &BTreeSet<String>,
        removal: &Removal<'_>,
    ) -> Result<BTreeSet<String>, Verdict> {
        let mut removed = BTreeSet::new();
        let mut unfinished = None;
        for cloud in clouds {
            match self.remove_from_one(cloud, removal).await {
                Ok(true) => _ = removed.insert(cloud.clone()),
                Ok(false) => {}
                Err(verdict) => unfinished = unfinished.or(Some(verdict)),
            }
        }
        unfinished.map_or(Ok(removed), Err)
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
        self.note_removal(cloud, removal, &outcome);
        match outcome {
            // It was found by the Service's own UID, and stays on purpose: there is nothing to miss.
            Outcome::Gone { kept, .. } if !kept.is_empty() => {
                info!(service = %claim.service, cloud, kept = kept.join(", "), "kept");
                self.records.amend(key, |record| {
                    record.set_presence(cloud, Presence::Removed);
                    record.told.kept = true;
                });
                Ok(true)
            }
            Outcome::Gone { .. } => self.is_removed(cloud, balancers, removal).await,
            Outcome::Pending {
                why, check_after, ..
            } => {
                info!(service = %claim.service, cloud, why, "the load balancer is on its way out");
                Err(Verdict::AgainAfter(check_after))
            }
            Outcome::Settled { .. } | Outcome::Incomplete { .. } => {
                let cause = Cause::of_text("the cloud says it is there, although it was to go");
                let failure = Failure::new(Stage::Delete, cause, Verdict::Failed);
                Err(self.fail_to_remove(removal, &failure))
            }
        }
    }

    /// Remembers what an attempt to remove the balancer has shown.
    fn note_removal(&self, cloud: &str, removal: &Removal<'_>, outcome: &Outcome) {
        let (Outcome::Gone {
            done, acknowledged, ..
        }
        | Outcome::Pending {
            done, acknowledged, ..
        }) = outcome
        else {
            return;
        };
        if done.is_empty() {
            return;
        }
        let mut is_news = false;
        self.records.amend(removal.key, |record| {
            is_news = !std::mem::replace(&mut record.told.deleting, true);
            // A cloud that shows late what it removed does not take its word back.
            if *acknowledged {
                record.set_presence(cloud, Presence::Removing);
            } else if !record.is_removal_agreed(cloud) {
                record.set_presence(cloud, Presence::Vanished);
            }
        });
        if is_news {
            let event = messages::deleting(&removal.claim.service);
            self.parts.events.emit(event);
        }
    }

    /// The cloud shows nothing any more. Whether that is because the balancer was removed.
    ///
    /// What the cloud agreed to remove was found there by the UID of its Service, so the project was ours,
    /// and nothing else has to confirm that. What only vanished may be in another project by now, unless a
    /// machine of this cluster is seen after that, and a last look still finds nothing.
    async fn is_removed(
        &self,
        cloud: &str,
        balancers: &dyn LoadBalancers,
        removal: &Removal<'_>,
    ) -> Result<bool, Verdict> {
        let known = self
            .records
            .read(removal.key, |record| record.presence_in(cloud));
        match known.flatten() {
            Some(Presence::Removing | Presence::Removed) => {}
            Some(Presence::Vanished) => {
                let is_ours = self.may_give_up(cloud).await;
                if !is_ours.map_err(|failure| self.fail_to_remove(removal, &failure))? {
                    return Ok(false);
                }
                self.is_absent(balancers, removal).await?;
            }
            None | Some(Presence::Asked | Presence::Possible) => return Ok(false),
        }
        self.records.amend(removal.key, |record| {
            record.set_presence(cloud, Presence::Removed);
        });
        Ok(true)
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

    /// Whether the balancer stays on purpose, so that no Event says that it is gone.
    fn was_kept(&self, key: &str) -> bool {
        let kept = self.records.read(key, |record| record.told.kept);
        kept.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
