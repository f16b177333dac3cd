//! Carrying out steps.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cloudkeel_api::{CloudError, DesiredState, Executed, StepOutcome};
use cloudkeel_http::Request;
use cloudkeel_toolkit::{Classified, Labels};

use super::LocalBalancers;
use super::observe::Observed;
use super::step::{Change, Step};
use crate::client::requests;
use crate::wire::{BalancerAnswer, BalancerPatch, BalancerState, ListenersChange};

/// The reason of the event about a balancer that was released in place of being deleted.
const PROTECTED: &str = "LoadBalancerProtected";

/// The versions that our own steps have made since a plan was drawn up.
///
/// All steps of a plan name the version that it was made for. The first one changes it, so the next
/// must ask for what the first one made; what another client made in between is a conflict.
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
    pub(super) async fn execute_step(
        &self,
        desired: DesiredState<'_>,
        have: &Observed,
        step: &Step,
    ) -> Executed<Observed> {
        let (id, planned, change) = match step {
            Step::Create(new) => return self.create(desired, requests::create_balancer(new)).await,
            Step::Change {
                id,
                version,
                change,
            } => (*id, *version, change),
        };
        let version = self.versions.current(id, planned);
        let request = match change {
            Change::Adopt(labels) | Change::Release(labels) => {
                requests::change_balancer(id, version, &relabelled(labels))
            }
            Change::Patch(patch) => requests::change_balancer(id, version, patch),
            Change::Listeners(listeners) => {
                let listeners = listeners.clone();
                requests::set_listeners(id, version, &ListenersChange { listeners })
            }
            Change::Targets(change) => requests::change_targets(id, version, change),
            Change::Delete => {
                self.versions.forget(id);
                let answer = self
                    .api
                    .fetch(requests::delete_balancer(id, version))
                    .await?;
                return Ok((self.progress(&answer), None));
            }
        };
        let answer: Result<BalancerAnswer, CloudError> = self.api.fetch(request).await;
        let answer = answer.map_err(CloudError::vanished)?;
        self.versions.moved(id, planned, answer.balancer.version);
        let is_protected = have.found.ours.iter().any(|it| it.protected && it.id == id);
        if is_protected && matches!(change, Change::Release(_)) {
            self.report_released(desired, id);
        }
        Ok((self.progress(&answer), None))
    }

    /// Creates a balancer. The answer shows all that an observation would.
    async fn create(&self, desired: DesiredState<'_>, request: Request) -> Executed<Observed> {
        let created: Result<BalancerAnswer, CloudError> = self.api.fetch(request).await;
        let created = created.map_err(CloudError::not_shown_yet)?;
        let outcome = self.progress(&created);
        let Some(spec) = desired.spec() else {
            return Ok((outcome, None));
        };
        let found = Classified::ours(created.balancer);
        Ok((outcome, self.resolve_targets(spec, found).await.ok()))
    }

    fn progress(&self, answer: &BalancerAnswer) -> StepOutcome {
        match (answer.balancer.state, &answer.action) {
            (BalancerState::Active, _) | (_, None) => StepOutcome::Done,
            (BalancerState::Pending | BalancerState::Deleting, Some(_)) => StepOutcome::Started {
                check_after: self.poll_interval,
            },
        }
    }

    fn report_released(&self, desired: DesiredState<'_>, id: u64) {
        let message = format!(
            "load balancer {id} is protected from deletion: it was left as it is and is no longer \
             managed"
        );
        let service = &desired.balancer_ref().service;
        self.events.warn(service, PROTECTED, message);
    }
}

fn relabelled(labels: &Labels) -> BalancerPatch {
    BalancerPatch {
        labels: Some(labels.clone()),
        ..BalancerPatch::default()
    }
}
