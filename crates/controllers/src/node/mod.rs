//! The node controller: initializes Nodes, and keeps their addresses and labels current.
//!
//! ```text
//! node event ─▶ queue ─▶ tainted?  ─ yes ─▶ find instance ─▶ plan ─▶ addresses, then the rest
//!                                  └ no ──▶ labels, and the last list ─▶ plan ─▶ write
//! list ──────▶ queue (only Nodes that differ from it)
//! ```

pub mod addresses;
mod find;
mod given;
mod initialise;
pub mod labels;
mod pause;
pub mod plan;
mod predecessor;
mod refresh;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clouds::{after_each_replacement, given_to};
use crate::paused::paused_by;
use crate::report::{ControllerReport, ManagedResources, truncate};
use crate::runtime::{Backoff, Listener, Queue, Records, Urgency, Verdict, run};
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;
use crate::{Controller, ControllerName, ControllerParts};
use plan::Refresh;
use predecessor::Predecessors;
use report::{DelayedEvents, NodeRecord};

/// How soon a Node is requeued if the watch lags behind our own writes.
const WATCH_LAG: Duration = Duration::from_secs(1);

/// How the node controller works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// How many Nodes at once.
    pub workers: usize,
    /// Of them, how many at most are initialised already and only get new addresses.
    pub refreshers: usize,
    /// Pause between two lists.
    pub list_period: Duration,
    /// Which labels follow the machine.
    pub follow: Refresh,
    /// For the jitter of the lists.
    pub seed: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            // As many as keep an API server busy; more only make it slower.
            workers: 32,
            refreshers: 32,
            list_period: Duration::from_mins(10),
            follow: Refresh {
                instance_type: true,
                topology: false,
            },
            seed: 0,
        }
    }
}

/// Observes how long Nodes waited.
pub trait NodeObserver: Send + Sync {
    /// The Node was initialized, and the taint removed, this long after it was created.
    fn initialized(&self, since_created: Duration);
}

/// Everything a [`NodeController`] is made of.
/// Events have the source `cloud-node-controller`.
pub type NodeParts = ControllerParts<dyn NodeObserver>;

/// The controller.
pub struct NodeController {
    parts: NodeParts,
    settings: NodeSettings,
    queue: Arc<Queue<String>>,
    refreshers: Semaphore,
    /// What is remembered of Nodes.
    records: Records<NodeRecord>,
    /// Nodes that went lately.
    predecessors: Mutex<Predecessors>,
    /// When the last Node was created that waits for its initialisation.
    last_arrival: Mutex<Option<Instant>>,
    /// Events that can wait.
    delayed_events: Mutex<DelayedEvents>,
    event_delayed: Notify,
    /// How many clouds have been listed once, or failed to be.
    listed: AtomicUsize,
}

impl NodeController {
    /// A Node whose cloud does not answer is asked about again this soon at first, and at least once
    /// a minute.
    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(500),
        longest: Duration::from_mins(1),
    };

    /// A controller that has not started.
    pub fn new(parts: NodeParts, settings: NodeSettings) -> Arc<Self> {
        Arc::new(Self {
            queue: Arc::new(Queue::new(Self::BACKOFF, Arc::clone(&parts.queue_observer))),
            refreshers: Semaphore::new(settings.refreshers.min(Semaphore::MAX_PERMITS)),
            parts,
            settings,
            records: Records::default(),
            predecessors: Mutex::default(),
            last_arrival: Mutex::default(),
            delayed_events: Mutex::default(),
            event_delayed: Notify::new(),
            listed: AtomicUsize::new(0),
        })
    }

    /// Enqueues changed Nodes by name; those that wait for their initialisation first. A Node of no cloud here is not
    /// enqueued.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            this.records.follow(change);
            if let Some(replaced) = change.replaced() {
                this.predecessors.lock().note(&replaced.facts);
            }
            let gone = change.gone();
            if let Some(gone) = gone {
                this.queue.remove(&gone.facts.name);
            }
            let Some(node) = &change.after else {
                return;
            };
            let is_paused = |node: &Arc<NodeView>| paused_by(&node.facts.annotations).is_some();
            if is_paused(node) != change.before.as_ref().is_some_and(is_paused) {
                this.queue.add(node.facts.name.clone(), Urgency::Change);
            }
            if node.has_taint(UNINITIALIZED_TAINT) {
                if change.before.is_none() || gone.is_some() {
                    this.note_arrival();
                }
                this.queue.add(node.facts.name.clone(), Urgency::New);
                return;
            }
            // Without the taint it waits no longer, whichever client removed it.
            this.end_wait(node);
            if !labels::reconcile(&node.facts).is_empty()
                && !this.parts.guard().clouds_of(node).is_empty()
            {
                this.queue.add(node.facts.name.clone(), Urgency::Change);
            }
            if change.before.is_none() && given_to(&node.facts, &this.parts.clouds).is_some() {
                this.queue.add(node.facts.name.clone(), Urgency::Refresh);
            }
        })
    }

    async fn handle(&self, name: String) -> Verdict {
        let Some(node) = self.parts.nodes.get(&name).filter(|node| !node.deleting) else {
            return Verdict::Done;
        };
        if self.is_behind(&node) {
            // Our own writes come back by the watch; the last of them has not arrived yet.
            return Verdict::AgainAfter(WATCH_LAG);
        }
        if let Some(why) = paused_by(&node.facts.annotations) {
            return self.pause(&node, &why);
        }
        self.resume(&node);
        if node.has_taint(UNINITIALIZED_TAINT) {
            self.initialise(&node).await
        } else {
            self.refresh(&node).await
        }
    }
}

#[async_trait]
impl Controller for NodeController {
    fn name(&self) -> ControllerName {
        ControllerName::CloudNode
    }

    async fn run(&self, stop: CancellationToken) {
        let workers = (&self.queue, self.settings.workers);
        let synced = self.parts.nodes.synced();
        let beside = || {
            let retry =
                after_each_replacement(&self.parts.clouds, || self.queue.retry_failed_now());
            futures::future::join3(self.list_periodically(), self.emit_delayed(), retry)
        };
        run(workers, &stop, synced, beside, |name, _| self.handle(name)).await;
        self.emit_all_delayed();
    }

    fn is_idle(&self) -> bool {
        self.parts.nodes.has_synced()
            && self.listed.load(Ordering::Relaxed) >= self.parts.clouds.len()
            && self.queue.is_idle()
    }

    fn report(&self) -> ControllerReport {
        let mut waiting_nodes = self.delayed();
        let waits = waiting_nodes.iter();
        let waits = waits.map(|it| format!("{}: {} (for {} s)", it.node, it.waits_for, it.seconds));
        let waits: Vec<_> = waits.chain(self.paused()).collect();
        let report = ControllerReport::new(self.queue.report(), waits);
        let most = ManagedResources::MOST_WAITING_NODES;
        let managed = ManagedResources {
            more_waiting_nodes: truncate(&mut waiting_nodes, most),
            waiting_nodes,
            ..ManagedResources::default()
        };
        ControllerReport { managed, ..report }.after_first_list(&self.parts.nodes)
    }
}
