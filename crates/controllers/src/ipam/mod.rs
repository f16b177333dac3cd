//! The node IPAM controller: allocates the Pod CIDRs of every Node, one block of each cluster CIDR.
//!
//! A block belongs to a Node from the moment it is reserved until the Node is gone. At the start, the controller reads
//! the allocated blocks from the Nodes, so it needs no storage of its own.

mod allocations;
mod cidr_set;
mod settings;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Event, Problems};
use ipnet::IpNet;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::log_messages::{
    CIDR_RANGE_EXHAUSTED, INVALID_POD_CIDR, POD_CIDR_SET, POD_CIDR_UPDATE_FAILED,
    POD_CIDR_UPDATE_UNCONFIRMED, POD_CIDRS_LOADED,
};
use crate::report::ControllerReport;
use crate::runtime::{Backoff, Listener, Queue, Urgency, Verdict, WriteError, run};
use crate::view::{Change, NodeView};
use crate::{Controller, ControllerName, ControllerParts};

pub use allocations::IpamObserver;
use allocations::{Allocations, PodCidrProblem, Step, is_left_alone};
pub use settings::IpamSettings;

/// The component under which Events are reported.
pub const EVENT_SOURCE: &str = "cidrAllocator";
/// The name of the queue in metrics.
pub const QUEUE_NAME: &str = "cidrallocator_node";

/// As upstream's at first. Its longest is a quarter of an hour, which is long for a Node without a network once the
/// API server is well again.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(5),
    longest: Duration::from_mins(5),
};

/// How many Nodes are worked on at once, as upstream.
const WORKERS: usize = 30;

/// How often a write is tried before the Node is read, as upstream.
const WRITE_TRIES: usize = 3;

/// Everything an [`IpamController`] is made of.
/// Events are reported under [`EVENT_SOURCE`], and the queue is named [`QUEUE_NAME`].
pub type IpamParts = ControllerParts<dyn IpamObserver>;

/// Allocates the Pod networks of Nodes.
pub struct IpamController {
    parts: IpamParts,
    queue: Arc<Queue<String>>,
    state: Mutex<IpamState>,
}

struct IpamState {
    allocations: Allocations,
    /// Nodes for which no block was free.
    waiting: BTreeSet<String>,
}

/// What became of a write.
#[derive(Debug)]
enum WriteOutcome {
    /// The Node has networks now: these, or those that another client wrote first.
    Written(Box<NodeView>),
    /// There is no such Node any more.
    Gone,
    /// Certainly not written.
    Refused(WriteError),
    /// Perhaps written, perhaps still on its way.
    Unconfirmed(WriteError),
}

impl IpamController {
    /// A controller that has not seen any Node yet, or everything that is wrong with its settings.
    pub fn new(settings: &IpamSettings, parts: IpamParts) -> Result<Self, Problems> {
        let sets = settings.cidr_sets()?;
        let observer = Arc::clone(&parts.observer);
        Ok(Self {
            queue: Arc::new(Queue::new(BACKOFF, Arc::clone(&parts.queue_observer))),
            state: Mutex::new(IpamState {
                allocations: Allocations::new(sets, &settings.service_cidrs, observer),
                waiting: BTreeSet::new(),
            }),
            parts,
        })
    }

    /// Enqueues changed Nodes. To be registered before the watch starts.
    pub fn listener(&self) -> Listener<NodeView> {
        let queue = Arc::clone(&self.queue);
        Box::new(move |change| {
            if let Some((name, urgency)) = concerns(change) {
                queue.add(name, urgency);
            }
        })
    }

    /// Notes the networks that Nodes already have, and enqueues those that have none.
    fn load_existing(&self) {
        let nodes = self.parts.nodes.all();
        for node in &nodes {
            if node.facts.pod_cidrs.is_empty() {
                self.queue.add(node.facts.name.clone(), Urgency::New);
            } else {
                let problems = self.state.lock().allocations.occupy(&node.facts);
                self.report_problems(node, problems);
            }
        }
        let free = self.state.lock().allocations.free();
        info!(nodes = nodes.len(), free, "{POD_CIDRS_LOADED}");
    }

    async fn sync(&self, name: String) -> Verdict {
        let node = self.parts.nodes.get(&name);
        let step = {
            let mut state = self.state.lock();
            state.waiting.remove(&name);
            let step = state.allocations.sync(&name, node.as_deref());
            if matches!(step, Step::Exhausted(_)) {
                state.waiting.insert(name.clone());
            }
            step
        };
        debug!(node = name, ?step, "planned");
        let verdict = match (step, node) {
            (Step::Write(cidrs), Some(node)) => self.write(&node, &cidrs).await,
            (Step::Exhausted(cluster_cidr), Some(node)) => {
                warn!(node = name, %cluster_cidr, "{CIDR_RANGE_EXHAUSTED}");
                self.record_status(&node, "CIDRNotAvailable");
                // Only a person can add blocks, and one that is released ends the wait at once.
                Verdict::UserAction
            }
            (Step::Done(problems), Some(node)) => {
                self.report_problems(&node, problems);
                Verdict::Done
            }
            (_, None) => Verdict::Done,
        };
        self.enqueue_waiting();
        verdict
    }

    async fn write(&self, node: &NodeView, cidrs: &[IpNet]) -> Verdict {
        let name = &node.facts.name;
        match self.write_pod_cidrs(node, cidrs).await {
            WriteOutcome::Written(written) => {
                let problems = self.state.lock().allocations.occupy(&written.facts);
                self.report_problems(&written, problems);
                info!(node = name, pod_cidrs = ?written.facts.pod_cidrs, "{POD_CIDR_SET}");
                return Verdict::Done;
            }
            // The watch will show it too, and that frees what was reserved.
            WriteOutcome::Gone => return Verdict::Failed,
            WriteOutcome::Refused(err) => {
                warn!(node = name, %err, ?cidrs, "{POD_CIDR_UPDATE_FAILED}");
                self.state.lock().allocations.release_reserved(name);
            }
            WriteOutcome::Unconfirmed(err) => {
                // The same is written next time, so no other Node gets a block that this one may turn out to have.
                warn!(node = name, %err, ?cidrs, "{POD_CIDR_UPDATE_UNCONFIRMED}");
                self.state.lock().allocations.set_unconfirmed(name);
            }
        }
        self.record_status(node, "CIDRAssignmentFailed");
        Verdict::Failed
    }

    /// Writes the networks of a Node that has none, and finds out what became of it.
    ///
    /// The API server never changes networks that are set, so writing the same again is harmless, and what another
    /// client wrote first stays.
    async fn write_pod_cidrs(&self, node: &NodeView, cidrs: &[IpNet]) -> WriteOutcome {
        let mut may_have_arrived = false;
        let mut tries_left = WRITE_TRIES;
        let error = loop {
            tries_left -= 1;
            let error = match self.parts.writer.write_pod_cidrs(node, cidrs).await {
                Ok(written) => return WriteOutcome::Written(Box::new(written)),
                Err(WriteError::Gone) => return WriteOutcome::Gone,
                Err(error) => error,
            };
            let is_unconfirmed = is_unconfirmed(&error);
            may_have_arrived |= is_unconfirmed;
            let is_refused = !is_unconfirmed && !matches!(error, WriteError::Conflict);
            if tries_left == 0 || is_refused {
                break error;
            }
        };
        match self.parts.writer.read(&node.facts.name).await {
            Ok(found) if found.facts.uid != node.facts.uid => WriteOutcome::Gone,
            Ok(found) if !found.facts.pod_cidrs.is_empty() => {
                WriteOutcome::Written(Box::new(found))
            }
            Err(WriteError::Gone) => WriteOutcome::Gone,
            // A request that timed out here may be carried out after this very read.
            _ if may_have_arrived => WriteOutcome::Unconfirmed(error),
            _ => WriteOutcome::Refused(error),
        }
    }

    /// Enqueues as many waiting Nodes as there are free blocks. It is called after every sync, so that a block which
    /// one of them does not need is offered to the next.
    fn enqueue_waiting(&self) {
        let mut state = self.state.lock();
        for _ in 0..state.allocations.free() {
            let Some(name) = state.waiting.pop_first() else {
                return;
            };
            self.queue.add(name, Urgency::New);
        }
    }

    fn record_status(&self, node: &NodeView, reason: &'static str) {
        let message = format!("Node {} status is now: {reason}", node.facts.name);
        self.parts
            .events
            .emit(Event::normal(&node.facts, reason, message));
    }

    /// Upstream ends the process here at the start, lest it hand out what it cannot account for. But every restart
    /// would find the same Node again, and all others would wait for a person meanwhile. What lies outside the cluster
    /// CIDRs cannot be allocated anyway, and what lies in them is allocated, so an Event is enough.
    fn report_problems(&self, node: &NodeView, problems: Vec<PodCidrProblem>) {
        for PodCidrProblem { reason, message } in problems {
            error!(node = node.facts.name, err = message, "{INVALID_POD_CIDR}");
            let message = format!(
                "{message}; a Pod CIDR cannot be changed: recreate the Node, or correct --cluster-cidr"
            );
            self.parts
                .events
                .emit(Event::warning(&node.facts, reason, message));
        }
    }
}

#[async_trait]
impl Controller for IpamController {
    fn name(&self) -> ControllerName {
        ControllerName::NodeIpam
    }

    /// Nothing is allocated before all Nodes have been seen.
    async fn run(&self, stop: CancellationToken) {
        let workers = (&self.queue, WORKERS);
        let synced = async {
            self.parts.nodes.synced().await;
            self.load_existing();
        };
        let beside = || std::future::ready(());
        run(workers, &stop, synced, beside, |name, _| self.sync(name)).await;
    }

    fn is_idle(&self) -> bool {
        self.parts.nodes.has_synced() && self.queue.is_idle()
    }

    fn report(&self) -> ControllerReport {
        let waiting = self.state.lock().waiting.clone().into_iter();
        let waiting = waiting.map(|node| format!("{node}: a free Pod network"));
        ControllerReport::new(self.queue.report(), waiting)
    }
}

/// Whether the API server may have carried out a write that failed. A refusal says that it did not; a timeout, a
/// broken connection or an internal error says nothing.
fn is_unconfirmed(error: &WriteError) -> bool {
    match error {
        WriteError::Conflict | WriteError::Gone => false,
        WriteError::Api(kube::Error::Api(status)) => status.code >= 500 || status.code == 408,
        WriteError::Api(_) => true,
    }
}

/// The Node that a change is about, if it matters here: heartbeats do not.
fn concerns(change: &Change<NodeView>) -> Option<(String, Urgency)> {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let is_recreated = before.facts.uid != after.facts.uid;
            let has_other_cidrs = before.facts.pod_cidrs != after.facts.pod_cidrs;
            let is_managed_now = is_left_alone(&before.facts) && !is_left_alone(&after.facts);
            (is_recreated || has_other_cidrs || is_managed_now)
                .then(|| (after.facts.name.clone(), Urgency::Change))
        }
        (None, Some(new)) => Some((new.facts.name.clone(), Urgency::New)),
        (Some(gone), None) => Some((gone.facts.name.clone(), Urgency::Change)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
