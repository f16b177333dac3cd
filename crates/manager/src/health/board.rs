//! What this process does right now, for `/status`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use cloudkeel_controllers::Controller;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::report::{ControllerReport, DeletionReport, Holdings};
use cloudkeel_controllers::runtime::{Cache, RecentEvent, RecentEvents};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// Knows the controllers and clouds of this process. Empty while it does not lead.
#[derive(Default)]
pub struct StatusBoard {
    posted: RwLock<Posted>,
}

#[derive(Default)]
struct Posted {
    leader: Option<Box<dyn Fn() -> LeaderStatus + Send + Sync>>,
    controllers: BTreeMap<&'static str, (Arc<dyn Controller>, bool)>,
    clouds: Vec<Arc<Cloud>>,
    watched: Watched,
    events: Option<Arc<RecentEvents>>,
}

/// What the leader sees of the cluster. Empty while it does not lead.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    pub(crate) nodes: Option<Arc<Cache<NodeView>>>,
    pub(crate) services: Option<Arc<Cache<ServiceView>>>,
}

/// Who leads, as the election of this process sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderStatus {
    /// The identity in the lease; `None` if there is no leader, as far as is known.
    pub holder: Option<String>,
    /// The lease; `None` without leader election.
    pub lease: Option<String>,
    /// Why the lease could not be read or taken.
    pub error: Option<String>,
}

/// Everything that is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of this program.
    pub(crate) version: &'static str,
    /// Who leads.
    pub(crate) leader: LeaderStatus,
    /// Whether controllers run here.
    pub leading: bool,
    pub(crate) controllers: Vec<ControllerStatus>,
    pub(crate) clouds: Vec<CloudStatus>,
    /// What the controllers keep in the clouds, as far as they know without asking them.
    #[serde(flatten)]
    pub(crate) holdings: Holdings,
    /// The latest that was told to the cluster, newest first.
    pub(crate) events: Vec<RecentEvent>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ControllerStatus {
    pub(crate) name: &'static str,
    pub(crate) running: bool,
    #[serde(flatten)]
    pub(crate) report: ControllerReport,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CloudStatus {
    pub(crate) name: String,
    pub(crate) provider: String,
    pub(crate) last_sweep: Option<SweepStatus>,
    pub(crate) last_failure: Option<FailureStatus>,
    pub(crate) deletions: Option<DeletionReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SweepStatus {
    pub(crate) at: Timestamp,
    pub(crate) machines: usize,
    scope: String,
    /// Parts of the cloud that could not be seen.
    blind_spots: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureStatus {
    pub(crate) at: Timestamp,
    pub(crate) error: String,
}

impl StatusBoard {
    /// Who leads is asked of this from now on.
    pub fn follow_election(&self, leader: impl Fn() -> LeaderStatus + Send + Sync + 'static) {
        self.write().leader = Some(Box::new(leader));
    }

    /// These clouds are served from now on.
    pub fn serve(&self, clouds: &[Arc<Cloud>]) {
        self.write().clouds = clouds.to_vec();
    }

    /// The cluster is seen by these from now on. Under a second lease, what only the first one watches stays.
    pub(crate) fn watch(&self, watched: Watched) {
        let mut posted = self.write();
        let before = std::mem::take(&mut posted.watched);
        posted.watched = Watched {
            nodes: watched.nodes.or(before.nodes),
            services: watched.services.or(before.services),
        };
    }

    /// What is told to the cluster is remembered here from now on.
    pub(crate) fn hear(&self, events: &Arc<RecentEvents>) {
        self.write().events = Some(Arc::clone(events));
    }

    /// What is seen of the cluster.
    pub(crate) fn watched(&self) -> Watched {
        let posted = self.posted.read().unwrap_or_else(PoisonError::into_inner);
        posted.watched.clone()
    }

    /// The clouds that are served.
    pub(crate) fn clouds(&self) -> Vec<Arc<Cloud>> {
        let posted = self.posted.read().unwrap_or_else(PoisonError::into_inner);
        posted.clouds.clone()
    }

    /// A controller runs, or has stopped.
    pub fn set(&self, controller: &Arc<dyn Controller>, running: bool) {
        let name = controller.name().canonical();
        let posted = (Arc::clone(controller), running);
        self.write().controllers.insert(name, posted);
    }

    /// How everything stands.
    pub fn read(&self) -> Status {
        let posted = self.posted.read().unwrap_or_else(PoisonError::into_inner);
        let mut controllers = Vec::new();
        let mut deletions = BTreeMap::new();
        let mut holdings = Holdings::default();
        for (name, (controller, running)) in &posted.controllers {
            let mut report = controller.report();
            holdings.extend(controller.holdings());
            for of_cloud in std::mem::take(&mut report.deletions) {
                deletions.insert(of_cloud.cloud.clone(), of_cloud);
            }
            controllers.push(ControllerStatus {
                name,
                running: *running,
                report,
            });
        }
        let clouds = posted.clouds.iter();
        let leader = posted.leader.as_ref();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            leader: leader.map(|leader| leader()).unwrap_or_default(),
            leading: controllers.iter().any(|controller| controller.running),
            clouds: clouds
                .map(|cloud| CloudStatus::of(cloud, deletions.remove(&cloud.name)))
                .collect(),
            controllers,
            holdings,
            events: posted
                .events
                .as_ref()
                .map(|it| it.all())
                .unwrap_or_default(),
        }
    }

    /// The clouds whose deletions are stopped. Anybody may ask, so it does not say why.
    pub fn stopped(&self) -> Vec<String> {
        let posted = self.posted.read().unwrap_or_else(PoisonError::into_inner);
        let controllers = posted.controllers.values();
        let reports = controllers.flat_map(|(controller, _)| controller.report().deletions);
        let stopped = reports.filter(|report| report.stopped.is_some());
        stopped.map(|report| report.cloud).collect()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Posted> {
        self.posted.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CloudStatus {
    fn of(cloud: &Cloud, deletions: Option<DeletionReport>) -> Self {
        let swept = cloud.inventory.latest();
        let failure = cloud.inventory.failure();
        Self {
            name: cloud.name.clone(),
            provider: cloud.provider().name().to_owned(),
            last_sweep: swept.map(|snapshot| SweepStatus {
                at: snapshot.sweep.taken(),
                machines: snapshot.sweep.instances().len(),
                scope: snapshot.sweep.scope().to_string(),
                blind_spots: snapshot
                    .sweep
                    .blind_spots()
                    .iter()
                    .map(|spot| format!("{}: {}", spot.part, spot.error))
                    .collect(),
            }),
            last_failure: failure.map(|(ago, error)| FailureStatus {
                at: before(cloud.inventory.clock().now(), ago),
                error: error.to_string(),
            }),
            deletions,
        }
    }
}

fn before(now: Timestamp, ago: std::time::Duration) -> Timestamp {
    let ago = SignedDuration::try_from(ago).unwrap_or_default();
    now.checked_sub(ago).unwrap_or(now)
}

#[cfg(test)]
mod tests;
