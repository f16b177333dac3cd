//! The node lifecycle controller: taints Nodes whose machines are shut down, and deletes those whose
//! machines are proven gone.
//!
//! ```text
//! not ready ─▶ queue ─▶ ask the cloud ─ present ─▶ shut down? taint
//!                                     ├ unknown ─▶ nothing, ask again
//!                                     └ gone ────▶ compare list, Nodes and kubelets ─▶ decide ─▶ limit
//!                                                  ─▶ read the Node again ─▶ decide ─▶ delete
//! ready ─────▶ queue ─▶ shutdown taint off
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
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, Doubt, EventSink, InstanceState, Retry, TokioClock, names};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub use heartbeat::{Heartbeat, Heartbeats, LeaseHeartbeats};

use crate::clouds::{Belonging, Cloud, Owner, ScopeGuard, is_another_instance, owner_of};
use crate::report::{ControllerReport, DeletionReport, StopReport};
use crate::runtime::{
    Backoff, Cache, Listener, NodeWriter, Queue, QueueObserver, Records, Urgency, Verdict, work,
};
use crate::view::{Change, NodeView, Readiness};
use crate::wellknown::SHUTDOWN_TAINT;
use crate::{Controller, ControllerName};
use decide::{Caution, Proofs};
use doubt::ScopeDoubt;
use existence::Answer;
use limiter::DeletionLimiter;
use stop::{Comparison, Stop};

/// How the lifecycle controller works.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleSettings {
    /// How many Nodes at once.
    pub workers: usize,
    /// The shortest pause between two questions about a Node.
    pub monitor_period: Duration,
    /// The longest pause between two questions about a Node that stays not ready.
    pub longest_pause: Duration,
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
            longest_pause: Duration::from_mins(1),
            caution: Caution::default(),
            limiter: DeletionLimiter::new(10, 0.2, Duration::from_secs(10)),
        }
    }
}

/// Hears what the cloud was asked and what was done.
pub trait LifecycleObserver: Send + Sync {
    /// A question and its answer: `success`, `error`, `instance_not_found`.
    fn asked(&self, result: &'static str);
    /// A Node was deleted.
    fn deleted(&self, cloud: &str);
    /// Deletions of a cloud were stopped or may go on.
    fn halted(&self, cloud: &str, halted: bool);
    /// A look at a Node took this long, questions to the cloud included.
    fn looked(&self, _took: Duration) {}
}

/// Everything a [`LifecycleController`] is made of.
pub struct LifecycleParts {
    /// The Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// The clouds.
    pub clouds: Vec<Arc<Cloud>>,
    /// Writes Nodes.
    pub writer: NodeWriter,
    /// Tells whether a kubelet still reports.
    pub heartbeats: Arc<dyn Heartbeats>,
    /// Where events go; source `cloud-node-lifecycle-controller`.
    pub events: Arc<dyn EventSink>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Hears what was asked and done.
    pub observer: Arc<dyn LifecycleObserver>,
    /// Hears what happens in the queue.
    pub queue_observer: Arc<dyn QueueObserver>,
}

/// The controller.
pub struct LifecycleController {
    parts: LifecycleParts,
    settings: LifecycleSettings,
    /// Shows what the wall clock would if it had not been set since the start.
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
    asked: u32,
    /// When its machine was last not found.
    missed: Option<Instant>,
    proofs: Option<Proofs>,
    /// What the kubelet had to say when the proofs began.
    heartbeat: Option<Heartbeat>,
    /// Why it is kept although its machine was not found, and the kind of doubt if that is the reason.
    kept: Option<(Option<Discriminant<ScopeDoubt>>, String)>,
    /// When it may be deleted, as the limiter has promised.
    turn: Option<Instant>,
}

struct CloudRecord {
    limiter: DeletionLimiter,
    stop: Option<Stop>,
    /// When so many Nodes were counted that are not ready that they share lists.
    many_suspects: Option<Instant>,
    /// Proofs from before this moment do not count.
    voided: Option<Instant>,
    /// The last time that a kubelet was heard whose machine was missing, and of which Node.
    heard: Option<(Instant, String)>,
    /// How long a kubelet that lives may go unheard, of those whose machines are missing.
    silence: Duration,
    /// Locked while the cloud is listed or compared with the cluster.
    comparison: Arc<tokio::sync::Mutex<Comparison>>,
}

impl LifecycleController {
    /// A controller that has not started.
    pub fn new(parts: LifecycleParts, settings: LifecycleSettings) -> Arc<Self> {
        let backoff = Backoff {
            first: settings.monitor_period,
            longest: settings.longest_pause,
        };
        Arc::new(Self {
            queue: Arc::new(Queue::new(backoff, Arc::clone(&parts.queue_observer))),
            steady: TokioClock::starting_at(parts.clock.now()),
            parts,
            settings,
            records: Records::default(),
            clouds: Mutex::default(),
            denial_reported: AtomicBool::default(),
        })
    }

    /// Files Nodes that stop being ready, that come back with a shutdown taint, or about which
    /// something changed that matters here. Mere heartbeats do not count.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            let ended = this.records.follow(change);
            if let Some(gone) = change.gone() {
                this.queue.remove(&gone.facts.name);
                if ended.is_some_and(|record| record.turn.is_some()) {
                    this.give_back_turn(gone);
                }
            }
            if let Some(node) = change.after.as_ref().filter(|_| matters(change)) {
                this.queue.add(node.facts.name.clone(), Urgency::Change);
            }
        })
    }

    async fn look_at(&self, name: String) -> Verdict {
        let began = Instant::now();
        let verdict = self.handle(name).await;
        self.parts.observer.looked(began.elapsed());
        verdict
    }

    async fn handle(&self, name: String) -> Verdict {
        let Some(node) = self.parts.nodes.get(&name).filter(|node| !node.deleting) else {
            return Verdict::Done;
        };
        if node.readiness == Readiness::Ready {
            self.give_up_turn(&node);
            self.of_node(&node, std::mem::take);
            return match owner_of(&node.facts, &self.parts.clouds) {
                // Another component tainted it, and will take the taint away.
                Owner::Nobody { .. } => Verdict::Done,
                Owner::Cloud(_) | Owner::Ask(_) => self.remove_shutdown_taint(&node).await,
            };
        }
        let clouds = self.clouds_of(&node);
        if clouds.is_empty() {
            return Verdict::Done;
        }
        let is_hurried = names::DELETE_NOW.get(&node.facts.annotations) == Ok(Some(true));
        if !is_hurried && let Some(verdict) = self.is_still_stopped(&node, &clouds).await {
            return verdict;
        }
        match self.ask_all(&node, &clouds).await {
            Answer::Present(instance) => {
                self.parts.observer.asked("success");
                self.note_found(&node);
                let is_own = !is_another_instance(&instance, &node.facts);
                let shut_down = is_own && instance.state == InstanceState::ShutDown;
                self.taint_if(shut_down, &node).await
            }
            Answer::Unknown(Doubt::NothingElseSeen { .. } | Doubt::ScopeChanged { .. }) => {
                self.parts.observer.asked("error");
                self.of_node(&node, |record| record.missed = Some(Instant::now()));
                self.suspect_blindness(&node, &clouds).await
            }
            Answer::Unknown(doubt) => {
                self.parts.observer.asked("error");
                debug!(node = name, %doubt, "cannot tell whether the machine exists");
                // A call that failed says nothing against the proofs before it; another answer does.
                if !matches!(doubt, Doubt::NoAnswer(_)) {
                    self.note_found(&node);
                }
                later_of(self.ask_later(&node), &doubt)
            }
            Answer::Gone { proofs, noticed } => {
                self.parts.observer.asked("instance_not_found");
                self.of_node(&node, |record| record.missed = Some(noticed));
                self.consider(&node, &clouds, proofs, noticed).await
            }
        }
    }

    /// The next question, after a pause that doubles.
    fn ask_later(&self, node: &NodeView) -> Verdict {
        self.of_node(node, |record| record.asked = record.asked.saturating_add(1));
        Verdict::AgainAfter(self.pause_of(node).max(self.settings.monitor_period))
    }

    /// The pause between two questions about a Node, as long as it stays not ready.
    fn pause_of(&self, node: &NodeView) -> Duration {
        let backoff = Backoff {
            first: self.settings.monitor_period,
            longest: self.settings.longest_pause,
        };
        match self.of_node(node, |record| record.asked) {
            None | Some(0) => Duration::ZERO,
            Some(asked) => backoff.pause(asked),
        }
    }

    /// Any answer but "gone" ends the proofs, and whatever followed from them.
    fn note_found(&self, node: &NodeView) {
        self.end_proofs(node);
        self.of_node(node, |record| {
            record.kept = None;
            record.missed = None;
        });
        self.give_up_turn(node);
    }

    /// What the cloud said so far does not count any more.
    fn end_proofs(&self, node: &NodeView) {
        self.of_node(node, |record| {
            record.proofs = None;
            record.heartbeat = None;
        });
    }

    /// A Node that may not be deleted after all has no right to a turn. Turns that were kept would add up
    /// while deletions are stopped, and all be used at once.
    fn give_up_turn(&self, node: &NodeView) {
        let turn = self.of_node(node, |record| record.turn.take());
        if turn.flatten().is_some() {
            self.give_back_turn(node);
        }
    }

    fn give_back_turn(&self, node: &NodeView) {
        if let Some(cloud) = self.clouds_of(node).first() {
            self.of_cloud(cloud, |record| record.limiter.give_back());
        }
    }

    /// The clouds that may know the machine of a Node; none if it is not ours to decide about. Without an ID it is
    /// not: a machine of the same name proves nothing. Where several accounts may own the ID, it is gone only if it
    /// is gone from all of them, or from the one that is known to have had it.
    fn clouds_of(&self, node: &NodeView) -> Vec<Arc<Cloud>> {
        if node.facts.provider_id.is_none() {
            return Vec::new();
        }
        self.guard().clouds_of(node)
    }

    /// The Nodes whose provider ID names a machine that is a cloud's, or may be.
    fn nodes_of(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let mut nodes = self.parts.nodes.all();
        nodes.retain(|node| self.guard().belonging(node, cloud) != Belonging::Not);
        nodes
    }

    fn guard(&self) -> ScopeGuard<'_> {
        ScopeGuard::new(&self.parts.nodes, &self.parts.clouds)
    }

    /// Reads or changes what is remembered of a Node. `None` if the Node is gone.
    fn of_node<T>(&self, node: &NodeView, use_it: impl FnOnce(&mut NodeRecord) -> T) -> Option<T> {
        self.records.with(&node.facts.uid, use_it)
    }

    /// Reads or changes what is remembered of a cloud.
    fn of_cloud<T>(&self, cloud: &Cloud, use_it: impl FnOnce(&mut CloudRecord) -> T) -> T {
        let mut clouds = self.clouds.lock().unwrap_or_else(PoisonError::into_inner);
        let record = clouds.entry(cloud.name.clone());
        use_it(record.or_insert_with(|| CloudRecord {
            limiter: self.settings.limiter.clone(),
            stop: None,
            many_suspects: None,
            voided: None,
            heard: None,
            silence: Duration::ZERO,
            comparison: Arc::default(),
        }))
    }

    /// Nodes whose machines are not found and that are kept all the same.
    fn kept(&self) -> Vec<String> {
        let now = Instant::now();
        let nodes = self.parts.nodes.all();
        let kept = nodes.iter().filter_map(|node| {
            let name = &node.facts.name;
            let describe = |record: &mut NodeRecord| match (&record.turn, &record.kept) {
                (Some(turn), _) => {
                    let seconds = turn.saturating_duration_since(now).as_secs();
                    Some(format!("{name}: its turn to be deleted, in {seconds} s"))
                }
                (None, Some((_, why))) => Some(format!("{name}: kept, {why}")),
                (None, None) => None,
            };
            self.of_node(node, describe).flatten()
        });
        kept.collect()
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
                pace: record.limiter.report(nodes, Instant::now()),
            })
        });
        reports.collect()
    }
}

/// A cloud that says when to come back is taken at its word.
fn later_of(verdict: Verdict, doubt: &Doubt) -> Verdict {
    let Doubt::NoAnswer(error) = doubt else {
        return verdict;
    };
    match (verdict, error.retry()) {
        (Verdict::AgainAfter(ours), Retry::After(theirs)) => Verdict::AgainAfter(ours.max(theirs)),
        (verdict, _) => verdict,
    }
}

/// Whether a change of a Node asks for a look at its machine.
fn matters(change: &Change<NodeView>) -> bool {
    let Some(after) = &change.after else {
        return false;
    };
    let needs_a_look = after.readiness != Readiness::Ready || after.has_taint(SHUTDOWN_TAINT);
    let news = change.before.as_ref().is_none_or(|before| {
        before.readiness != after.readiness
            || before.facts.uid != after.facts.uid
            || before.facts.provider_id != after.facts.provider_id
            || before.facts.annotations != after.facts.annotations
            || before.facts.labels != after.facts.labels
            || before.taints != after.taints
    });
    needs_a_look && news
}

#[async_trait]
impl Controller for LifecycleController {
    fn name(&self) -> ControllerName {
        ControllerName::CloudNodeLifecycle
    }

    async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = self.parts.nodes.synced() => {}
        }
        let workers = work(
            &self.queue,
            self.settings.workers,
            &stop,
            |name, _failures| self.look_at(name),
        );
        tokio::select! {
            biased;
            () = workers => {}
            () = self.review_stops() => {}
        }
    }

    fn report(&self) -> ControllerReport {
        let mut report = ControllerReport {
            queue: self.queue.report(),
            deletions: self.deletions(),
            ..ControllerReport::default()
        };
        if !self.parts.nodes.has_synced() {
            report.waits_for.push("the first list of Nodes".to_owned());
        }
        report.wait_for(self.kept());
        report
    }
}

#[cfg(test)]
mod tests;
