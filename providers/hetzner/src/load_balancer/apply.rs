//! Carrying out steps.

use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::{CloudError, DesiredState, ErrorKind, Executed, StepOutcome};
use cloudkeel_toolkit::{BalancerFinder as _, Classified, Labels, is_refusal, json};
use serde::Serialize;

use super::HetznerBalancers;
use super::certificate::{self, CertificateSource};
use super::observe::Observed;
use super::step::{Change, NewBalancer, Step};
use super::targets::TargetAt;
use crate::client::{ActionState, requests};
use crate::wire::{Certificate, LoadBalancer};

/// When to check work that takes long.
const CHECK_AFTER: Duration = Duration::from_secs(5);

/// For how long a balancer that took no more targets counts as full: until the attempt is over, and not when it
/// is repeated.
pub(super) const FULL_FOR: Duration = Duration::from_secs(3);

/// The reason of the event about a target that the cloud does not take.
const TARGET_REFUSED: &str = "TargetRefused";

/// A change of what is not done by an action.
#[derive(Serialize, Default)]
struct BalancerPatch<'a> {
    name: Option<&'a str>,
    labels: Option<&'a Labels>,
}

impl HetznerBalancers {
    pub(super) async fn execute_step(
        &self,
        desired: DesiredState<'_>,
        have: &Observed,
        step: &Step,
    ) -> Executed<Observed> {
        let outcome = match step {
            Step::Create(new) => {
                let (state, created) = self.create(new).await?;
                let seen = self.observe_created(desired, have, created).await;
                return Ok((outcome(state), seen));
            }
            Step::IssueCertificate(new) => {
                certificate::issue(&self.servers.api, new).await?;
                StepOutcome::Done
            }
            Step::Adopt(id, labels) | Step::Label(id, labels) | Step::Release(id, labels) => {
                let labels = Some(labels);
                let patch = BalancerPatch { labels, name: None };
                self.update(*id, &patch).await?
            }
            Step::Rename(id, name) => {
                let patch = BalancerPatch {
                    name: Some(name),
                    labels: None,
                };
                let renamed = self.update(*id, &patch).await;
                renamed.map_err(|error| error.about(&format!("the name {name:?}")))?
            }
            Step::Change { id, change } => self.change(desired, *id, change).await?,
            Step::Delete(id) => {
                self.servers.api.delete::<LoadBalancer>(id).await?;
                StepOutcome::Done
            }
            Step::DeleteCertificate(id) => {
                self.servers.api.delete::<Certificate>(id).await?;
                StepOutcome::Done
            }
        };
        Ok((outcome, None))
    }

    /// Creates a balancer with everything that belongs to it. If the cloud refuses a part, it refuses all:
    /// then it is created without the parts, each of which is added by itself.
    async fn create(&self, new: &NewBalancer) -> Result<(ActionState, LoadBalancer), CloudError> {
        let api = &self.servers.api;
        let created = match api.create_balancer(json::body(new)).await {
            Err(error) if new.has_parts() && is_refusal(&error) => {
                tracing::info!(err = %error, balancer = new.name, "created load balancer without services and targets");
                api.create_balancer(json::body(&new.bare())).await
            }
            created => created,
        };
        created.map_err(CloudError::not_shown_yet)
    }

    /// What an answer shows of a balancer. `None` if something else has to be read for that in vain.
    async fn observe_created(
        &self,
        desired: DesiredState<'_>,
        before: &Observed,
        balancer: LoadBalancer,
    ) -> Option<Observed> {
        let (spec, asked) = (desired.spec()?, before.asked.as_ref()?);
        if !self.is_labelled(&balancer, &spec.balancer_ref.service) {
            return None;
        }
        let found = Classified::ours(balancer);
        let (api, listed) = (&self.servers.api, None);
        let source = CertificateSource { api, listed };
        let desired = asked.desired.clone();
        self.resolve(spec, desired, found, source).await.ok()
    }

    async fn update(&self, id: u64, patch: &BalancerPatch<'_>) -> Result<StepOutcome, CloudError> {
        let request = self.servers.api.replace_request::<LoadBalancer>(&id, patch);
        let updated = self.servers.api.send(request).await;
        updated.map_err(CloudError::vanished)?;
        Ok(StepOutcome::Done)
    }

    async fn change(
        &self,
        desired: DesiredState<'_>,
        id: u64,
        change: &Change,
    ) -> Result<StepOutcome, CloudError> {
        match change {
            Change::AddTarget { at, .. } => {
                let added = self.add_target(id, change).await;
                added.map_err(|error| self.refused(desired, id, *at, error, ""))
            }
            Change::Retarget { at, private } => self.retarget(desired, id, *at, *private).await,
            Change::Move { network, from, .. } => {
                self.move_within(id, change, *network, *from).await
            }
            _ => self.change_plainly(id, change).await,
        }
    }

    async fn change_plainly(&self, id: u64, change: &Change) -> Result<StepOutcome, CloudError> {
        let changed = self.act(id, change).await;
        if let (Ok(_), Change::RemoveTarget { .. } | Change::Type { .. }) = (&changed, change) {
            self.full.remove(&id);
        }
        match (changed, change) {
            (Ok(outcome), _) => Ok(outcome),
            (Err(error), Change::RemoveTarget { .. } | Change::DeleteService { .. })
                if error.is_not_found() =>
            {
                Ok(StepOutcome::Done)
            }
            // The balancer may have vanished, but a certificate that there is not is the likelier cause.
            (Err(error), Change::AddService(service) | Change::UpdateService(service))
                if error.is_not_found()
                    && service
                        .http
                        .as_ref()
                        .is_some_and(|h| h.certificates.is_some()) =>
            {
                let port = service.listen_port;
                let message = format!("service on port {port}: {}", error.message());
                Err(CloudError::invalid(error.operation().to_owned(), message))
            }
            (Err(error), _) => Err(error.vanished()),
        }
    }

    async fn add_target(&self, id: u64, add: &Change) -> Result<StepOutcome, CloudError> {
        if self.full.contains(&id) {
            let kind = ErrorKind::LimitExceeded;
            return Err(CloudError::new(
                "add target",
                kind,
                "it takes no more targets",
            ));
        }
        let added = self.act(id, add).await;
        if let Err(error) = &added
            && error.kind() == ErrorKind::LimitExceeded
        {
            self.full.insert(id);
        }
        added
    }

    /// The cloud has a server only once, so it is removed before it is added. If it cannot be added in the new
    /// way, it is in the old one: it has served until now.
    async fn retarget(
        &self,
        desired: DesiredState<'_>,
        id: u64,
        at: TargetAt,
        private: bool,
    ) -> Result<StepOutcome, CloudError> {
        let is_last = false;
        let remove = Change::RemoveTarget { at, is_last };
        let removed = self.change_plainly(id, &remove).await?;
        if let StepOutcome::Started { .. } = removed {
            return Ok(removed);
        }
        let add = |private| Change::AddTarget {
            at,
            private,
            needs_capacity: false,
        };
        match self.replace(id, &add(private), &add(!private)).await {
            Ok(outcome) => Ok(outcome),
            Err((error, None)) => Err(error),
            Err((error, Some(restored))) => {
                let fate = fate_of("the old target", restored);
                Err(self.refused(desired, id, at, error, &fate))
            }
        }
    }

    /// The same for the place of a balancer in its network.
    async fn move_within(
        &self,
        id: u64,
        change: &Change,
        network: u64,
        from: IpAddr,
    ) -> Result<StepOutcome, CloudError> {
        let detached = self.act(id, &Change::Detach { network }).await;
        if let StepOutcome::Started { .. } = detached.map_err(CloudError::vanished)? {
            return Ok(outcome(ActionState::StillRunning));
        }
        let old = Change::Attach {
            network,
            ip: match from {
                IpAddr::V4(ip) => Some(ip),
                IpAddr::V6(_) => None,
            },
            ip_range: None,
        };
        let (error, restored) = match self.replace(id, change, &old).await {
            Ok(outcome) => return Ok(outcome),
            Err((error, None)) => return Err(error),
            Err((error, Some(restored))) => (error, restored),
        };
        let fate = fate_of(&format!("its old address {from}"), restored);
        let message = format!("{change}: {}{fate}", error.message());
        let kind = match error.kind() {
            ErrorKind::NotFound => ErrorKind::Invalid,
            kind => kind,
        };
        Err(CloudError::new(error.operation().to_owned(), kind, message))
    }

    /// Makes a change in place of one that was taken back; if it is refused, the old one is made again. The error
    /// says how that went, unless the balancer is locked, when nothing can be changed.
    async fn replace(
        &self,
        id: u64,
        new: &Change,
        old: &Change,
    ) -> Result<StepOutcome, (CloudError, Option<Result<(), CloudError>>)> {
        match self.act(id, new).await {
            Ok(outcome) => Ok(outcome),
            Err(error) if error.kind() == ErrorKind::Busy => Err((error, None)),
            Err(error) => Err((error, Some(self.act(id, old).await.map(drop)))),
        }
    }

    async fn act(&self, id: u64, change: &Change) -> Result<StepOutcome, CloudError> {
        let request = requests::balancer_action(id, change.verb(), change.body());
        self.servers.api.act(request).await.map(outcome)
    }

    /// Reports a target that the cloud refuses. The next attempt tries it again: its server may be about to
    /// join the network. One that is missing is the controller's to report: its Node may be about to go.
    fn refused(
        &self,
        desired: DesiredState<'_>,
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
        let service = &desired.balancer_ref().service;
        self.events.warn(service, TARGET_REFUSED, message.as_str());
        CloudError::new(operation, ErrorKind::Other, message).with_source(error)
    }
}

/// What became of what a change was to replace.
fn fate_of(old: &str, restored: Result<(), CloudError>) -> String {
    match restored {
        Ok(()) => format!("; {old} was restored"),
        Err(why) => format!("; restoring {old} failed too: {}", why.message()),
    }
}

const fn outcome(state: ActionState) -> StepOutcome {
    match state {
        ActionState::Done => StepOutcome::Done,
        ActionState::StillRunning => StepOutcome::Started {
            check_after: CHECK_AFTER,
        },
    }
}
