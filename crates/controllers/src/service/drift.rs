//! Checks many balancers with few reads: those that an earlier leader left in order, when this process starts,
//! and all of them from time to time.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, DriftPolicy, ErrorKind, LoadBalancerSpec, LoadBalancers, Observation, Options,
    Outcome, Plan, Retry, TargetHealth, names,
};
use futures::FutureExt as _;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::controller::{ServiceController, ServiceSettings, at, looks_served};
use super::owner::{owner_of_service, wants_balancer};
use super::record::{Presence, Record};
use super::status::StatusUpdate;
use super::targets::keys::TargetKeys;
use crate::log_messages::{LOAD_BALANCERS_CHECKED, LOAD_BALANCERS_NOT_OBSERVED};
use crate::paused::paused_by;
use crate::runtime::{Urgency, jittered, panic_text, panicked};
use crate::view::{ServiceView, View as _};

/// A thousand Services on a hundred Nodes are checked in two calls.
const TARGETS_PER_CALL: usize = 50_000;

/// How often the health of targets that are new or have failed is read again, and for how long. Later changes are seen
/// with the next check of all balancers.
const HEALTH_CHECK_PERIOD: Duration = Duration::from_secs(30);
const HEALTH_CHECKED_FOR: Duration = Duration::from_mins(5);

/// Which Services are checked, and what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Those that were served before this process saw them. What is in order is only remembered: no
    /// Event, no write. Everything else is worked on.
    Unseen,
    /// Those that this process knows and that are not being worked on. What is not as it was left has
    /// drifted.
    Known,
    /// Those of them whose targets are new or have failed, so that their health is likely to change soon.
    Unsettled,
}

/// A Service that is checked.
struct Check {
    service: Arc<ServiceView>,
    targets: Arc<TargetKeys>,
    /// How often it had been worked on by then.
    attempts: u64,
    options: Options,
}

impl ServiceController {
    /// Checks Services that are new to this process when there are any, and all from time to time.
    pub(super) async fn check_balancers(&self) {
        let (mut round, mut failures) = (0, 0);
        let mut next_check = Instant::now();
        let mut retry_at: Option<Instant> = None;
        loop {
            let has_unseen = tokio::select! {
                biased;
                () = self.unseen.ended() => true,
                () = at(retry_at) => true,
                () = tokio::time::sleep_until(next_check) => false,
            };
            self.is_checking.store(true, Ordering::Relaxed);
            if has_unseen {
                retry_at = self.check_unseen(&mut failures).await;
            } else {
                // What was there at the start is checked as unseen.
                if round > 0 {
                    self.check(Scope::Known, 0).await;
                }
                self.check_for_orphans().await;
                round += 1;
                let ServiceSettings {
                    list_period, seed, ..
                } = self.settings;
                next_check = Instant::now() + jittered(list_period, seed, 0, round);
            }
            self.is_checking.store(round == 0, Ordering::Relaxed);
        }
    }

    /// Reads the health of new and of failed targets again, until it has settled. Costs no call while all are healthy.
    pub(super) async fn follow_health(&self) {
        loop {
            tokio::time::sleep(HEALTH_CHECK_PERIOD).await;
            self.check(Scope::Unsettled, 0).await;
        }
    }

    /// Returns when to try again if a cloud did not answer.
    async fn check_unseen(&self, failures: &mut u32) -> Option<Instant> {
        let Some(retry_after) = self.check(Scope::Unseen, *failures).await else {
            *failures = 0;
            return None;
        };
        *failures += 1;
        warn!(?retry_after, "{LOAD_BALANCERS_NOT_OBSERVED}");
        Some(Instant::now() + retry_after)
    }

    /// Checks the balancers in a scope. Returns how soon to try again if a cloud did not answer.
    async fn check(&self, scope: Scope, failures: u32) -> Option<Duration> {
        let mut retry_after: Option<Duration> = None;
        for (cloud, services) in self.in_scope(scope) {
            let mut in_order = 0;
            for some in services.chunks(self.services_per_call()) {
                for (check, observed) in self.observe_all(&cloud, some).await {
                    match observed {
                        Err(error) if is_transient(&error) => {
                            debug!(cloud, err = %error, "failed to observe load balancer");
                            let wait = match error.retry() {
                                Retry::After(delay) => delay,
                                _ => Self::BACKOFF.pause(failures + 1),
                            };
                            retry_after = retry_after.max(Some(wait));
                        }
                        Ok(observed) if scope != Scope::Unseen => {
                            self.check_drift(&check, &cloud, &observed);
                        }
                        Ok(observed) if self.is_in_order(&check, &cloud, &observed) => {
                            in_order += 1;
                            self.accept(check, &cloud, &observed.report.status.health);
                        }
                        // Whatever it is, working on it reports it.
                        Ok(_) | Err(_) => self.queue.add(check.service.key(), Urgency::Refresh),
                    }
                }
            }
            if scope == Scope::Unseen {
                let total = services.len();
                info!(cloud, total, in_order, "{LOAD_BALANCERS_CHECKED}");
            }
        }
        retry_after
    }

    fn check_drift(&self, check: &Check, cloud: &str, observed: &Observation) {
        let key = check.service.key();
        let is_current = self.records.read(&key, |record| {
            record.is_at_rest() && record.attempts == check.attempts
        });
        if is_current != Some(true) || observed.report.busy.is_some() {
            return;
        }
        let health = &observed.report.status.health;
        self.records
            .amend(&key, |record| record.note_health(health));
        let repairs = self.drift_policy(&check.service) == DriftPolicy::Repair;
        if !observed.plan.is_empty() {
            let next = if repairs {
                "cloudkeel repairs it now"
            } else {
                "cloudkeel leaves it as it is"
            };
            self.report_drift(&check.service.service, cloud, &observed.plan, next);
            if !repairs {
                return;
            }
        } else if self.is_in_order(check, cloud, observed) {
            return;
        }
        self.queue.add(key, Urgency::Refresh);
    }

    /// What happens to drift of a Service: as its annotation says, else as the flag does. One that cannot be read is
    /// reported where the Service is worked on.
    fn drift_policy(&self, service: &ServiceView) -> DriftPolicy {
        let own = names::LB_DRIFT.get(&service.annotations).ok().flatten();
        own.unwrap_or(self.settings.drift)
    }

    /// The Services in a scope, by cloud.
    fn in_scope(&self, scope: Scope) -> BTreeMap<String, Vec<Arc<ServiceView>>> {
        let mut in_scope: BTreeMap<String, Vec<_>> = BTreeMap::new();
        let classes = &self.parts.classes;
        for service in self.parts.services.all() {
            let key = service.key();
            let is_at_rest = self.records.read(&key, Record::is_at_rest);
            let is_in_scope = match scope {
                Scope::Unseen => is_at_rest.is_none() && looks_served(&service),
                Scope::Known => {
                    is_at_rest == Some(true) && self.drift_policy(&service) != DriftPolicy::Off
                }
                Scope::Unsettled => {
                    let since = |record: &Record| record.unsettled_since;
                    let since = self.records.read(&key, since).flatten();
                    let is_recent =
                        since.is_some_and(|since| since.elapsed() <= HEALTH_CHECKED_FOR);
                    is_recent
                        && is_at_rest == Some(true)
                        && self.drift_policy(&service) != DriftPolicy::Off
                }
            };
            let is_in_scope = is_in_scope && paused_by(&service.annotations).is_none();
            if !is_in_scope || !wants_balancer(&service, classes) {
                continue;
            }
            match owner_of_service(&service, classes) {
                Some(owner) if self.provider_of(&owner.cloud).is_some() => {
                    let services = in_scope.entry(owner.cloud.clone()).or_default();
                    services.push(service);
                }
                // The worker reports that it has no load balancers.
                _ => self.queue.add(key, Urgency::Refresh),
            }
        }
        in_scope
    }

    /// How many Services are checked in one call. What a provider sees of each has all its targets.
    fn services_per_call(&self) -> usize {
        (TARGETS_PER_CALL / self.parts.nodes.len().max(1)).max(1)
    }

    async fn observe_all(
        &self,
        cloud: &str,
        services: &[Arc<ServiceView>],
    ) -> Vec<(Check, Result<Observation, CloudError>)> {
        let provider = self.provider_of(cloud);
        let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) else {
            return Vec::new();
        };
        let (mut checks, mut specs) = (Vec::new(), Vec::new());
        for service in services {
            if let Some((check, spec)) = self.check_of(service, balancers) {
                checks.push(check);
                specs.push(spec);
            }
            // There may be many, and others have work to do.
            tokio::task::yield_now().await;
        }
        if specs.is_empty() {
            return Vec::new();
        }
        let observed = AssertUnwindSafe(balancers.observe_all(&specs))
            .catch_unwind()
            .await;
        let observed = observed.unwrap_or_else(|panic| {
            self.queue
                .note_panic(format_args!("cloud {cloud}"), panic_text(panic.as_ref()));
            let failed = |_| Err(panicked("observe load balancers", panic.as_ref()));
            specs.iter().map(failed).collect()
        });
        checks.into_iter().zip(observed).collect()
    }

    /// What a Service should have. One whose annotations cannot be read is enqueued, because working on it
    /// reports that; one whose targets differ is left to the comparison of targets.
    fn check_of(
        &self,
        service: &Arc<ServiceView>,
        balancers: &dyn LoadBalancers,
    ) -> Option<(Check, LoadBalancerSpec)> {
        let key = service.key();
        let owner = owner_of_service(service, &self.parts.classes)?;
        let Ok((draft, targets)) = self.desired(service, owner, balancers) else {
            self.queue.add(key, Urgency::Refresh);
            return None;
        };
        let known = self
            .records
            .read(&key, |record| (record.attempts, record.applied.clone()));
        let (attempts, applied) = known.unwrap_or_default();
        let check = Check {
            service: Arc::clone(service),
            attempts,
            options: draft.spec.options.clone(),
            targets,
        };
        let is_same = applied.is_none_or(|applied| applied == check.targets);
        is_same.then_some((check, draft.spec))
    }

    /// Whether there is nothing to do, neither in the cloud nor on the Service.
    fn is_in_order(&self, check: &Check, cloud: &str, observed: &Observation) -> bool {
        let report = &observed.report;
        let outcome = Outcome::Settled {
            status: report.status.clone(),
            changes: report.changes.clone(),
            done: Plan::default(),
        };
        let update = StatusUpdate::of(&outcome, cloud, &check.options);
        let patch = update.patch(&check.service, self.parts.clock.now());
        // What an earlier leader drains is removed later.
        let is_done = report.busy.is_none() && report.status.draining == 0;
        observed.plan.is_empty() && is_done && patch.is_none()
    }

    /// Remembers what is in order, unless something has happened meanwhile.
    fn accept(&self, check: Check, cloud: &str, health: &[TargetHealth]) {
        let Check {
            service, targets, ..
        } = check;
        let now = self.parts.services.get(&service.key());
        if now.is_none_or(|now| now.resource_version != service.resource_version) {
            self.queue.add(service.key(), Urgency::Refresh);
            return;
        }
        self.records.update(&Arc::clone(&service), |record| {
            if record.attempts == 0 {
                record.set_presence(cloud, Presence::Seen);
                record.ingress = Some(service.ingress.clone());
                record.settled = Some(service);
                record.applied = Some(targets);
                record.note_health(health);
            }
        });
    }
}

/// Whether waiting may help. What needs a change by the user is reported by working on it.
fn is_transient(error: &CloudError) -> bool {
    match error.retry() {
        Retry::After(_) | Retry::Backoff => true,
        Retry::Never => error.kind() == ErrorKind::Cancelled,
        Retry::UserAction => false,
    }
}
