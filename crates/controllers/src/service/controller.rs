//! The service controller: gives every Service of type LoadBalancer its balancer, keeps it as wished,
//! and removes it when it is wished no more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, CloudProvider, ClusterIdentity, EventSink, Patience};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::change::needs_update;
use super::choices::Choices;
use super::following::Following;
use super::health::HealthCheckChoice;
use super::observer::ServiceObserver;
use super::records::Records;
use super::status::same_ingress;
use super::targets::relevant_change;
use super::turns::Turns;
use super::wants::{Classes, needs_cleanup, owner_of_service, wants_balancer};
use crate::clouds::Cloud;
use crate::report::{ControllerReport, Holdings};
use crate::runtime::{
    Backoff, Cache, Debounce, Listener, Queue, QueueObserver, ServiceWriter, Urgency, Verdict, work,
};
use crate::view::{Change, NodeView, ServiceView, View as _};
use crate::wellknown::CLEANUP_FINALIZER;
use crate::{Controller, ControllerName};

/// The component that events name.
pub const EVENT_SOURCE: &str = "service-controller";
/// The name of the queue in metrics.
pub const QUEUE_NAME: &str = "service";

/// What happens to a balancer that is not as it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Drift {
    /// It is told and repaired.
    #[default]
    Repair,
    /// It is told.
    Report,
    /// Nobody looks.
    Off,
}

/// How the service controller works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceSettings {
    /// How many balancers at once.
    pub workers: usize,
    /// What happens to balancers that are not as they were left.
    pub drift: Drift,
    /// Pause between two looks at all balancers.
    pub sweep_period: Duration,
    /// How targets are checked unless a Service asks for something else.
    pub health_checks: HealthCheckChoice,
    /// How long a leaving Node may finish its connections if the Service does not say.
    pub drain: Duration,
    /// A burst of changes of Nodes has ended when it was quiet for this long,
    pub quiet: Duration,
    /// or this long after its beginning.
    pub longest_burst: Duration,
    /// For the jitter of the looks.
    pub seed: u64,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            workers: 10,
            drift: Drift::default(),
            sweep_period: Duration::from_mins(20),
            health_checks: HealthCheckChoice::default(),
            drain: Duration::from_secs(30),
            quiet: Duration::from_secs(1),
            longest_burst: Duration::from_secs(10),
            seed: 0,
        }
    }
}

/// Everything a [`ServiceController`] is made of.
pub struct ServiceParts {
    /// The Services.
    pub services: Arc<Cache<ServiceView>>,
    /// The Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// The clouds.
    pub clouds: Vec<Arc<Cloud>>,
    /// Which of them serves which Services.
    pub classes: Classes,
    /// The cluster.
    pub cluster: ClusterIdentity,
    /// Writes Services.
    pub writer: ServiceWriter,
    /// Where events go; source [`EVENT_SOURCE`].
    pub events: Arc<dyn EventSink>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Hears what becomes of balancers.
    pub observer: Arc<dyn ServiceObserver>,
    /// Hears what happens in the queue.
    pub queue_observer: Arc<dyn QueueObserver>,
}

/// The controller.
pub struct ServiceController {
    pub(super) parts: ServiceParts,
    pub(super) settings: ServiceSettings,
    pub(super) queue: Arc<Queue<String>>,
    pub(super) turns: Turns,
    pub(super) records: Records,
    /// Changes of Nodes, which balancers follow.
    pub(super) churn: Debounce,
    pub(super) following: Following,
    pub(super) choices: Choices,
    /// Nodes that are gone, and since when: they may still have to be drained.
    pub(super) departed: Mutex<BTreeMap<String, (Arc<NodeView>, Instant)>>,
    /// Services that were served before this process saw them.
    pub(super) unseen: Debounce,
    /// Whether some Service selects its Nodes by their labels.
    pub(super) labels_matter: AtomicBool,
    /// Whether it was told that the role does not allow something.
    pub(super) denial_told: AtomicBool,
    /// With Services some of whose targets have no machine any more.
    pub(super) patience: Patience,
}

impl ServiceController {
    /// As upstream.
    pub(super) const BACKOFF: Backoff = Backoff {
        first: Duration::from_secs(5),
        longest: Duration::from_mins(5),
    };

    /// A controller that has not started.
    pub fn new(parts: ServiceParts, settings: ServiceSettings) -> Arc<Self> {
        let queue = Arc::new(Queue::new(Self::BACKOFF, Arc::clone(&parts.queue_observer)));
        Arc::new(Self {
            turns: Turns::new(Arc::clone(&queue)),
            queue,
            records: Records::default(),
            churn: Debounce::new(settings.quiet, settings.longest_burst),
            following: Following::default(),
            choices: Choices::default(),
            departed: Mutex::default(),
            unseen: Debounce::new(Duration::from_millis(200), Duration::from_secs(2)),
            labels_matter: AtomicBool::default(),
            denial_told: AtomicBool::default(),
            patience: Patience::with_missing_machines(),
            parts,
            settings,
        })
    }

    /// How many Services are remembered. Those that are gone are not.
    pub fn remembered(&self) -> usize {
        self.records.len()
    }

    /// Files Services whose balancer has to be made, changed or removed.
    pub fn service_listener(self: &Arc<Self>) -> Listener<ServiceView> {
        let this = Arc::clone(self);
        Box::new(move |change| match &change.after {
            Some(after) => this.service_changed(change.before.as_deref(), after),
            None => {
                if let Some(gone) = &change.before {
                    this.service_gone(gone);
                }
            }
        })
    }

    /// Notes changes of Nodes that may change somebody's targets.
    pub fn node_listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change: &Change<NodeView>| {
            // Among several clouds, labels may decide whose a Node is.
            let labels_matter =
                this.labels_matter.load(Ordering::Relaxed) || this.parts.clouds.len() > 1;
            let (before, after) = (change.before.as_deref(), change.after.as_deref());
            if !relevant_change(before, after, labels_matter) {
                return;
            }
            this.note_departure(change);
            this.churn.note();
        })
    }

    fn service_changed(&self, before: Option<&ServiceView>, after: &Arc<ServiceView>) {
        let key = after.key();
        let classes = &self.parts.classes;
        self.records.amend(&key, |record| {
            let is_behind = |written: &Arc<ServiceView>| written.version() > after.version();
            record.written = record.written.take().filter(is_behind);
        });
        let Some(before) = before else {
            return self.service_appeared(key, after);
        };
        let is_new_version = before.resource_version != after.resource_version;
        if needs_update(before, after, classes) || (is_new_version && self.is_to_go(&key, after)) {
            self.queue.add_anew(key, Urgency::Change);
        } else if wants_balancer(after, classes) && self.was_tampered_with(&key, before, after) {
            self.queue.add(key, Urgency::Refresh);
        }
    }

    /// Whether the balancer of a Service is to be removed. Then every change of it is worth another try,
    /// as upstream: whatever kept the removal from ending may be gone, and need not be visible here.
    fn is_to_go(&self, key: &str, service: &ServiceView) -> bool {
        needs_cleanup(service)
            || (!wants_balancer(service, &self.parts.classes)
                && self.records.may_have_balancer(key))
    }

    fn service_appeared(&self, key: String, service: &ServiceView) {
        if wants_balancer(service, &self.parts.classes) {
            if looks_served(service) {
                self.unseen.note();
            } else {
                self.queue.add(key, Urgency::New);
            }
        } else if needs_cleanup(service) {
            self.queue.add(key, Urgency::Change);
        }
    }

    /// Whether somebody took away what we had written.
    fn was_tampered_with(&self, key: &str, before: &ServiceView, after: &ServiceView) -> bool {
        let lost_finalizer =
            before.has_finalizer(CLEANUP_FINALIZER) && !after.has_finalizer(CLEANUP_FINALIZER);
        let other_status = || {
            let published = self.records.read(key, |record| record.ingress.clone());
            let published = published.flatten();
            published.is_some_and(|published| !same_ingress(&published, &after.ingress))
        };
        lost_finalizer || (before.ingress != after.ingress && other_status())
    }

    fn service_gone(&self, gone: &ServiceView) {
        let key = gone.key();
        if self.records.may_have_balancer(&key) {
            self.queue.add(key, Urgency::Change);
        } else {
            self.records.remove(&key);
            self.queue.remove(&key);
            self.tell_followed(&key);
        }
    }

    fn tell_followed(&self, key: &str) {
        for took in self.following.finished(key) {
            self.parts.observer.nodes_followed(took);
        }
    }

    async fn handle(&self, key: String, failures: u32) -> Verdict {
        let verdict = self.attend(&key, failures).await;
        self.tell_followed(&key);
        verdict
    }

    async fn attend(&self, key: &str, failures: u32) -> Verdict {
        if let Err(verdict) = self.bury_predecessor(key, failures).await {
            return verdict;
        }
        let Some(service) = self.current(key) else {
            return Verdict::Done;
        };
        let is_wanted = wants_balancer(&service, &self.parts.classes);
        match owner_of_service(&service, &self.parts.classes) {
            Some(serving) if is_wanted => self.ensure(&service, serving, failures).await,
            _ => {
                if self.is_to_go(key, &service) {
                    self.remove(&service, failures).await
                } else {
                    self.records.remove(key);
                    Verdict::Done
                }
            }
        }
    }

    /// The Service as the watch shows it, or as the API server answered to our own last write if the
    /// watch is behind that.
    pub(super) fn current(&self, key: &str) -> Option<Arc<ServiceView>> {
        let watched = self.parts.services.get(key)?;
        let written = self.records.read(key, |record| record.written.clone());
        let written = written.flatten().filter(|written| {
            written.service.uid == watched.service.uid && written.version() > watched.version()
        });
        Some(written.unwrap_or(watched))
    }

    pub(super) fn cloud(&self, name: &str) -> Option<&Arc<Cloud>> {
        self.parts.clouds.iter().find(|cloud| cloud.name == name)
    }

    /// The provider of a cloud, if it has load balancers.
    pub(super) fn provider_of(&self, cloud: &str) -> Option<Arc<dyn CloudProvider>> {
        let provider = self.cloud(cloud)?.provider();
        provider.load_balancers().is_some().then_some(provider)
    }

    /// When a verdict has work go on.
    pub(super) fn next_try(verdict: Verdict, failures: u32) -> Option<Duration> {
        match verdict {
            Verdict::Done => None,
            Verdict::AgainAfter(delay) => Some(delay),
            Verdict::Failed => Some(Self::BACKOFF.pause(failures.saturating_add(1))),
            Verdict::NeedsPerson => Some(Self::BACKOFF.longest),
        }
    }
}

/// Whether a Service looks as if it had its balancer already.
pub(super) fn looks_served(service: &ServiceView) -> bool {
    service.has_finalizer(CLEANUP_FINALIZER) && !service.ingress.is_empty()
}

#[async_trait]
impl Controller for ServiceController {
    fn name(&self) -> ControllerName {
        ControllerName::Service
    }

    async fn run(&self, stop: CancellationToken) {
        let seen = async {
            self.parts.nodes.synced().await;
            self.parts.services.synced().await;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = seen => {}
        }
        let workers = work(
            &self.queue,
            self.settings.workers,
            &stop,
            |key, failures| self.handle(key, failures),
        );
        tokio::select! {
            biased;
            () = workers => {}
            () = self.follow_nodes() => {}
            () = self.look_around() => {}
        }
    }

    fn report(&self) -> ControllerReport {
        self.tell()
    }

    fn holdings(&self) -> Holdings {
        self.hold()
    }
}
