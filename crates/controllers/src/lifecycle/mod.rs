//! The node lifecycle controller: taints Nodes whose instances are shut down, and deletes those whose instances are
//! proven gone.
//!
//! ```text
//! not ready ─▶ queue ─▶ find instance ─ present ─▶ shut down? taint
//!                                     ├ unknown ─▶ retry
//!                                     └ gone ────▶ compare list, Nodes and heartbeats ─▶ decide
//!                                                  ─▶ get the Node ─▶ decide ─▶ limiter ─▶ delete
//! ready ─────▶ queue ─▶ remove the shutdown taint
//! ```

pub mod decide;
mod delete;
pub mod doubt;
mod existence;
mod heartbeat;
pub mod limiter;
mod stop;
mod taint;

use std::collections::BTreeMap;
use std::mem::Discriminant;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Doubt, InstanceState, Retry, TokioClock};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub use heartbeat::{Heartbeat, LeaseHeartbeats};

use crate::clouds::{
    Belonging, Cloud, Owner, after_each_replacement, is_another_instance, labels_contradicted,
    owner_of,
};
use crate::paused::paused_by;
use crate::planted::Bug;
use crate::report::{ControllerReport, DeletionReport, PendingDeletion, StopReport};
use crate::runtime::{Backoff, Listener, Queue, Records, Urgency, Verdict, run};
use crate::view::{Change, NodeView, Readiness};
use crate::wellknown::SHUTDOWN_TAINT;
use crate::{Controller, ControllerName, ControllerParts};
use decide::{Caution, Decision, Proofs, is_delete_now};
use doubt::ScopeDoubt;
use existence::{Answer, LookUps};
use limiter::DeletionLimiter;
use stop::{Comparison, Stop};

/// The longest pause between two checks of a Node that stays not ready.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How the lifecycle controller works.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleSettings {
    /// How many Nodes at once.
    pub workers: usize,
    /// The shortest pause between two checks of a Node.
    pub monitor_period: Duration,
    /// How careful deletions are.
    pub caution: Caution,
    /// How fast Nodes are deleted, per cloud.
    pub limiter: DeletionLimiter,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self {
            workers: 20,
            monitor_period: Duration::from_secs(5),
            caution: Caution::default(),
            limiter: DeletionLimiter::new(10, 0.2, Duration::from_secs(10)),
        }
    }
}

impl LifecycleSettings {
    const fn backoff(&self) -> Backoff {
        Backoff {
            first: self.monitor_period,
            longest: LONGEST_PAUSE,
        }
    }
}

/// What happens to Nodes. The manager turns it into metrics.
pub trait LifecycleObserver: Send + Sync {
    /// An instance was looked for: `success`, `error`, `instance_not_found`.
    fn instance_checked(&self, result: &'static str);
    /// A Node was deleted.
    fn node_deleted(&self, cloud: &str);
    /// Deletions of a cloud were stopped or resumed.
    fn deletions_stopped(&self, cloud: &str, stopped: bool);
    /// A Node was reconciled in this time, calls to the cloud included.
    fn reconciled(&self, _took: Duration) {}
}

/// Everything a [`LifecycleController`] is made of.
/// Events have the source `cloud-node-lifecycle-controller`.
pub type LifecycleParts = ControllerParts<dyn LifecycleObserver>;

/// The controller.
pub struct LifecycleController {
    parts: LifecycleParts,
    /// Reads the heartbeats of kubelets.
    heartbeats: LeaseHeartbeats,
    settings: LifecycleSettings,
    /// The wall clock as if it had not been set since the start.
    steady: TokioClock,
    queue: Arc<Queue<String>>,
    /// What is remembered of Nodes that are not ready.
    records: Records<NodeRecord>,
    /// What is remembered of clouds, by name.
    clouds: Mutex<BTreeMap<String, CloudRecord>>,
    /// Whether it was logged that the role does not allow deletions.
    denial_reported: AtomicBool,
}

#[derive(Default)]
struct NodeRecord {
    /// How often it was checked since it is not ready.
    checks: u32,
    /// When its instance was last not found.
    missed: Option<Instant>,
    proofs: Option<Proofs>,
    /// The heartbeat at the first proof.
    heartbeat: Option<Heartbeat>,
    /// Whether it is kept although its instance was not found.
    is_kept: bool,
    /// Why it was last kept, and the kind of doubt if that was the reason.
    kept: Option<(Option<Discriminant<ScopeDoubt>>, String)>,
}

struct CloudRecord {
    limiter: DeletionLimiter,
    stop: Option<Stop>,
    /// When so many Nodes were counted that are not ready that they share lists.
    many_not_ready: Option<Instant>,
    /// Proofs from before this moment do not count.
    proofs_voided: Option<Instant>,
    look_ups: Arc<LookUps>,
    /// Locked while the cloud is listed or compared with the cluster.
    comparison: Arc<tokio::sync::Mutex<Comparison>>,
}

impl LifecycleController {
    /// A controller that has not started.
    pub fn new(
        parts: LifecycleParts,
        heartbeats: LeaseHeartbeats,
        settings: LifecycleSettings,
    ) -> Arc<Self> {
        let backoff = settings.backoff();
        Arc::new(Self {
            queue: Arc::new(Queue::new(backoff, Arc::clone(&parts.queue_observer))),
            steady: TokioClock::starting_at(parts.clock.now()),
            parts,
            heartbeats,
            settings,
            records: Records::default(),
            clouds: Mutex::default(),
            denial_reported: AtomicBool::default(),
        })
    }

    /// Enqueues Nodes that stop being ready, that come back with a shutdown taint, or that changed in a way that
    /// matters here. Mere heartbeats do not.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            this.records.follow(change);
            if let Some(gone) = change.gone() {
                this.queue.remove(&gone.facts.name);
                this.release_slot(gone);
            }
            if let Some(node) = change.after.as_ref().filter(|_| is_relevant(change)) {
                this.queue.add(node.facts.name.clone(), Urgency::Change);
            }
        })
    }

    async fn reconcile(&self, name: String) -> Verdict {
        let began = Instant::now();
        let verdict = match self.parts.nodes.get(&name) {
            Some(node) if node.deleting || is_paused(&node) => self.leave_alone(&node),
            Some(node) if node.readiness == Readiness::Ready => self.handle_ready(&node).await,
            Some(node) => self.handle_not_ready(&node).await,
            None => Verdict::Done,
        };
        self.parts.observer.reconciled(began.elapsed());
        verdict
    }

    /// A Node that is paused, that goes, or that is no cloud's here, is neither tainted nor deleted. What is known of it
    /// begins anew when that ends.
    fn leave_alone(&self, node: &NodeView) -> Verdict {
        self.release_slot(node);
        self.of_node(node, std::mem::take);
        Verdict::Done
    }

    async fn handle_ready(&self, node: &NodeView) -> Verdict {
        self.release_slot(node);
        self.of_node(node, std::mem::take);
        match owner_of(&node.facts, &self.parts.clouds) {
            // Another component tainted it, and will take the taint away.
            Owner::Unowned { .. } => Verdict::Done,
            Owner::Cloud(_) | Owner::Ask(_) => self.remove_shutdown_taint(node).await,
        }
    }

    async fn handle_not_ready(&self, node: &NodeView) -> Verdict {
        let clouds = self.clouds_of(node);
        if clouds.is_empty() {
            return self.report_other_account(node);
        }
        if !is_delete_now(node)
            && let Some(verdict) = self.is_still_stopped(node, &clouds).await
        {
            return verdict;
        }
        let observer = &self.parts.observer;
        match self.find_instance(node, &clouds).await {
            Answer::Present(instance) => {
                observer.instance_checked("success");
                self.forget_absence(node);
                let is_own = !is_another_instance(&instance, &node.facts);
                if is_own && instance.state == InstanceState::ShutDown {
                    self.add_shutdown_taint(node).await
                } else {
                    self.retry_later(node)
                }
            }
            Answer::Unknown(Doubt::NothingElseSeen { .. } | Doubt::ScopeChanged { .. }) => {
                observer.instance_checked("error");
                self.of_node(node, |record| record.missed = Some(Instant::now()));
                self.report_blind_credential(node, &clouds).await
            }
            Answer::Unknown(doubt) => {
                observer.instance_checked("error");
                debug!(node = node.facts.name, err = %doubt, "error checking if node exists");
                // A call that failed says nothing against the proofs before it; another answer does.
                if !matches!(doubt, Doubt::NoAnswer(_)) {
                    self.forget_absence(node);
                }
                later_of(self.retry_later(node), &doubt)
            }
            Answer::Gone { proofs, noticed } => {
                observer.instance_checked("instance_not_found");
                self.of_node(node, |record| record.missed = Some(noticed));
                self.handle_gone(node, &clouds, proofs, noticed).await
            }
        }
    }

    /// A Node of no cloud here is left alone. One that is a cloud's by its labels, and another account's by its ID, is reported:
    /// a credential of another project recognises no ID of this cluster.
    fn report_other_account(&self, node: &NodeView) -> Verdict {
        match labels_contradicted(&node.facts, &self.parts.clouds) {
            Some(why) => self.keep(node, Decision::Keep { why }),
            None => self.leave_alone(node),
        }
    }

    /// Checks again after a pause that doubles.
    fn retry_later(&self, node: &NodeView) -> Verdict {
        self.of_node(node, |record| {
            record.checks = record.checks.saturating_add(1);
        });
        Verdict::AgainAfter(self.pause_of(node).max(self.settings.monitor_period))
    }

    /// The pause between two checks of a Node, as long as it stays not ready.
    fn pause_of(&self, node: &NodeView) -> Duration {
        match self.of_node(node, |record| record.checks) {
            None | Some(0) => Duration::ZERO,
            Some(checks) => self.settings.backoff().pause(checks),
        }
    }

    /// Any answer but "gone" ends the proofs, and whatever followed from them.
    fn forget_absence(&self, node: &NodeView) {
        self.of_node(node, |record| {
            *record = NodeRecord {
                checks: record.checks,
                ..NodeRecord::default()
            };
        });
        self.release_slot(node);
    }

    /// What the cloud said so far does not count any more.
    fn end_proofs(&self, node: &NodeView) {
        self.of_node(node, |record| {
            record.proofs = None;
            record.heartbeat = None;
        });
    }

    /// A Node that is not deleted after all needs no slot of the limiter.
    fn release_slot(&self, node: &NodeView) {
        for record in self.clouds.lock().values_mut() {
            record.limiter.release(&node.facts.uid);
        }
    }

    /// When a Node may be deleted, if it waits for that.
    fn slot_of(&self, node: &NodeView) -> Option<Instant> {
        let clouds = self.clouds.lock();
        let mut limiters = clouds.values().map(|record| &record.limiter);
        limiters.find_map(|limiter| limiter.slot(&node.facts.uid))
    }

    /// The clouds that may know the instance of a Node; none if it is not ours to decide about. Without an ID it is
    /// not: an instance of the same name proves nothing. Where several accounts may own the ID, it is gone only if it
    /// is gone from all of them, or from the one that is known to have had it.
    fn clouds_of(&self, node: &NodeView) -> Vec<Arc<Cloud>> {
        if node.facts.provider_id.is_none() {
            return Vec::new();
        }
        self.parts.guard().clouds_of(node)
    }

    /// The Nodes whose provider ID names an instance that is a cloud's, or may be.
    fn nodes_of(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let mut nodes = self.parts.nodes.all();
        nodes.retain(|node| self.parts.guard().belonging(node, cloud) != Belonging::Not);
        nodes
    }

    /// Reads or changes what is remembered of a Node. `None` if the Node is gone.
    fn of_node<T>(&self, node: &NodeView, use_it: impl FnOnce(&mut NodeRecord) -> T) -> Option<T> {
        self.records.with(&node.facts.uid, use_it)
    }

    /// Reads or changes what is remembered of a cloud.
    fn of_cloud<T>(&self, cloud: &Cloud, use_it: impl FnOnce(&mut CloudRecord) -> T) -> T {
        let mut clouds = self.clouds.lock();
        let record = clouds.entry(cloud.name.clone());
        use_it(record.or_insert_with(|| CloudRecord {
            limiter: self.settings.limiter.clone(),
            stop: None,
            many_not_ready: None,
            proofs_voided: None,
            look_ups: Arc::default(),
            comparison: Arc::default(),
        }))
    }

    /// Nodes whose instances are not found and that are kept all the same, or wait for the limiter.
    fn kept(&self) -> Vec<String> {
        let now = Instant::now();
        let nodes = self.parts.nodes.all();
        let kept = nodes.iter().filter_map(|node| {
            let name = &node.facts.name;
            if let Some(slot) = self.slot_of(node) {
                let seconds = slot.saturating_duration_since(now).as_secs();
                return Some(format!("{name}: a deletion slot, in {seconds} s"));
            }
            let why = |record: &mut NodeRecord| record.kept.clone().filter(|_| record.is_kept);
            let (_, why) = self.of_node(node, why)??;
            Some(format!("{name}: kept, {why}"))
        });
        kept.collect()
    }

    /// Whether an instance was not found by a look-up that a list has yet to back: the next look-up says more.
    fn has_unproven_absence(&self) -> bool {
        let nodes = self.parts.nodes.all();
        nodes.iter().any(|node| {
            let is_unproven = |record: &mut NodeRecord| {
                record.missed.is_some() && record.proofs.is_none() && !record.is_kept
            };
            self.of_node(node, is_unproven) == Some(true)
        })
    }

    /// Nodes whose instances are not found, and that nothing keeps.
    fn pending_deletions(&self) -> Vec<PendingDeletion> {
        let needed = self.settings.caution.proofs;
        let nodes = self.parts.nodes.all();
        let pending = nodes.iter().filter_map(|node| {
            let confirmations = self.of_node(node, |record| {
                let proofs = record.proofs.as_ref().filter(|_| !record.is_kept)?;
                // The last look-up may lack a list that agrees.
                Some(needed.saturating_sub(proofs.count()).max(1))
            });
            let has_slot = self.slot_of(node).map(|_| 0);
            Some(PendingDeletion {
                node: node.facts.name.clone(),
                confirmations: has_slot.or(confirmations.flatten())?,
            })
        });
        pending.collect()
    }

    fn deletions(&self) -> Vec<DeletionReport> {
        let clouds = self.parts.clouds.iter();
        let with_instances = clouds.filter(|cloud| cloud.provider().instances().is_some());
        let reports = with_instances.map(|cloud| {
            let nodes = self.nodes_of(cloud).len();
            self.of_cloud(cloud, |record| DeletionReport {
                cloud: cloud.name.clone(),
                stopped: record.stop.as_ref().map(|stop| StopReport {
                    reason: stop.doubt.to_string(),
                    since: stop.since,
                    what_to_do: stop.doubt.what_to_do(),
                }),
                limiter: record.limiter.report(nodes, Instant::now()),
            })
        });
        reports.collect()
    }
}

fn is_paused(node: &NodeView) -> bool {
    paused_by(&node.facts.annotations).is_some() && !Bug::IgnorePause.is_planted()
}

/// A cloud's `Retry-After` is honoured.
fn later_of(verdict: Verdict, doubt: &Doubt) -> Verdict {
    let Doubt::NoAnswer(error) = doubt else {
        return verdict;
    };
    match (verdict, error.retry()) {
        (Verdict::AgainAfter(ours), Retry::After(theirs)) => Verdict::AgainAfter(ours.max(theirs)),
        (verdict, _) => verdict,
    }
}

/// Whether a Node has to be checked because of this change.
fn is_relevant(change: &Change<NodeView>) -> bool {
    let Some(after) = &change.after else {
        return false;
    };
    let needs_check = after.readiness != Readiness::Ready || after.has_taint(SHUTDOWN_TAINT);
    let has_changed = change.before.as_ref().is_none_or(|before| {
        before.readiness != after.readiness
            || before.facts.uid != after.facts.uid
            || before.facts.provider_id != after.facts.provider_id
            || before.facts.annotations != after.facts.annotations
            || before.facts.labels != after.facts.labels
            || before.taints != after.taints
    });
    needs_check && has_changed
}

#[async_trait]
impl Controller for LifecycleController {
    fn name(&self) -> ControllerName {
        ControllerName::CloudNodeLifecycle
    }

    async fn run(&self, stop: CancellationToken) {
        let workers = (&self.queue, self.settings.workers);
        let synced = self.parts.nodes.synced();
        let reconcile = |name, _| self.reconcile(name);
        let beside = || {
            let retry =
                after_each_replacement(&self.parts.clouds, || self.queue.retry_failed_now());
            futures::future::join(self.review_stops(), retry)
        };
        run(workers, &stop, synced, beside, reconcile).await;
    }

    fn is_idle(&self) -> bool {
        self.parts.nodes.has_synced() && self.queue.is_idle() && !self.has_unproven_absence()
    }

    fn report(&self) -> ControllerReport {
        ControllerReport {
            deletions: self.deletions(),
            pending_deletions: self.pending_deletions(),
            ..ControllerReport::new(self.queue.report(), self.kept())
        }
        .after_first_list(&self.parts.nodes)
    }
}

#[cfg(test)]
mod tests;
