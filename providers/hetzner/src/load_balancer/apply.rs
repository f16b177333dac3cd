//! Carrying out steps.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{BalancerFinder as _, CloudError, ErrorKind, Event, Judged, StepOutcome, Wish};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::HetznerBalancers;
use super::certificate::{self, Book};
use super::desired::Desired;
use super::observe::Observed;
use super::step::{Change, NewBalancer, Step};
use super::targets::TargetAt;
use crate::client::Ended;
use crate::wire::LoadBalancer;

/// When to look again at work that takes long.
const CHECK_AFTER: Duration = Duration::from_secs(5);

/// For how long a balancer that had no room counts as full: until the attempt is over, and not when it is
/// repeated.
const FULL_FOR: Duration = Duration::from_secs(3);

/// The reason of the event about a target that the cloud does not take.
const TARGET_REFUSED: &str = "TargetRefused";

/// Balancers that had no room a moment ago. One that is full is not asked for each target.
#[derive(Debug, Default)]
pub(super) struct Full(Mutex<BTreeMap<u64, Instant>>);

impl Full {
    pub(super) fn is_full(&self, id: u64) -> bool {
        self.lately().contains_key(&id)
    }

    fn note(&self, id: u64) {
        self.lately().insert(id, Instant::now());
    }

    /// A target went, or more of them are allowed.
    fn make_room(&self, id: u64) {
        self.lately().remove(&id);
    }

    fn lately(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        let mut full = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        full.retain(|_, at| at.elapsed() < FULL_FOR);
        full
    }
}

impl HetznerBalancers {
    pub(super) async fn carry_out(
        &self,
        wish: Wish<'_>,
        step: &Step,
    ) -> Result<(StepOutcome, Option<Observed>), CloudError> {
        let outcome = match step {
            Step::Create(new) => {
                let (ended, made) = self.create(new).await?;
                let seen = self.seen(wish, made).await;
                return Ok((outcome(ended), seen));
            }
            Step::IssueCertificate(new) => {
                certificate::issue(&self.api, new).await?;
                StepOutcome::Done
            }
            Step::Adopt { id, labels }
            | Step::Label { id, labels }
            | Step::Release { id, labels } => self.update(*id, json!({"labels": labels})).await?,
            Step::Rename { id, name } => {
                let renamed = self.update(*id, json!({"name": name})).await;
                renamed.map_err(|error| error.about(&format!("the name {name:?}")))?
            }
            Step::Change { id, change } => self.change(wish, *id, change).await?,
            Step::Delete { id } => {
                self.api.delete_balancer(*id).await?;
                StepOutcome::Done
            }
        };
        Ok((outcome, None))
    }

    /// Makes a balancer with everything that belongs to it. If the cloud refuses a part, it refuses all:
    /// then it is made without the parts, each of which is added by itself.
    async fn create(&self, new: &NewBalancer) -> Result<(Ended, LoadBalancer), CloudError> {
        let made = match self.api.create_balancer(new.body()).await {
            Err(error) if new.has_parts() && is_refusal(&error) => {
                tracing::info!(%error, balancer = new.name, "made without services and targets");
                self.api.create_balancer(new.bare().body()).await
            }
            made => made,
        };
        made.map_err(CloudError::not_shown_yet)
    }

    /// What an answer shows of a balancer. `None` if something else has to be read for that in vain.
    async fn seen(&self, wish: Wish<'_>, balancer: LoadBalancer) -> Option<Observed> {
        let Wish::Present(spec) = wish else {
            return None;
        };
        if !self.is_marked(&balancer, &spec.claim.service) {
            return None;
        }
        let asked = Desired::of(spec, &self.facts.defaults);
        let found = Judged::ours(balancer);
        let seen = self.complete(spec, &asked, found, Book::Cloud(&self.api));
        seen.await.ok()
    }

    async fn update(&self, id: u64, body: Value) -> Result<StepOutcome, CloudError> {
        let updated = self.api.update_balancer(id, body).await;
        updated.map_err(CloudError::vanished)?;
        Ok(StepOutcome::Done)
    }

    async fn change(
        &self,
        wish: Wish<'_>,
        id: u64,
        change: &Change,
    ) -> Result<StepOutcome, CloudError> {
        match change {
            Change::AddTarget { at, private, .. } => {
                let added = self.add_target(id, *at, *private).await;
                added.map_err(|error| self.refused(wish, id, *at, error, ""))
            }
            Change::TurnTarget { at, private } => self.turn_target(wish, id, *at, *private).await,
            Change::Move { network, from, .. } => {
                self.move_within(id, change, *network, *from).await
            }
            _ => self.change_plainly(id, change).await,
        }
    }

    async fn change_plainly(&self, id: u64, change: &Change) -> Result<StepOutcome, CloudError> {
        let changed = self.act(id, change).await;
        if let (Ok(_), Change::RemoveTarget { .. } | Change::Type { .. }) = (&changed, change) {
            self.full.make_room(id);
        }
        match (changed, change) {
            (Ok(outcome), _) => Ok(outcome),
            (Err(error), Change::RemoveTarget { .. } | Change::DeleteService(_))
                if error.is_not_found() =>
            {
                Ok(StepOutcome::Done)
            }
            // The balancer may have vanished, but a certificate that there is not is the likelier cause.
            (Err(error), Change::AddService(service) | Change::UpdateService(service))
                if error.is_not_found() && service.http.certificates.is_some() =>
            {
                let port = service.listen_port;
                let message = format!("service on port {port}: {}", error.message());
                Err(CloudError::invalid(error.operation().to_owned(), message))
            }
            (Err(error), _) => Err(error.vanished()),
        }
    }

    async fn add_target(
        &self,
        id: u64,
        at: TargetAt,
        private: bool,
    ) -> Result<StepOutcome, CloudError> {
        if self.full.is_full(id) {
            let kind = ErrorKind::LimitExceeded;
            return Err(CloudError::new("add target", kind, "there is no room"));
        }
        let added = self.add_quietly(id, at, private).await;
        if let Err(error) = &added
            && error.kind() == ErrorKind::LimitExceeded
        {
            self.full.note(id);
        }
        added
    }

    async fn add_quietly(
        &self,
        id: u64,
        at: TargetAt,
        private: bool,
    ) -> Result<StepOutcome, CloudError> {
        let add = Change::AddTarget {
            at,
            private,
            needs_room: false,
        };
        self.act(id, &add).await
    }

    /// The cloud has a server only once, so it goes before it comes back. If it does not come back in the
    /// new way, it does in the old one: it has served until now.
    async fn turn_target(
        &self,
        wish: Wish<'_>,
        id: u64,
        at: TargetAt,
        private: bool,
    ) -> Result<StepOutcome, CloudError> {
        let is_last = false;
        let removed = self
            .change_plainly(id, &Change::RemoveTarget { at, is_last })
            .await?;
        if let StepOutcome::Started { .. } = removed {
            return Ok(removed);
        }
        let error = match self.add_quietly(id, at, private).await {
            Ok(outcome) => return Ok(outcome),
            // While it is locked, it can be neither added nor put back.
            Err(error) if error.kind() == ErrorKind::Busy => return Err(error),
            Err(error) => error,
        };
        let fate = match self.add_quietly(id, at, !private).await {
            Ok(_) => "; it is a target in the old way as before".to_owned(),
            Err(why) => format!("; it could not be put back either: {}", why.message()),
        };
        Err(self.refused(wish, id, at, error, &fate))
    }

    /// The same for the place of a balancer in its network.
    async fn move_within(
        &self,
        id: u64,
        change: &Change,
        network: u64,
        from: std::net::IpAddr,
    ) -> Result<StepOutcome, CloudError> {
        let detached = self.act(id, &Change::Detach { network }).await;
        if let StepOutcome::Started { .. } = detached.map_err(CloudError::vanished)? {
            return Ok(outcome(Ended::StillRunning));
        }
        let error = match self.act(id, change).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) if error.kind() == ErrorKind::Busy => return Err(error),
            Err(error) => error,
        };
        let old = Change::Attach {
            network,
            ip: match from {
                std::net::IpAddr::V4(ip) => Some(ip),
                std::net::IpAddr::V6(_) => None,
            },
            range: None,
        };
        let fate = match self.act(id, &old).await {
            Ok(_) => format!("; it has its old address {from} again"),
            Err(why) => format!("; it could not get its old address {from} again: {why}"),
        };
        let message = format!("{change}: {}{fate}", error.message());
        let kind = match error.kind() {
            ErrorKind::NotFound => ErrorKind::Invalid,
            kind => kind,
        };
        Err(CloudError::new(error.operation().to_owned(), kind, message))
    }

    async fn act(&self, id: u64, change: &Change) -> Result<StepOutcome, CloudError> {
        let changed = self
            .api
            .change_balancer(id, change.verb(), change.body())
            .await;
        changed.map(outcome)
    }

    /// Reports a target that the cloud refuses. The next attempt tries it again: its server may be about to
    /// join the network. One that is missing is the controller's to report: its Node may be about to go.
    fn refused(
        &self,
        wish: Wish<'_>,
        id: u64,
        at: TargetAt,
        error: CloudError,
        fate: &str,
    ) -> CloudError {
        if !is_refusal(&error) {
            return error;
        }
        let message = format!(
            "{at} is refused as a target of load balancer {id}: {}{fate}",
            error.message()
        );
        let operation = error.operation().to_owned();
        if error.is_not_found() {
            return CloudError::new(operation, ErrorKind::NotFound, message).with_source(error);
        }
        let event = Event::warning(&wish.claim().service, TARGET_REFUSED, message.as_str());
        self.teller.tell(event);
        CloudError::new(operation, ErrorKind::Other, message).with_source(error)
    }
}

/// Whether the cloud understood and does not want to, so that asking for something else makes sense.
fn is_refusal(error: &CloudError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Invalid
            | ErrorKind::NotFound
            | ErrorKind::LimitExceeded
            | ErrorKind::Denied
            | ErrorKind::Unsupported
    )
}

const fn outcome(ended: Ended) -> StepOutcome {
    match ended {
        Ended::Done => StepOutcome::Done,
        Ended::StillRunning => StepOutcome::Started {
            check_after: CHECK_AFTER,
        },
    }
}
