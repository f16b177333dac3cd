//! The node IPAM controller: gives every Node its networks for Pods, one block of each cluster CIDR.
//!
//! A block belongs to a Node from the moment it is reserved until the Node is gone. What is in use is
//! read from the Nodes themselves at the start, so a restart needs no memory.

mod book;
mod cidr_set;
mod controller;
mod observer;
mod plan;
mod range;
mod runs;
mod settings;
mod write;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{Event, Problems, SharedEvents};
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::runtime::{
    Backoff, Cache, Listener, NodeWriter, Queue, QueueObserver, Urgency, Verdict, work,
};
use crate::view::{Change, NodeView};

use book::{Book, Misfit};
pub use observer::IpamObserver;
use plan::{Step, is_unmanaged, plan};
pub use range::{ClusterRange, RangeError};
pub use settings::IpamSettings;
use write::{Outcome, write};

/// The component under which events are to be reported.
pub const EVENT_SOURCE: &str = "cidrAllocator";
/// The name of the queue in metrics.
pub const QUEUE_NAME: &str = "cidrallocator_node";

/// As upstream's at first. Its longest is a quarter of an hour, which is long for a Node without a
/// network once the API server is well again.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(5),
    longest: Duration::from_mins(5),
};

/// What the controller works with.
pub struct IpamContext {
    /// All Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// Writes Nodes.
    pub writer: NodeWriter,
    /// Takes events, reported under [`EVENT_SOURCE`].
    pub events: SharedEvents,
    /// Hears about the queue, which is named [`QUEUE_NAME`].
    pub queue_observer: Arc<dyn QueueObserver>,
    /// Hears about the ranges.
    pub observer: Arc<dyn IpamObserver>,
}

/// Gives Nodes their networks.
pub struct IpamController {
    nodes: Arc<Cache<NodeView>>,
    writer: NodeWriter,
    events: SharedEvents,
    queue: Arc<Queue<String>>,
    desk: Mutex<Desk>,
    workers: usize,
}

struct Desk {
    book: Book,
    /// Nodes for which no block was left.
    waiting: BTreeSet<String>,
}

/// What to do about a Node, once everything that needs no API server is done.
enum Decision {
    Done,
    Write(Arc<NodeView>, Vec<IpNet>),
    Wait(Arc<NodeView>, IpNet),
}

impl IpamController {
    /// A controller that has not looked at any Node yet, or everything that is wrong with its settings.
    pub fn new(settings: &IpamSettings, context: IpamContext) -> Result<Self, Problems> {
        let ranges = settings.ranges()?;
        let book = Book::new(&ranges, &settings.service_cidrs, context.observer);
        Ok(Self {
            nodes: context.nodes,
            writer: context.writer,
            events: context.events,
            queue: Arc::new(Queue::new(BACKOFF, context.queue_observer)),
            desk: Mutex::new(Desk {
                book,
                waiting: BTreeSet::new(),
            }),
            workers: settings.workers,
        })
    }

    /// What has to hear of changed Nodes. To be registered before the watch starts.
    pub fn listener(&self) -> Listener<NodeView> {
        let queue = Arc::clone(&self.queue);
        Box::new(move |change| {
            if let Some((name, urgency)) = concerns(change) {
                queue.add(name, urgency);
            }
        })
    }

    /// Works until `stop`. Nothing is handed out before all Nodes have been seen.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = self.nodes.synced() => {}
        }
        self.take_stock();
        work(&self.queue, self.workers, &stop, |name, _failures| {
            self.sync(name)
        })
        .await;
    }

    /// Notes what all Nodes already have, and queues those that have nothing.
    fn take_stock(&self) {
        let nodes = self.nodes.all();
        for node in &nodes {
            if node.facts.pod_cidrs.is_empty() {
                self.queue.add(node.facts.name.clone(), Urgency::New);
            } else {
                self.settle(node);
            }
        }
        let room = self.desk().book.room();
        info!(nodes = nodes.len(), room, "noted the Pod networks in use");
    }

    async fn sync(&self, name: String) -> Verdict {
        let verdict = match self.decide(&name) {
            Decision::Done => Verdict::Done,
            Decision::Write(node, cidrs) => self.write(&node, &cidrs).await,
            Decision::Wait(node, cluster_cidr) => {
                warn!(node = name, %cluster_cidr, "no Pod network is left; the Node waits for one");
                self.tell_status(&node, "CIDRNotAvailable");
                // Only a person can add room, and a block that becomes free ends the wait at once.
                Verdict::NeedsPerson
            }
        };
        self.wake_waiting();
        verdict
    }

    fn decide(&self, name: &str) -> Decision {
        let node = self.nodes.get(name);
        self.desk().waiting.remove(name);
        loop {
            let mut desk = self.desk();
            let step = plan(name, node.as_deref(), &desk.book);
            debug!(node = name, ?step, "planned");
            match (step, &node) {
                (Step::Release, _) => desk.book.release(name),
                (Step::Reserve(blocks), Some(node)) => desk.book.reserve(&node.facts, &blocks),
                (Step::Occupy, Some(node)) => {
                    drop(desk);
                    self.settle(node);
                }
                (Step::Write(cidrs), Some(node)) => {
                    return Decision::Write(Arc::clone(node), cidrs);
                }
                (Step::Exhausted(cluster_cidr), Some(node)) => {
                    desk.waiting.insert(name.to_owned());
                    return Decision::Wait(Arc::clone(node), cluster_cidr);
                }
                _ => return Decision::Done,
            }
        }
    }

    async fn write(&self, node: &NodeView, cidrs: &[IpNet]) -> Verdict {
        let name = &node.facts.name;
        match write(&self.writer, node, cidrs).await {
            Outcome::Has(node) => {
                self.settle(&node);
                info!(node = name, cidrs = ?node.facts.pod_cidrs, "the Node has its Pod networks");
                Verdict::Done
            }
            // The watch will say so too, and that frees what was reserved.
            Outcome::Gone => Verdict::Failed,
            Outcome::Refused(error) => {
                warn!(node = name, %error, ?cidrs, "Pod networks not written");
                self.desk().book.give_up(name);
                self.tell_status(node, "CIDRAssignmentFailed");
                Verdict::Failed
            }
            Outcome::Unknown(error) => {
                // The same is written next time, so no other Node gets a block that this one may turn
                // out to have.
                warn!(node = name, %error, ?cidrs, "Pod networks perhaps not written");
                self.desk().book.doubt(name);
                self.tell_status(node, "CIDRAssignmentFailed");
                Verdict::Failed
            }
        }
    }

    /// Notes the networks that a Node has, and tells if they do not fit.
    ///
    /// Upstream ends the process here at the start, lest it hand out what it cannot account for. But
    /// every restart would find the same Node again, and all others would wait for a person meanwhile.
    /// What lies outside the ranges cannot be handed out anyway, and what lies in them is kept out of
    /// use, so it is enough to tell and leave that Node alone.
    fn settle(&self, node: &NodeView) {
        let misfits = self.desk().book.settle(&node.facts);
        for misfit in misfits {
            error!(node = node.facts.name, %misfit, "the Node's Pod networks do not fit the cluster");
            self.tell_misfit(node, &misfit);
        }
    }

    /// Queues as many waiting Nodes as there is room for. It is called after all work, so that a block
    /// which one of them leaves over is offered to the next.
    fn wake_waiting(&self) {
        let mut desk = self.desk();
        for _ in 0..desk.book.room() {
            let Some(name) = desk.waiting.pop_first() else {
                return;
            };
            self.queue.add(name, Urgency::New);
        }
    }

    fn tell_status(&self, node: &NodeView, reason: &'static str) {
        let message = format!("Node {} status is now: {reason}", node.facts.name);
        self.events
            .emit(Event::normal(&node.facts, reason, message));
    }

    fn tell_misfit(&self, node: &NodeView, misfit: &Misfit) {
        let message =
            format!("{misfit}; it cannot be changed, only the Node or the cluster CIDR can");
        self.events
            .emit(Event::warning(&node.facts, misfit.reason(), message));
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Node that a change is about, if it matters here: heartbeats do not.
fn concerns(change: &Change<NodeView>) -> Option<(String, Urgency)> {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let is_other = before.facts.uid != after.facts.uid;
            let has_other = before.facts.pod_cidrs != after.facts.pod_cidrs;
            let is_freed = is_unmanaged(&before.facts) && !is_unmanaged(&after.facts);
            (is_other || has_other || is_freed).then(|| (after.facts.name.clone(), Urgency::Change))
        }
        (None, Some(new)) => Some((new.facts.name.clone(), Urgency::New)),
        (Some(gone), None) => Some((gone.facts.name.clone(), Urgency::Change)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
