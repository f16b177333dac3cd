//! Carrying out steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Event, StepOutcome, Wish};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::HetznerBalancers;
use super::certificate;
use super::step::{Change, Step};
use super::targets::TargetAt;
use crate::client::Ended;

/// When to look again at work that takes long.
const CHECK_AFTER: Duration = Duration::from_secs(5);

/// For how long a target that was refused is not tried again.
const REFUSED_FOR: Duration = Duration::from_mins(10);

/// The reason of the event about a target that the cloud does not take.
const TARGET_REFUSED: &str = "TargetRefused";

/// What balancers did not take lately. One bad target must not keep the others out, and must not be
/// tried every time.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<BTreeMap<Refusal, Instant>>);

/// A balancer, and the target that it refused in one of the two ways to it; without one, it was full.
type Refusal = (u64, Option<(TargetAt, bool)>);

impl Refusals {
    /// The targets that a balancer refused to reach in this way, and whether it was full.
    pub(super) fn of(&self, id: u64, private: bool) -> (BTreeSet<TargetAt>, bool) {
        let known = self.fresh();
        let ours = known.keys().filter(|(balancer, _)| *balancer == id);
        let refused = ours.filter_map(|(_, refused)| *refused);
        let refused = refused.filter(|(_, way)| *way == private);
        let refused = refused.map(|(at, _)| at).collect();
        (refused, known.contains_key(&(id, None)))
    }

    fn note(&self, refusal: Refusal) {
        self.fresh().insert(refusal, Instant::now());
    }

    /// A target went, or more of them are allowed.
    fn make_room(&self, id: u64) {
        self.fresh().remove(&(id, None));
    }

    fn is_full(&self, id: u64) -> bool {
        self.fresh().contains_key(&(id, None))
    }

    fn fresh(&self) -> MutexGuard<'_, BTreeMap<Refusal, Instant>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, at| at.elapsed() < REFUSED_FOR);
        known
    }
}

impl HetznerBalancers {
    pub(super) async fn carry_out(
        &self,
        wish: Wish<'_>,
        step: &Step,
    ) -> Result<StepOutcome, CloudError> {
        match step {
            Step::Create(new) => {
                let made = self.api.create_balancer(new.body()).await;
                made.map(outcome).map_err(CloudError::not_shown_yet)
            }
            Step::IssueCertificate(new) => {
                certificate::issue(&self.api, new).await?;
                Ok(StepOutcome::Done)
            }
            Step::Update { id, name, labels } => {
                let mut body = Map::new();
                if let Some(name) = name {
                    body.insert("name".to_owned(), json!(name));
                }
                if let Some(labels) = labels {
                    body.insert("labels".to_owned(), json!(labels));
                }
                let updated = self.api.update_balancer(*id, body.into()).await;
                updated.map_err(CloudError::vanished)?;
                Ok(StepOutcome::Done)
            }
            Step::Change { id, change } => self.change(wish, *id, change).await,
            Step::Delete { id } => match self.api.delete_balancer(*id).await {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(StepOutcome::Done),
            },
        }
    }

    async fn change(
        &self,
        wish: Wish<'_>,
        id: u64,
        change: &Change,
    ) -> Result<StepOutcome, CloudError> {
        if let Change::AddTarget { .. } = change
            && self.refusals.is_full(id)
        {
            return Ok(StepOutcome::Done);
        }
        let changed = self
            .api
            .change_balancer(id, change.verb(), change.body())
            .await;
        if let (Ok(_), Change::RemoveTarget(_) | Change::Type { .. }) = (&changed, change) {
            self.refusals.make_room(id);
        }
        match (changed, change) {
            (Ok(ended), _) => Ok(outcome(ended)),
            (Err(error), Change::AddTarget { at, private }) => {
                self.refused(wish, id, (*at, *private), error)
            }
            (Err(error), Change::RemoveTarget(_) | Change::DeleteService(_))
                if error.is_not_found() =>
            {
                Ok(StepOutcome::Done)
            }
            (Err(error), _) => Err(error.vanished()),
        }
    }

    /// A target that the cloud does not take is told and left out for a while.
    fn refused(
        &self,
        wish: Wish<'_>,
        id: u64,
        target: (TargetAt, bool),
        error: CloudError,
    ) -> Result<StepOutcome, CloudError> {
        match error.kind() {
            ErrorKind::LimitExceeded => self.refusals.note((id, None)),
            ErrorKind::Invalid | ErrorKind::NotFound => self.refusals.note((id, Some(target))),
            _ => return Err(error),
        }
        let (at, _) = target;
        let message = format!(
            "{at} is no target of load balancer {id}: {}",
            error.message()
        );
        let event = Event::warning(&wish.claim().service, TARGET_REFUSED, message);
        self.teller.tell(event);
        Ok(StepOutcome::Done)
    }
}

const fn outcome(ended: Ended) -> StepOutcome {
    match ended {
        Ended::Done => StepOutcome::Done,
        Ended::StillRunning => StepOutcome::Started {
            check_after: CHECK_AFTER,
        },
    }
}
