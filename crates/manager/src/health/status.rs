//! The status of this process, for `/status`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use cloudkeel_api::ErrorKind;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::report::{ControllerReport, DeletionReport, ManagedResources};
use cloudkeel_controllers::runtime::{Cache, RecentEvent, RecentEvents};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use cloudkeel_controllers::{Controller, ControllerName};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::dry_run::{DryRunReport, Recorder};
use crate::panics::{self, PanicReport};

/// The controllers and clouds of this process. There are no controllers while it does not lead.
#[derive(Default)]
pub struct StatusReport {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    leader: Option<Box<dyn Fn() -> LeaderStatus + Send + Sync>>,
    controllers: BTreeMap<&'static str, (Arc<dyn Controller>, bool)>,
    clouds: Vec<Arc<Cloud>>,
    watched: Watched,
    events: Option<Arc<RecentEvents>>,
    dry_run: Option<Arc<Recorder>>,
}

/// The caches of the leader. Empty while it does not lead.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    pub(crate) nodes: Option<Arc<Cache<NodeView>>>,
    pub(crate) services: Option<Arc<Cache<ServiceView>>>,
}

/// The leader, as the election of this process sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderStatus {
    /// The identity in the lease; `None` if no leader is known.
    pub holder: Option<String>,
    /// The lease; `None` without leader election.
    pub lease: Option<String>,
    /// Why the lease could not be read or acquired.
    pub error: Option<String>,
}

/// The content of `/status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of this program.
    pub(crate) version: &'static str,
    /// The leader.
    pub(crate) leader: LeaderStatus,
    /// Whether controllers run here.
    pub leading: bool,
    pub(crate) controllers: Vec<ControllerStatus>,
    pub(crate) clouds: Vec<CloudStatus>,
    /// What the controllers manage in the clouds, as far as they know without asking.
    #[serde(flatten)]
    pub(crate) managed: ManagedResources,
    /// The latest Events, newest first.
    pub(crate) events: Vec<RecentEvent>,
    /// The panics of this process, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) panics: Option<PanicReport>,
    /// With `--dry-run`: what would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dry_run: Option<DryRunReport>,
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
    /// Why its provider could not be built since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unavailable: Option<UnavailableStatus>,
    #[serde(rename = "lastList")]
    pub(crate) last_list: Option<InstanceListStatus>,
    pub(crate) last_failure: Option<FailureStatus>,
    pub(crate) deletions: Option<DeletionReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnavailableStatus {
    since: Timestamp,
    attempts: u32,
    pub(crate) reason: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceListStatus {
    pub(crate) at: Timestamp,
    pub(crate) machines: usize,
    scope: String,
    /// Parts of the cloud that could not be listed.
    blind_spots: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureStatus {
    pub(crate) at: Timestamp,
    pub(crate) error: String,
}

impl StatusReport {
    /// Sets where the leader is read from.
    pub fn follow_election(&self, leader: impl Fn() -> LeaderStatus + Send + Sync + 'static) {
        self.write().leader = Some(Box::new(leader));
    }

    /// Sets the clouds.
    pub fn serve(&self, clouds: &[Arc<Cloud>]) {
        self.write().clouds = clouds.to_vec();
    }

    /// Sets the caches. Under a second lease, caches that only the first one has stay.
    pub(crate) fn watch(&self, watched: Watched) {
        let mut state = self.write();
        let before = std::mem::take(&mut state.watched);
        state.watched = Watched {
            nodes: watched.nodes.or(before.nodes),
            services: watched.services.or(before.services),
        };
    }

    /// Sets where the latest Events are read from.
    pub(crate) fn follow_events(&self, events: &Arc<RecentEvents>) {
        self.write().events = Some(Arc::clone(events));
    }

    /// Sets where the steps of a dry run are read from.
    pub(crate) fn follow_dry_run(&self, recorder: Arc<Recorder>) {
        self.write().dry_run = Some(recorder);
    }

    /// The caches.
    pub(crate) fn watched(&self) -> Watched {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.watched.clone()
    }

    /// The clouds.
    pub(crate) fn clouds(&self) -> Vec<Arc<Cloud>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.clouds.clone()
    }

    /// Records that a controller runs, or has stopped.
    pub fn set(&self, controller: &Arc<dyn Controller>, running: bool) {
        let name = controller.name().canonical();
        let state = (Arc::clone(controller), running);
        self.write().controllers.insert(name, state);
    }

    /// The current status.
    pub fn read(&self) -> Status {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut controllers = Vec::new();
        let mut deletions = BTreeMap::new();
        let mut managed = ManagedResources::default();
        for (name, (controller, running)) in &state.controllers {
            let mut report = controller.report();
            managed.extend(std::mem::take(&mut report.managed));
            for of_cloud in std::mem::take(&mut report.deletions) {
                deletions.insert(of_cloud.cloud.clone(), of_cloud);
            }
            controllers.push(ControllerStatus {
                name,
                running: *running,
                report,
            });
        }
        let clouds = state.clouds.iter();
        let leader = state.leader.as_ref();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            leader: leader.map(|leader| leader()).unwrap_or_default(),
            leading: controllers.iter().any(|controller| controller.running),
            clouds: clouds
                .map(|cloud| CloudStatus::of(cloud, deletions.remove(&cloud.name)))
                .collect(),
            controllers,
            managed,
            events: state.events.as_ref().map(|it| it.all()).unwrap_or_default(),
            panics: panics::report(),
            dry_run: state.dry_run.as_ref().map(|it| it.report()),
        }
    }

    /// The clouds whose deletions are stopped, without the reason: no authorization is needed to read it.
    pub fn stopped(&self) -> Vec<String> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let lifecycle = ControllerName::CloudNodeLifecycle.canonical();
        let controllers = state.controllers.get(lifecycle).into_iter();
        let reports = controllers.flat_map(|(controller, _)| controller.report().deletions);
        let stopped = reports.filter(|report| report.stopped.is_some());
        stopped.map(|report| report.cloud).collect()
    }

    /// The clouds that could not be built yet, with the kind of the error alone: no authorization is needed to read it.
    pub fn unavailable(&self) -> Vec<(String, ErrorKind)> {
        let clouds = self.clouds();
        let unavailable = clouds.iter().filter_map(|cloud| {
            let unavailable = cloud.availability.unavailable()?;
            Some((cloud.name.clone(), unavailable.kind))
        });
        unavailable.collect()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CloudStatus {
    fn of(cloud: &Cloud, deletions: Option<DeletionReport>) -> Self {
        let listed = cloud.inventory.latest();
        let failure = cloud.inventory.failure();
        Self {
            name: cloud.name.clone(),
            provider: cloud.provider().name().to_owned(),
            unavailable: cloud
                .availability
                .unavailable()
                .map(|it| UnavailableStatus {
                    since: it.since,
                    attempts: it.attempts,
                    reason: it.why,
                }),
            last_list: listed.map(|snapshot| InstanceListStatus {
                at: snapshot.list.taken(),
                machines: snapshot.list.instances().len(),
                scope: snapshot.list.scope().to_string(),
                blind_spots: snapshot
                    .list
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
