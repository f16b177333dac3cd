//! What follows when an attempt to ensure a load balancer fails: the Event, the conditions, the next attempt.

use cloudkeel_api::{CloudError, ErrorKind};
use tracing::{debug, info};

use super::conditions::{self, Progress};
use super::controller::ServiceController;
use super::ensure::Attempt;
use super::events::{self, Stage};
use super::owner::wants_balancer;
use super::record::Presence;
use super::status::StatusUpdate;
use crate::runtime::{FailureMessage, Verdict, WriteError};

/// After so many failures in a row, one that may pass by itself is worth a condition.
const CERTAIN_FAILURES: u32 = 2;

/// Why an attempt failed.
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) cause: FailureMessage,
    pub(super) verdict: Verdict,
    /// Whether our role does not allow it.
    pub(super) is_denied: bool,
    /// Whether the balancer is as the Service asks for but for what the cause names.
    pub(super) is_partial: bool,
    /// Whether nothing failed but that the machines of some targets are missing.
    pub(super) misses_machines: bool,
    /// Whether the Service itself asks for what makes no sense.
    pub(super) is_rejected: bool,
}

impl Failure {
    /// Something that is no error of a cloud or of the API server.
    pub(super) const fn new(stage: Stage, cause: FailureMessage, verdict: Verdict) -> Self {
        Self {
            stage,
            cause,
            verdict,
            is_denied: false,
            is_partial: false,
            misses_machines: false,
            is_rejected: false,
        }
    }

    pub(super) fn of_cloud(stage: Stage, error: &CloudError) -> Self {
        let verdict = match error.kind() {
            // The work was stopped, not done.
            ErrorKind::Cancelled => Verdict::Failed,
            _ => Verdict::of(error),
        };
        Self::new(stage, FailureMessage::from_cloud(error), verdict)
    }

    pub(super) fn of_write(stage: Stage, error: &WriteError) -> Self {
        let is_denied = error.is_forbidden();
        let verdict = if is_denied {
            Verdict::UserAction
        } else {
            Verdict::Failed
        };
        Self {
            is_denied,
            ..Self::new(stage, FailureMessage::from_text(error), verdict)
        }
    }
}

impl ServiceController {
    pub(super) async fn fail(
        &self,
        attempt: &Attempt<'_>,
        failure: &Failure,
        failures: u32,
    ) -> Verdict {
        self.records.update(&attempt.service, |record| {
            record.applying = None;
            let has_to_wait = matches!(failure.verdict, Verdict::AgainAfter(_));
            record.attempted = attempt.targets.clone().filter(|_| !has_to_wait);
            record.needs_retry = true;
            if failure.is_partial {
                record.applied.clone_from(&attempt.targets);
            }
        });
        let service = &attempt.service.service;
        let what = format!("{}: {}", service.uid, failure.cause);
        if failure.misses_machines && !self.patience.has_elapsed(&what) {
            // As when a machine is replaced: its Node is about to go.
            info!(%service, err = failure.cause.in_full(), "instance of a target not found, target not added yet");
            return failure.verdict;
        }
        let cause = self.record_failure(service, failure, failures);
        let is_certain = failures >= CERTAIN_FAILURES || failure.verdict == Verdict::UserAction;
        if is_certain && self.settings.conditions {
            self.publish_failure(attempt, failure, &cause).await;
        }
        self.emit(if attempt.follows_nodes {
            let took = attempt.began.elapsed();
            self.parts.observer.hosts_updated(took, true);
            let names = attempt.targets.iter().flat_map(|keys| keys.keys());
            let names: Vec<&str> = names.map(String::as_str).collect();
            events::update_failed(service, &names, &cause)
        } else {
            events::sync_failed(service, failure.stage, &cause)
        });
        failure.verdict
    }

    /// Says in the conditions what failed. That this cannot be written is no failure of its own.
    async fn publish_failure(
        &self,
        attempt: &Attempt<'_>,
        failure: &Failure,
        cause: &FailureMessage,
    ) {
        if !matches!(failure.stage, Stage::Ensure) {
            // The API server itself is in trouble, or our role is.
            return;
        }
        let service = self.current(&attempt.service.service.to_string());
        let service = service.filter(|now| now.service.uid == attempt.service.service.uid);
        let Some(service) = service.filter(|now| wants_balancer(now, &self.parts.classes)) else {
            return;
        };
        let cloud = &attempt.owner.cloud;
        let known = self.records.read(&service.service.to_string(), |record| {
            let presence = record.presence_in(cloud);
            matches!(presence, Some(Presence::Possible | Presence::Seen))
        });
        let may_exist = known == Some(true)
            || !service.ingress.is_empty()
            || conditions::names_balancer(&service);
        let progress = Progress::Failed {
            cloud: cloud.clone(),
            rejected: failure.is_rejected.then(|| cause.to_string()),
            may_exist,
            message: format!("{}: {cause}", failure.stage),
        };
        let update = StatusUpdate::failed(progress);
        let Some(patch) = update.patch(&service, self.parts.clock.now()) else {
            return;
        };
        match self.parts.writer.patch(&service.service, &patch).await {
            Ok(written) => _ = self.note_written(written),
            Err(error) => {
                debug!(service = %service.service, err = %error, "failed to write conditions");
            }
        }
    }
}
