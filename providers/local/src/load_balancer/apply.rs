//! Carrying out steps.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cloudkeel_api::{CloudError, Event, Judged, StepOutcome, Wish};

use super::LocalBalancers;
use super::observe::Observed;
use super::step::Step;
use crate::wire::{Balancer, BalancerAnswer, BalancerPatch, BalancerState};

/// The reason of the event about a balancer that was released in place of being deleted.
const PROTECTED: &str = "LoadBalancerProtected";

/// The versions that our own steps have made since a plan was drawn up.
///
/// All steps of a plan name the version that it was made for. The first one changes it, so the next
/// must ask for what the first one made; whatever anybody else made in between is a conflict.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<BTreeMap<u64, Moved>>);

#[derive(Debug, Clone, Copy)]
struct Moved {
    planned: u64,
    now: u64,
}

impl Versions {
    fn current(&self, id: u64, planned: u64) -> u64 {
        let moved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match moved.get(&id) {
            Some(moved) if moved.planned == planned => moved.now,
            _ => planned,
        }
    }

    fn moved(&self, id: u64, planned: u64, now: u64) {
        let mut moved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moved.insert(id, Moved { planned, now });
    }

    fn forget(&self, id: u64) {
        let mut moved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moved.remove(&id);
    }
}

impl LocalBalancers {
    pub(super) async fn carry_out(
        &self,
        wish: Wish<'_>,
        step: &Step,
    ) -> Result<(StepOutcome, Option<Observed>), CloudError> {
        if let Step::Create(new) = step {
            let made = self.api.create_balancer(new).await;
            let made = made.map_err(CloudError::not_shown_yet)?;
            let outcome = self.progress(&made);
            return Ok((outcome, self.seen(wish, made.balancer).await));
        }
        let outcome = self.change(wish, step).await?;
        Ok((outcome, None))
    }

    /// What an answer shows of a balancer. `None` if something else has to be read for that in vain.
    async fn seen(&self, wish: Wish<'_>, balancer: Balancer) -> Option<Observed> {
        let Wish::Present(spec) = wish else {
            return None;
        };
        self.complete(spec, Judged::ours(balancer)).await.ok()
    }

    async fn change(&self, wish: Wish<'_>, step: &Step) -> Result<StepOutcome, CloudError> {
        let api = &self.api;
        match step {
            // It is made elsewhere.
            Step::Create(_) => Ok(StepOutcome::Done),
            Step::Adopt {
                id,
                version,
                labels,
            } => self.relabel(*id, *version, labels).await,
            Step::Change { id, version, patch } => {
                let current = self.versions.current(*id, *version);
                let answer = api.change_balancer(*id, current, patch).await;
                self.changed(*id, *version, answer)
            }
            Step::SetListeners {
                id,
                version,
                listeners,
            } => {
                let current = self.versions.current(*id, *version);
                let answer = api.set_listeners(*id, current, listeners).await;
                self.changed(*id, *version, answer)
            }
            Step::ChangeTargets {
                id,
                version,
                change,
            } => {
                let current = self.versions.current(*id, *version);
                let answer = api.change_targets(*id, current, change).await;
                self.changed(*id, *version, answer)
            }
            Step::Release {
                id,
                version,
                labels,
            } => {
                let outcome = self.relabel(*id, *version, labels).await?;
                self.tell_released(wish, *id);
                Ok(outcome)
            }
            Step::Delete { id, version } => self.delete(*id, *version).await,
        }
    }

    async fn relabel(
        &self,
        id: u64,
        version: u64,
        labels: &BTreeMap<String, String>,
    ) -> Result<StepOutcome, CloudError> {
        let patch = BalancerPatch {
            labels: Some(labels.clone()),
            ..BalancerPatch::default()
        };
        let current = self.versions.current(id, version);
        let answer = self.api.change_balancer(id, current, &patch).await;
        self.changed(id, version, answer)
    }

    async fn delete(&self, id: u64, version: u64) -> Result<StepOutcome, CloudError> {
        let current = self.versions.current(id, version);
        let answer = self.api.delete_balancer(id, current).await;
        self.versions.forget(id);
        answer.map(|answer| self.progress(&answer))
    }

    fn changed(
        &self,
        id: u64,
        planned: u64,
        answer: Result<BalancerAnswer, CloudError>,
    ) -> Result<StepOutcome, CloudError> {
        let answer = answer.map_err(CloudError::vanished)?;
        self.versions.moved(id, planned, answer.balancer.version);
        Ok(self.progress(&answer))
    }

    fn progress(&self, answer: &BalancerAnswer) -> StepOutcome {
        match (answer.balancer.state, &answer.action) {
            (BalancerState::Active, _) | (_, None) => StepOutcome::Done,
            (BalancerState::Pending | BalancerState::Deleting, Some(_)) => StepOutcome::Started {
                check_after: self.poll_interval,
            },
        }
    }

    fn tell_released(&self, wish: Wish<'_>, id: u64) {
        let message = format!(
            "load balancer {id} is protected from deletion: it was left as it is and is no longer \
             managed"
        );
        let event = Event::warning(&wish.claim().service, PROTECTED, message);
        self.events.emit(event);
    }
}
