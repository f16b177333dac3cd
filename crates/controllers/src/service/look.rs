//! Looks at many balancers with few reads: at those that somebody else left in order, when this process
//! begins, and at all of them from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, ErrorKind, LoadBalancerSpec, LoadBalancers, Outcome, Plan, Retry, Surveyed,
};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::aim::Aim;
use super::controller::{Drift, ServiceController, looks_served};
use super::marks::Marks;
use super::records::{Presence, Settled};
use super::status::StatusUpdate;
use super::wants::{owner_of_service, wants_balancer};
use crate::runtime::Urgency;
use crate::runtime::jittered;
use crate::view::{ServiceView, View as _};

/// A thousand Services on a hundred Nodes are looked at in two goes.
const TARGETS_AT_ONCE: usize = 50_000;

/// A Service that is looked at, and what it should have.
struct Look {
    service: Arc<ServiceView>,
    spec: LoadBalancerSpec,
    marks: Arc<Marks>,
    /// How often it had been worked on by then.
    attempts: u64,
}

impl ServiceController {
    /// Looks at newcomers when there are any, and at everything from time to time.
    pub(super) async fn look_around(&self) {
        let mut round = 0;
        let mut failures = 0;
        let mut next_sweep = Instant::now();
        let mut next_try: Option<Instant> = None;
        loop {
            let retry = async {
                match next_try {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.unseen.ended() => next_try = self.look_at_unseen(&mut failures).await,
                () = retry => next_try = self.look_at_unseen(&mut failures).await,
                () = tokio::time::sleep_until(next_sweep) => {
                    // What was there at the start is seen anyway.
                    if round > 0 {
                        self.look_for_drift().await;
                    }
                    self.look_for_left_over().await;
                    round += 1;
                    let seed = self.settings.seed;
                    let pause = jittered(self.settings.sweep_period, seed, 0, round);
                    next_sweep = Instant::now() + pause;
                }
            }
        }
    }

    /// Looks at Services that were served before this process saw them. Those that are in order are
    /// only remembered: no event, no write. Returns when to try again if a cloud did not answer.
    async fn look_at_unseen(&self, failures: &mut u32) -> Option<Instant> {
        let mut pause: Option<Duration> = None;
        let unseen = self.meant(|service, has_record| !has_record && looks_served(service));
        for (cloud, services) in unseen {
            let (total, mut in_order) = (services.len(), 0);
            for some in services.chunks(self.at_once()) {
                for (look, seen) in self.survey(&cloud, some).await {
                    match seen {
                        Ok(seen) if self.is_in_order(&look, &cloud, &seen) => {
                            in_order += 1;
                            self.accept(look, &cloud);
                        }
                        Err(error) if is_passing(&error) => {
                            let wait = match error.retry() {
                                Retry::After(delay) => delay,
                                _ => Self::BACKOFF.pause(*failures + 1),
                            };
                            pause = Some(pause.map_or(wait, |pause| pause.max(wait)));
                        }
                        Ok(_) | Err(_) => self.queue.add(look.service.key(), Urgency::Refresh),
                    }
                }
            }
            info!(
                cloud,
                total, in_order, "looked at load balancers that were there"
            );
        }
        let Some(pause) = pause else {
            *failures = 0;
            return None;
        };
        *failures += 1;
        warn!(?pause, "some load balancers cannot be looked at yet");
        Some(Instant::now() + pause)
    }

    /// Looks at balancers that nobody is working on, and tells of those that are not as they were left.
    async fn look_for_drift(&self) {
        if self.settings.drift == Drift::Off {
            return;
        }
        for (cloud, services) in self.meant(|_, has_record| has_record) {
            for some in services.chunks(self.at_once()) {
                for (look, seen) in self.survey(&cloud, some).await {
                    match seen {
                        Ok(seen) => self.judge(&look, &cloud, &seen),
                        Err(error) if is_passing(&error) => {
                            debug!(cloud, %error, "a load balancer cannot be looked at");
                        }
                        // Whatever it is, working on it will tell.
                        Err(_) => self.queue.add(look.service.key(), Urgency::Refresh),
                    }
                }
            }
        }
    }

    fn judge(&self, look: &Look, cloud: &str, seen: &Surveyed) {
        let key = look.service.key();
        let is_current = self.records.read(&key, |record| {
            record.at_rest().is_some() && record.attempts == look.attempts
        });
        if is_current != Some(true) || seen.report.busy.is_some() {
            return;
        }
        if !seen.plan.is_empty() {
            let repairs = self.settings.drift == Drift::Repair;
            let next = if repairs {
                "It is repaired now"
            } else {
                "It is left as it is"
            };
            self.tell_drift(&look.service, cloud, &seen.plan, next);
            if repairs {
                self.queue.add(key, Urgency::Refresh);
            }
        } else if !self.is_in_order(look, cloud, seen) {
            self.queue.add(key, Urgency::Refresh);
        }
    }

    /// Services that nobody is working on, by cloud.
    fn meant(
        &self,
        is_meant: impl Fn(&ServiceView, bool) -> bool,
    ) -> BTreeMap<String, Vec<Arc<ServiceView>>> {
        let mut meant: BTreeMap<String, Vec<_>> = BTreeMap::new();
        let classes = &self.parts.classes;
        for service in self.parts.services.all() {
            let key = service.key();
            let is_at_rest = self.records.read(&key, |record| record.at_rest().is_some());
            let is_wanted = wants_balancer(&service, classes);
            if is_at_rest == Some(false) || !is_wanted || !is_meant(&service, is_at_rest.is_some())
            {
                continue;
            }
            match owner_of_service(&service, classes) {
                Some(serving) if self.provider_of(&serving.cloud).is_some() => {
                    meant
                        .entry(serving.cloud.clone())
                        .or_default()
                        .push(service);
                }
                // Working on it will tell that it waits in vain.
                _ => self.queue.add(key, Urgency::Refresh),
            }
        }
        meant
    }

    /// How many Services are looked at in one go. What a provider sees of each has all its targets.
    fn at_once(&self) -> usize {
        (TARGETS_AT_ONCE / self.parts.nodes.len().max(1)).max(1)
    }

    /// What a Service should have. One whose wishes make no sense is filed, because working on it will
    /// tell; one whose targets differ is left to those who follow the Nodes.
    fn look_of(&self, service: &Arc<ServiceView>, balancers: &dyn LoadBalancers) -> Option<Look> {
        let key = service.key();
        let serving = owner_of_service(service, &self.parts.classes)?;
        let Ok(Aim { draft, marks }) = self.draft(service, serving, balancers) else {
            self.queue.add(key, Urgency::Refresh);
            return None;
        };
        let known = self.records.read(&key, |record| {
            let applied = record.applied().map(Arc::clone);
            (record.attempts, applied)
        });
        let (attempts, applied) = known.unwrap_or_default();
        let is_same = applied.is_none_or(|applied| applied == marks);
        is_same.then(|| Look {
            service: Arc::clone(service),
            spec: draft.spec,
            marks,
            attempts,
        })
    }

    async fn survey(
        &self,
        cloud: &str,
        services: &[Arc<ServiceView>],
    ) -> Vec<(Look, Result<Surveyed, CloudError>)> {
        let provider = self.provider_of(cloud);
        let Some(balancers) = provider.as_ref().and_then(|it| it.load_balancers()) else {
            return Vec::new();
        };
        let (mut rest, mut specs) = (Vec::new(), Vec::new());
        for service in services {
            if let Some(look) = self.look_of(service, balancers) {
                rest.push((look.service, look.marks, look.attempts));
                specs.push(look.spec);
            }
            // There may be many, and others have work to do.
            tokio::task::yield_now().await;
        }
        if specs.is_empty() {
            return Vec::new();
        }
        let seen = balancers.survey(&specs).await;
        rest.into_iter()
            .zip(specs)
            .zip(seen)
            .map(|(((service, marks, attempts), spec), seen)| {
                let look = Look {
                    service,
                    spec,
                    marks,
                    attempts,
                };
                (look, seen)
            })
            .collect()
    }

    /// Whether there is nothing to do, neither in the cloud nor on the Service.
    fn is_in_order(&self, look: &Look, cloud: &str, seen: &Surveyed) -> bool {
        let outcome = Outcome::Settled {
            status: seen.report.status.clone(),
            changes: seen.report.changes.clone(),
            done: Plan::default(),
        };
        let hostname = look.spec.options.hostname.as_deref();
        let update = StatusUpdate::of(&outcome, cloud, hostname);
        seen.plan.is_empty()
            && seen.report.busy.is_none()
            && update
                .patch(&look.service, self.parts.clock.now())
                .is_none()
    }

    /// Takes over what is in order, unless something has happened meanwhile.
    fn accept(&self, look: Look, cloud: &str) {
        let key = look.service.key();
        let now = self.parts.services.get(&key);
        let is_same = now.is_some_and(|now| now.resource_version == look.service.resource_version);
        if !is_same {
            self.queue.add(key, Urgency::Refresh);
            return;
        }
        self.records.update(&look.service, |record| {
            if record.attempts == 0 {
                record.set_presence(cloud, Presence::Possible);
                record.ingress = Some(look.service.ingress.clone());
                record.settled = Some(Settled {
                    service: Arc::clone(&look.service),
                    marks: look.marks,
                });
            }
        });
    }
}

/// Whether waiting may help. What a person has to mend is told by working on it.
fn is_passing(error: &CloudError) -> bool {
    match error.retry() {
        Retry::After(_) | Retry::Backoff => true,
        Retry::Never => error.kind() == ErrorKind::Cancelled,
        Retry::NeedsPerson => false,
    }
}
