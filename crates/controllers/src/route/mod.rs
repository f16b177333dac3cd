//! The route controller: a route in the cloud for every network of every Node, and
//! `NetworkUnavailable` on the Nodes.
//!
//! ```text
//! node event ─▶ agenda ─▶ queue (one key per cloud) ─▶ list ─▶ plan ─▶ apply, all in one call
//! time ───────▶                                                  │       │
//!                         look again ◀─ suspects, failures ◀─────┴───────┴─▶ conditions, events
//! ```

mod agenda;
mod condition;
mod hold;
mod networks;
mod pass;
pub mod plan;
mod suspicion;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, EventSink, Patience};
use ipnet::IpNet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use agenda::Trigger;
use agenda::{Agenda, GAP};
pub use condition::Network;
use hold::Seen;
use suspicion::Suspicions;

use crate::clouds::{Cloud, owner_of};
use crate::report::{ControllerReport, Holdings};
use crate::runtime::{
    Backoff, Cache, Listener, NodeWriter, Queue, QueueObserver, Unobserved, Urgency, Verdict,
    jittered, work,
};
use crate::view::{Change, NodeView};
use crate::{Controller, ControllerName};

/// The component under which events are to be reported.
pub const EVENT_SOURCE: &str = "route_controller";
/// The name of the queue in metrics.
pub const QUEUE_NAME: &str = "Routes";

/// After a failure. A route that only a person can help is tried again at the longest pause.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_mins(10),
};

/// How the route controller works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSettings {
    /// `--cluster-cidr`: nothing outside is deleted.
    pub cluster_cidrs: Vec<IpNet>,
    /// How often all routes are looked at although no Node has changed.
    pub resync: Duration,
    /// For the jitter of these looks.
    pub seed: u64,
}

impl RouteSettings {
    /// A look every hour finds what was changed behind our back. Everything else comes by the watch.
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

/// What came of a look at a cloud's routes.
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

/// Hears what came of every look.
pub trait RouteObserver: Send + Sync {
    /// A look at a cloud's routes has ended.
    fn looked(&self, outcome: Outcome, trigger: Trigger);
}

impl RouteObserver for Unobserved {
    fn looked(&self, _outcome: Outcome, _trigger: Trigger) {}
}

/// Everything a [`RouteController`] is made of.
pub struct RouteParts {
    /// The Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// All clouds, also those without routes: whose Node it is depends on all of them.
    pub clouds: Vec<Arc<Cloud>>,
    /// Writes Nodes.
    pub writer: NodeWriter,
    /// Where events go, reported under [`EVENT_SOURCE`].
    pub events: Arc<dyn EventSink>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Hears what came of every look.
    pub observer: Arc<dyn RouteObserver>,
    /// Hears about the queue, which is named [`QUEUE_NAME`].
    pub queue_observer: Arc<dyn QueueObserver>,
}

/// The controller.
pub struct RouteController {
    parts: RouteParts,
    settings: RouteSettings,
    /// Keys are places in `tables`.
    queue: Arc<Queue<usize>>,
    tables: Vec<Table>,
    /// With Nodes that have no machine any more.
    patience: Patience,
}

/// The routes of one cloud.
struct Table {
    cloud: Arc<Cloud>,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    agenda: Agenda,
    suspicions: Suspicions,
    /// What the last look showed.
    seen: Seen,
}

impl Table {
    fn state(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            patience: Patience::with_missing_machines(),
            parts,
            settings,
        })
    }

    /// What has to hear of changed Nodes. To be registered before the watch starts.
    pub fn listener(self: &Arc<Self>) -> Listener<NodeView> {
        let this = Arc::clone(self);
        Box::new(move |change| {
            for (index, table) in this.tables.iter().enumerate() {
                let is_news = matters(change, &table.cloud, &this.parts.clouds);
                if is_news && table.state().agenda.note_news(Instant::now()) {
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
        let waits = table.state().agenda.wait(now);
        if let Some(wait) = waits {
            return Verdict::AgainAfter(wait);
        }
        let gap = GAP.min(self.settings.resync);
        let trigger = table.state().agenda.begin(now, gap);
        let Some(passed) = self.pass(table, failures).await else {
            return Verdict::Done;
        };
        self.parts.observer.looked(passed.outcome, trigger);
        passed.verdict
    }

    /// Looks at every cloud's routes now and then until `stop`, beginning now.
    async fn keep_time_until(&self, stop: &CancellationToken) {
        let Self {
            queue, settings, ..
        } = self;
        let loops = self
            .tables
            .iter()
            .enumerate()
            .map(|(index, table)| async move {
                for round in 0_u64.. {
                    table.state().agenda.note_time();
                    queue.add(index, Urgency::Refresh);
                    let pause = jittered(settings.resync, settings.seed, index, round);
                    tokio::time::sleep(pause).await;
                }
            });
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            _ = futures::future::join_all(loops) => {}
        }
    }
}

/// Whether a change of a Node may ask for other routes of this cloud. Heartbeats do not, nor does
/// anything about a Node that has no network yet.
fn matters(change: &Change<NodeView>, cloud: &Cloud, clouds: &[Arc<Cloud>]) -> bool {
    let relevant = |node: &&Arc<NodeView>| {
        !node.facts.pod_cidrs.is_empty() && owner_of(&node.facts, clouds).is(cloud)
    };
    let before = change.before.as_ref().filter(relevant);
    let after = change.after.as_ref().filter(relevant);
    match (before, after) {
        (Some(before), Some(after)) => {
            let (before, after) = (&before.facts, &after.facts);
            before.uid != after.uid
                || before.pod_cidrs != after.pod_cidrs
                || before.addresses != after.addresses
                || before.provider_id != after.provider_id
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
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = self.parts.nodes.synced() => {}
        }
        let workers = work(&self.queue, self.tables.len(), &stop, |index, failures| {
            self.handle(index, failures)
        });
        futures::join!(workers, self.keep_time_until(&stop));
    }

    fn report(&self) -> ControllerReport {
        let mut report = ControllerReport {
            queue: self.queue.report(),
            ..ControllerReport::default()
        };
        let complaints = self.tables.iter().filter_map(|table| {
            let complaint = table.state().seen.complaint.clone()?;
            Some(format!("cloud {}: {complaint}", table.cloud.name))
        });
        report.wait_for(complaints.collect());
        report
    }

    fn holdings(&self) -> Holdings {
        let mut all = Holdings::default();
        for table in &self.tables {
            all.extend(table.state().seen.holdings.clone());
        }
        all
    }
}

#[cfg(test)]
mod tests;
