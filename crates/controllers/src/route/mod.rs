//! The route controller: a route in the cloud for every Pod CIDR of every Node, and `NetworkUnavailable` on the Nodes.
//!
//! ```text
//! node event ─▶ schedule ─▶ queue (one key per cloud) ─▶ list ─▶ plan ─▶ apply, all in one call
//! resync ─────▶                                                    │       │
//!                              requeue ◀─ suspects, failures ◀─────┴───────┴─▶ conditions, events
//! ```

mod condition;
mod networks;
pub mod plan;
pub(crate) mod reconcile;
mod schedule;
mod suspects;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::WarningDelay;
use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use condition::Network;
pub use reconcile::facts_in;
pub use schedule::Trigger;
use schedule::{MIN_INTERVAL, Schedule};
use suspects::SuspectRoutes;

use crate::clouds::{Cloud, after_each_replacement, owner_of};
use crate::paused::paused_by;
use crate::report::routes::RouteSnapshot;
use crate::report::{ControllerReport, ManagedResources};
use crate::runtime::{Backoff, Listener, Queue, Unobserved, Urgency, Verdict, jittered, run};
use crate::view::{Change, NodeView};
use crate::{Controller, ControllerName, ControllerParts};

/// The component under which events are to be reported.
pub const EVENT_SOURCE: &str = "route_controller";
/// The name of the queue in metrics.
pub const QUEUE_NAME: &str = "Routes";

/// After a failure. What needs a change by the user is tried again at the longest pause.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_mins(10),
};

/// How the route controller works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSettings {
    /// `--cluster-cidr`: nothing outside is deleted.
    pub cluster_cidrs: Vec<IpNet>,
    /// How often all routes are reconciled although no Node has changed.
    pub resync: Duration,
    /// For the jitter of the resync.
    pub seed: u64,
}

impl RouteSettings {
    /// Finds what another client has changed in the cloud. Everything else comes by the watch.
    pub const RESYNC: Duration = Duration::from_hours(1);

    /// Settings for these cluster CIDRs.
    pub const fn new(cluster_cidrs: Vec<IpNet>) -> Self {
        Self {
            cluster_cidrs,
            resync: Self::RESYNC,
            seed: 0,
        }
    }
}

/// What became of a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Routes were changed, as planned.
    Changed,
    /// Everything was as it should be.
    Unchanged,
    /// The routes could not be listed, or not all of what was planned was done.
    Failed,
}

impl Outcome {
    /// As upstream's metric has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "noop",
            Self::Failed => "error",
        }
    }
}

/// What happens to routes. The manager turns it into metrics.
pub trait RouteObserver: Send + Sync {
    /// The routes of a cloud were reconciled.
    fn reconciled(&self, _outcome: Outcome, _trigger: Trigger) {}
}

impl RouteObserver for Unobserved {}

/// Everything a [`RouteController`] is made of.
/// All clouds are among it, also those without routes: whose Node it is depends on all of them. Events are reported
/// under [`EVENT_SOURCE`], and the queue is named [`QUEUE_NAME`].
pub type RouteParts = ControllerParts<dyn RouteObserver>;

/// The controller.
pub struct RouteController {
    parts: RouteParts,
    settings: RouteSettings,
    /// Keys are indexes of `tables`.
    queue: Arc<Queue<usize>>,
    tables: Vec<Table>,
    /// With Nodes that have no instance any more.
    patience: WarningDelay,
}

/// The routes of one cloud.
struct Table {
    cloud: Arc<Cloud>,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    schedule: Schedule,
    suspects: SuspectRoutes,
    /// What the last reconciliation left, for reports.
    last: RouteSnapshot,
}

impl RouteController {
    /// A controller that has not started. Clouds without routes are left alone.
    pub fn new(parts: RouteParts, settings: RouteSettings) -> Arc<Self> {
        let with_routes = parts.clouds.iter();
        let with_routes = with_routes.filter(|cloud| cloud.provider().routes().is_some());
        let tables = with_routes.map(|cloud| Table {
            cloud: Arc::clone(cloud),
            state: Mutex::default(),
        });
        Arc::new(Self {
            queue: Arc::new(Queue::new(BACKOFF, Arc::clone(&parts.queue_observer))),
            tables: tables.collect(),
            patience: WarningDelay::for_missing_instances(),
            parts,
            settings,
        })
    }

    /// Enqueues the clouds whose routes a changed Node may change.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            for (index, table) in this.tables.iter().enumerate() {
                let mut state = table.state.lock();
                let gone = change.gone().map(|gone| gone.facts.name.as_str());
                let is_relevant = is_relevant(change, &table.cloud, &this.parts.clouds)
                    || gone.is_some_and(|gone| state.last.plan.has_conflict_with(gone));
                if is_relevant && state.schedule.note_change(Instant::now()) {
                    this.queue.add(index, Urgency::Change);
                }
            }
        })
    }

    async fn handle(&self, index: usize, failures: u32) -> Verdict {
        let Some(table) = self.tables.get(index) else {
            return Verdict::Done;
        };
        let now = Instant::now();
        let wait = table.state.lock().schedule.wait(now);
        if let Some(wait) = wait {
            return Verdict::AgainAfter(wait);
        }
        let min_interval = MIN_INTERVAL.min(self.settings.resync);
        let trigger = table.state.lock().schedule.begin(now, min_interval);
        let Some((outcome, verdict)) = self.reconcile(table, failures).await else {
            return Verdict::Done;
        };
        self.parts.observer.reconciled(outcome, trigger);
        verdict
    }

    /// A new provider may succeed where the one before it failed, and was not to be asked for a while.
    fn retry_failed_now(&self) {
        for table in &self.tables {
            table.state.lock().schedule.end_wait();
        }
        self.queue.retry_failed_now();
    }

    /// Enqueues every cloud now, and then once per resync period.
    async fn resync(&self) {
        let RouteSettings { resync, seed, .. } = self.settings;
        let tables = self.tables.iter().enumerate();
        let loops = tables.map(|(index, table)| async move {
            for round in 0_u64.. {
                table.state.lock().schedule.note_resync();
                self.queue.add(index, Urgency::Refresh);
                tokio::time::sleep(jittered(resync, seed, index, round)).await;
            }
        });
        futures::future::join_all(loops).await;
    }
}

/// Whether a change of a Node may change routes of this cloud. Heartbeats do not, nor does anything about a Node
/// without a Pod CIDR.
fn is_relevant(change: &Change<NodeView>, cloud: &Cloud, clouds: &[Arc<Cloud>]) -> bool {
    let has_routes = |node: &&Arc<NodeView>| {
        !node.facts.pod_cidrs.is_empty() && owner_of(&node.facts, clouds).is(cloud)
    };
    let before = change.before.as_ref().filter(has_routes);
    let after = change.after.as_ref().filter(has_routes);
    match (before, after) {
        (Some(before), Some(after)) => {
            let (before, after) = (&before.facts, &after.facts);
            before.uid != after.uid
                || before.pod_cidrs != after.pod_cidrs
                || before.addresses != after.addresses
                || before.provider_id != after.provider_id
                || paused_by(&before.annotations) != paused_by(&after.annotations)
        }
        (None, None) => false,
        _ => true,
    }
}

#[async_trait]
impl Controller for RouteController {
    fn name(&self) -> ControllerName {
        ControllerName::Route
    }

    async fn run(&self, stop: CancellationToken) {
        let workers = (&self.queue, self.tables.len());
        let synced = self.parts.nodes.synced();
        let handle = |index, failures| self.handle(index, failures);
        let beside = || {
            let retry = after_each_replacement(&self.parts.clouds, || self.retry_failed_now());
            futures::future::join(self.resync(), retry)
        };
        run(workers, &stop, synced, beside, handle).await;
    }

    fn is_idle(&self) -> bool {
        let mut tables = self.tables.iter();
        self.parts.nodes.has_synced()
            && tables.all(|table| table.state.lock().schedule.is_idle())
            && self.queue.is_idle()
    }

    fn report(&self) -> ControllerReport {
        let (mut managed, mut errors) = (ManagedResources::default(), Vec::new());
        for table in &self.tables {
            let (cloud, last) = (&table.cloud.name, &table.state.lock().last);
            managed.extend(last.report(cloud));
            let error = last.error.iter();
            errors.extend(error.map(|error| format!("cloud {cloud}: {error}")));
        }
        let report = ControllerReport::new(self.queue.report(), errors);
        ControllerReport { managed, ..report }
    }
}

#[cfg(test)]
mod tests;
