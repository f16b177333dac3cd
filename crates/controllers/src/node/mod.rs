//! The node controller: initialises Nodes, and keeps their addresses and labels current.
//!
//! ```text
//! node event ─▶ queue ─▶ tainted?  ─ yes ─▶ find machine ─▶ plan ─▶ addresses, then the rest
//!                                  └ no ──▶ labels, and what the last sweep says ─▶ plan ─▶ write
//! sweep ──────▶ queue (only Nodes that differ from it)
//! ```

pub mod addresses;
mod find;
mod initialise;
pub mod labels;
pub mod plan;
mod predecessor;
mod refresh;
mod report;
mod sweep;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, EventSink};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clouds::{Cloud, ScopeGuard};
use crate::report::{ControllerReport, Holdings};
use crate::runtime::{
    Backoff, Cache, Listener, NodeWriter, Queue, QueueObserver, Records, Urgency, Verdict, work,
};
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;
use crate::{Controller, ControllerName};
use plan::Refresh;
use predecessor::Predecessors;
use report::{DelayedEvents, NodeRecord};

/// How soon to look again if the watch lags behind our own writes.
const WATCH_LAG: Duration = Duration::from_secs(1);

/// How the node controller works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// How many Nodes at once.
    pub workers: usize,
    /// Of them, how many at most are initialised already and only get new addresses.
    pub refreshers: usize,
    /// Pause between two sweeps.
    pub sweep_period: Duration,
    /// Which labels follow the machine.
    pub follow: Refresh,
    /// For the jitter of the sweeps.
    pub seed: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            // As many as keep an API server busy; more only make it slower.
            workers: 32,
            refreshers: 32,
            sweep_period: Duration::from_mins(10),
            follow: Refresh {
                instance_type: true,
                topology: false,
            },
            seed: 0,
        }
    }
}

/// Hears how long Nodes waited.
pub trait NodeObserver: Send + Sync {
    /// The taint was removed this long after the Node was created.
    fn taint_removed(&self, since_created: Duration);
    /// The Node was first synced this long after it was created.
    fn synced(&self, since_created: Duration);
}

/// Everything a [`NodeController`] is made of.
pub struct NodeParts {
    /// The Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// The clouds.
    pub clouds: Vec<Arc<Cloud>>,
    /// Writes them.
    pub writer: NodeWriter,
    /// Where events go; source `cloud-node-controller`.
    pub events: Arc<dyn EventSink>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Hears how long Nodes waited.
    pub observer: Arc<dyn NodeObserver>,
    /// Hears what happens in the queue.
    pub queue_observer: Arc<dyn QueueObserver>,
}

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
    /// When the last Node came that waits for its initialisation.
    last_arrival: Mutex<Option<Instant>>,
    /// Events that can wait.
    delayed_events: Mutex<DelayedEvents>,
    event_delayed: Notify,
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
        })
    }

    /// Files every change of a Node under its name; Nodes that wait for their initialisation first. What is
    /// no cloud's Node here is not filed.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            this.records.follow(change);
            if let Some(replaced) = change.replaced() {
                lock(&this.predecessors).note(&replaced.facts);
            }
            let gone = change.gone();
            if let Some(gone) = gone {
                this.queue.remove(&gone.facts.name);
            }
            let Some(node) = &change.after else {
                return;
            };
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
                && !this.guard().clouds_of(node).is_empty()
            {
                this.queue.add(node.facts.name.clone(), Urgency::Change);
            }
        })
    }

    fn guard(&self) -> ScopeGuard<'_> {
        ScopeGuard::new(&self.parts.nodes, &self.parts.clouds)
    }

    async fn handle(&self, name: String) -> Verdict {
        let Some(node) = self.parts.nodes.get(&name).filter(|node| !node.deleting) else {
            return Verdict::Done;
        };
        if self.is_behind(&node) {
            // Our own writes come back by the watch; the last of them has not arrived yet.
            return Verdict::AgainAfter(WATCH_LAG);
        }
        if node.has_taint(UNINITIALIZED_TAINT) {
            self.initialise(&node).await
        } else {
            self.refresh(&node).await
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[async_trait]
impl Controller for NodeController {
    fn name(&self) -> ControllerName {
        ControllerName::CloudNode
    }

    async fn run(&self, stop: CancellationToken) {
        let working = async {
            let synced = stop.run_until_cancelled(self.parts.nodes.synced()).await;
            if synced.is_none() {
                return;
            }
            let workers = work(
                &self.queue,
                self.settings.workers,
                &stop,
                |name, _failures| self.handle(name),
            );
            futures::join!(workers, self.sweep_until(&stop), self.emit_delayed(&stop));
        };
        futures::join!(working, stop.run_until_cancelled(self.sweep_ahead()));
    }

    fn report(&self) -> ControllerReport {
        let mut report = ControllerReport {
            queue: self.queue.report(),
            ..ControllerReport::default()
        };
        if !self.parts.nodes.has_synced() {
            report.waits_for.push("the first list of Nodes".to_owned());
        }
        let delayed = self.delayed().into_iter();
        let texts =
            delayed.map(|it| format!("{}: {} (for {} s)", it.node, it.waits_for, it.seconds));
        report.wait_for(texts.collect());
        report
    }

    fn holdings(&self) -> Holdings {
        self.hold()
    }
}
