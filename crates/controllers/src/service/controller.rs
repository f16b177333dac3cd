//! The service controller: ensures the load balancer of every Service of type LoadBalancer, keeps it up to date, and
//! deletes it when the Service no longer asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, CloudProvider, ClusterIdentity, DriftPolicy, EventSink, WarningDelay};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::change_limit::TOO_MANY_CHANGES;
use super::keyed_locks::KeyedLocks;
use super::owner::{Classes, needs_cleanup, needs_update, owner_of_service, wants_balancer};
use super::record::Records;
use super::spec::HealthCheckChoice;
use super::status::same_ingress;
use super::targets::desired::TargetCache;
use super::targets::relevant_change;
use crate::clouds::{Cloud, after_each_replacement};
use crate::paused::paused_by;
use crate::planted::Bug;
use crate::report::ControllerReport;
use crate::report::balancers::BalancerSnapshot;
use crate::runtime::{
    Backoff, Cache, Debounce, Listener, Queue, QueueObserver, ServiceWriter, Urgency, Verdict, run,
};
use crate::view::{Change, NodeView, ServiceView, View as _};
use crate::wellknown::CLEANUP_FINALIZER;
use crate::{Controller, ControllerName};

/// The component that events name.
pub const EVENT_SOURCE: &str = "service-controller";
/// The name of the queue in metrics.
pub const QUEUE_NAME: &str = "service";

/// How the service controller works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceSettings {
    /// How many balancers at once.
    pub workers: usize,
    /// What happens to balancers that are not as they were left.
    pub drift: DriftPolicy,
    /// Whether conditions say what is wrong with a balancer.
    pub conditions: bool,
    /// Pause between two checks of all balancers.
    pub list_period: Duration,
    /// How targets are checked unless a Service asks for something else.
    pub health_checks: HealthCheckChoice,
    /// How long a leaving Node may finish its connections if the Service does not say.
    pub drain: Duration,
    /// For the jitter of the checks.
    pub seed: u64,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            workers: 10,
            drift: DriftPolicy::default(),
            conditions: true,
            list_period: Duration::from_mins(20),
            health_checks: HealthCheckChoice::default(),
            drain: Duration::from_secs(30),
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
    /// Observes balancers, for metrics.
    pub observer: Arc<dyn ServiceObserver>,
    /// Observes the queue, for metrics.
    pub queue_observer: Arc<dyn QueueObserver>,
}

/// What happens to load balancers. The manager turns it into metrics.
pub trait ServiceObserver: Send + Sync {
    /// A balancer followed a change of Nodes, or failed to.
    fn hosts_updated(&self, took: Duration, failed: bool);
    /// All balancers have followed a change of Nodes, this long after it was taken up.
    fn nodes_followed(&self, took: Duration);
    /// A Service got its address, this long after it was first seen.
    fn published(&self, cloud: &str, took: Duration);
    /// A balancer was not as it had been left.
    fn drifted(&self, cloud: &str);
    /// So many balancers carry this cluster's owner labels and have no Service any more.
    fn left_over(&self, cloud: &str, balancers: usize);
}

/// The controller.
pub struct ServiceController {
    pub(super) parts: ServiceParts,
    pub(super) settings: ServiceSettings,
    pub(super) queue: Arc<Queue<String>>,
    pub(super) locks: KeyedLocks,
    pub(super) records: Records,
    /// Changes of Nodes, which balancers follow.
    pub(super) node_changes: Debounce,
    pub(super) targets: TargetCache,
    /// When this process began to work.
    pub(super) began: Instant,
    /// Services that were served before this process saw them.
    pub(super) unseen: Debounce,
    /// Whether balancers are being checked, or have yet to be for the first time.
    pub(super) is_checking: AtomicBool,
    /// Whether it was reported that the role does not allow something.
    pub(super) denial_reported: AtomicBool,
    /// With Services some of whose targets have no machine any more.
    pub(super) patience: WarningDelay,
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
            locks: KeyedLocks::new(Arc::clone(&queue)),
            queue,
            records: Records::default(),
            node_changes: Debounce::new(Duration::from_secs(1), Duration::from_secs(10)),
            targets: TargetCache::default(),
            began: Instant::now(),
            unseen: Debounce::new(Duration::from_millis(200), Duration::from_secs(2)),
            is_checking: AtomicBool::new(true),
            denial_reported: AtomicBool::default(),
            patience: WarningDelay::for_missing_instances(),
            parts,
            settings,
        })
    }

    /// How many Services are remembered. Those that are gone are not.
    pub fn remembered(&self) -> usize {
        self.records.len()
    }

    /// Enqueues Services whose balancer has to be made, changed or deleted.
    pub fn service_listener(self: &Arc<Self>) -> Listener<ServiceView> {
        let this = Arc::clone(self);
        Box::new(move |change| match (&change.before, &change.after) {
            (before, Some(after)) => this.service_changed(before.as_deref(), after),
            (Some(gone), None) => this.service_gone(gone),
            (None, None) => {}
        })
    }

    /// Notes changes of Nodes that may change targets.
    pub fn node_listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change: &Change<NodeView>| {
            if relevant_change(change.before.as_deref(), change.after.as_deref()) {
                this.node_changes.note();
            }
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
            self.records.amend(&key, |record| record.changes.note());
            self.queue.add_anew(key, Urgency::Change);
        } else if wants_balancer(after, classes) && self.lost_a_write(&key, before, after) {
            self.queue.add(key, Urgency::Refresh);
        }
    }

    /// Whether the balancer of a Service is to be deleted. Then every change of it is worth another try,
    /// as upstream: what kept the deletion from ending may be gone, and need not be visible here.
    fn is_to_go(&self, key: &str, service: &ServiceView) -> bool {
        needs_cleanup(service)
            || (!wants_balancer(service, &self.parts.classes)
                && self.records.may_have_balancer(key))
    }

    fn service_appeared(&self, key: String, service: &ServiceView) {
        if wants_balancer(service, &self.parts.classes) {
            // Paused ones are not checked, and reported at once.
            if looks_served(service) && paused_by(&service.annotations).is_none() {
                self.unseen.note();
            } else {
                self.queue.add(key, Urgency::New);
            }
        } else if needs_cleanup(service) {
            self.queue.add(key, Urgency::Change);
        }
    }

    /// Whether another client took away what we had written.
    fn lost_a_write(&self, key: &str, before: &ServiceView, after: &ServiceView) -> bool {
        let lost_finalizer =
            before.has_finalizer(CLEANUP_FINALIZER) && !after.has_finalizer(CLEANUP_FINALIZER);
        let differs = self.records.read(key, |record| {
            let published = record.ingress.as_ref();
            published.is_some_and(|published| !same_ingress(published, &after.ingress))
        });
        lost_finalizer || (before.ingress != after.ingress && differs == Some(true))
    }

    fn service_gone(&self, gone: &ServiceView) {
        let key = gone.key();
        if self.records.may_have_balancer(&key) {
            self.queue.add(key, Urgency::Change);
        } else {
            self.records.remove(&key);
            self.queue.remove(&key);
        }
    }

    async fn handle(&self, key: String, failures: u32) -> Verdict {
        let verdict = self.reconcile(&key, failures).await;
        let mut is_draining = false;
        self.records.amend(&key, |record| {
            record.node_updates.clear();
            is_draining = !record.removed_since.is_empty();
        });
        if is_draining {
            // The comparison of targets returns when the first is drained.
            self.node_changes.note();
        }
        verdict
    }

    async fn reconcile(&self, key: &str, failures: u32) -> Verdict {
        if let Err(verdict) = self.clean_up_replaced_service(key, failures).await {
            return verdict;
        }
        let Some(service) = self.current(key) else {
            return Verdict::Done;
        };
        let is_ours = wants_balancer(&service, &self.parts.classes) || self.is_to_go(key, &service);
        let is_ours = is_ours && !Bug::IgnorePause.is_planted();
        if let Some(why) = paused_by(&service.annotations).filter(|_| is_ours) {
            return self.pause(&service, &why);
        }
        self.resume(&service);
        match owner_of_service(&service, &self.parts.classes) {
            Some(owner) if !service.deleting => {
                if let Some(wait) = self
                    .records
                    .update(&service, |record| record.changes.begin())
                {
                    self.report_pending(&service, TOO_MANY_CHANGES);
                    return Verdict::AgainAfter(wait);
                }
                self.ensure(&service, owner, failures).await
            }
            _ if self.is_to_go(key, &service) => self.delete(&service, failures).await,
            _ => {
                self.records.remove(key);
                Verdict::Done
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

    /// What is remembered of all balancers, for reports.
    fn snapshot(&self) -> Vec<BalancerSnapshot> {
        let mut balancers = Vec::new();
        self.records.for_each(|key, record| {
            balancers.push(BalancerSnapshot {
                service: key.to_owned(),
                clouds: record.clouds().cloned().collect(),
                paused: record.paused.clone(),
                error: record.last_error.clone(),
                pending: record.reported.pending.clone(),
                is_settled: record.is_at_rest(),
                applied: record.applied.clone(),
                applying: record.applying.clone(),
                health: record.health.clone(),
            });
        });
        balancers
    }
}

/// Waits until then; for ever if there is no such time.
pub(super) async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Whether a Service seems to have its balancer already.
pub(super) fn looks_served(service: &ServiceView) -> bool {
    service.has_finalizer(CLEANUP_FINALIZER) && !service.ingress.is_empty()
}

#[async_trait]
impl Controller for ServiceController {
    fn name(&self) -> ControllerName {
        ControllerName::Service
    }

    async fn run(&self, stop: CancellationToken) {
        let workers = (&self.queue, self.settings.workers);
        let synced = async {
            self.parts.nodes.synced().await;
            self.parts.services.synced().await;
        };
        let beside = || {
            let retry =
                after_each_replacement(&self.parts.clouds, || self.queue.retry_failed_now());
            futures::future::join4(
                self.follow_nodes(),
                self.check_balancers(),
                self.follow_health(),
                retry,
            )
        };
        let handle = |key, failures| self.handle(key, failures);
        run(workers, &stop, synced, beside, handle).await;
    }

    fn is_idle(&self) -> bool {
        let is_about_to_work = self.unseen.is_pending()
            || self.node_changes.is_pending()
            || self.is_checking.load(Ordering::Relaxed);
        self.parts.nodes.has_synced()
            && self.parts.services.has_synced()
            && !is_about_to_work
            && self.queue.is_idle()
    }

    fn report(&self) -> ControllerReport {
        ControllerReport::of_services(self.snapshot(), self.queue.report(), &self.parts)
    }
}
