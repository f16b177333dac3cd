//! What the controller remembers of each Service while it serves it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::{TargetHealth, TrafficPolicy};
use k8s_openapi::api::core::v1::LoadBalancerIngress;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::change_limit::ChangeLimit;
use super::spec::Warning;
use super::targets::follow::NodeUpdate;
use super::targets::keys::{RemovedSince, TargetKeys};
use crate::report::balancers::ObservedHealth;
use crate::view::ServiceView;

/// What is remembered of a Service.
#[derive(Default)]
pub(super) struct Record {
    /// The Service as it was last reconciled: what refers to its balancer outlives it.
    pub(super) seen: Arc<ServiceView>,
    /// What this process knows of its balancer in each cloud that it asked for one.
    clouds: BTreeMap<String, Presence>,
    /// The Service as of the last successful reconciliation.
    pub(super) settled: Option<Arc<ServiceView>>,
    /// The targets that it has, as far as is known.
    pub(super) applied: Option<Arc<TargetKeys>>,
    /// The targets that are being applied right now.
    pub(super) applying: Option<Arc<TargetKeys>>,
    /// The targets of the last attempt if it failed, unless the cloud said when to try again: with others it may succeed.
    pub(super) attempted: Option<Arc<TargetKeys>>,
    /// What the cloud last said of the health of its targets.
    pub(super) health: Option<Arc<ObservedHealth>>,
    /// Since when that is likely to change soon: targets are new, or have failed.
    pub(super) unsettled_since: Option<Instant>,
    /// Whether the last attempt left something to do, for which it is requeued.
    pub(super) needs_retry: bool,
    /// What went wrong last, until a reconciliation succeeds.
    pub(super) last_error: Option<String>,
    /// What pauses it.
    pub(super) paused: Option<String>,
    /// Whether no earlier leader has worked on its balancer: this process added the finalizer.
    pub(super) is_first_leader: bool,
    /// Whether the API server has confirmed to this process that the finalizer is there.
    pub(super) has_finalizer: bool,
    /// How often this process has worked on its balancer, other than to delete it.
    pub(super) attempts: u64,
    /// Since when targets that it has are no longer chosen.
    pub(super) removed_since: RemovedSince,
    /// Changes of Nodes that its balancer has yet to follow.
    pub(super) node_updates: Vec<Arc<NodeUpdate>>,
    /// What was last published, or is being published.
    pub(super) ingress: Option<Vec<LoadBalancerIngress>>,
    /// The Service as the API server answered to our last write. The watch may be behind it.
    pub(super) written: Option<Arc<ServiceView>>,
    /// What was reported already.
    pub(super) reported: Reported,
    /// When its balancer was last made or changed, as far as this process knows; at first, when the Service
    /// was first seen: another leader may have been at it until then.
    pub(super) worked_on: Option<Instant>,
    /// Since when its balancer, which is to be deleted, is not found.
    pub(super) missing_since: Option<Instant>,
    /// Since when no Node of its clouds is Ready, while its balancer is not found.
    pub(super) no_ready_node_since: Option<Instant>,
    /// When it was first seen, until its address is published.
    pub(super) waits_since: Option<Instant>,
    /// How often its changes are worked on.
    pub(super) changes: ChangeLimit,
}

/// What is known of a balancer in one cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// The cloud was asked for one, or is about to be, and has made none.
    Asked,
    /// It was asked for, and the answer to the order is not known, or it was missing when it was to be removed.
    Possible,
    /// It was seen or made.
    Seen,
    /// It was seen, and was not there any more when it was to be removed.
    Vanished,
    /// The cloud has agreed to remove everything that was there.
    Removing,
    /// And nothing is left.
    Removed,
}

/// What was reported already and need not be reported again.
#[derive(Default)]
pub(super) struct Reported {
    /// That work has begun, and not yet that it has ended.
    pub(super) ensuring: bool,
    /// That the balancer is being deleted.
    pub(super) deleting: bool,
    /// That a balancer stays although the Service goes; the Event is the provider's.
    pub(super) kept: bool,
    /// What the cloud is waiting for.
    pub(super) pending: Option<String>,
    /// That there is no Node.
    pub(super) unavailable: bool,
    /// That no target passes its health check.
    pub(super) outage: bool,
    /// What its owner should know.
    pub(super) warnings: Vec<Warning>,
}

impl Record {
    fn new(service: &Arc<ServiceView>) -> Self {
        Self {
            seen: Arc::clone(service),
            worked_on: Some(Instant::now()),
            ..Self::default()
        }
    }

    /// The clouds in which it may have a balancer, as far as this process knows.
    pub(super) fn clouds(&self) -> impl Iterator<Item = &String> {
        let clouds = self.clouds.iter();
        let left = clouds.filter(|(_, presence)| **presence != Presence::Removed);
        left.map(|(cloud, _)| cloud)
    }

    /// What is known of its balancer in a cloud.
    pub(super) fn presence_in(&self, cloud: &str) -> Option<Presence> {
        self.clouds.get(cloud).copied()
    }

    /// A cloud is about to be asked for a balancer. What was removed from there before is no sign of
    /// what becomes of this one.
    pub(super) fn note_request(&mut self, cloud: &str) {
        let presence = match self.presence_in(cloud) {
            Some(Presence::Seen) => Presence::Seen,
            Some(Presence::Possible | Presence::Vanished) => Presence::Possible,
            _ => Presence::Asked,
        };
        self.set_presence(cloud, presence);
    }

    /// More is known of its balancer in a cloud.
    pub(super) fn set_presence(&mut self, cloud: &str, presence: Presence) {
        self.clouds.insert(cloud.to_owned(), presence);
    }

    /// Nothing of it is in these clouds any more, and they are not asked again.
    pub(super) fn forget_clouds(&mut self, clouds: &BTreeSet<String>) {
        self.clouds.retain(|cloud, _| !clouds.contains(cloud));
    }

    /// Remembers the health of its targets, also that the cloud does not say anything of it.
    pub(super) fn note_health(&mut self, health: &[TargetHealth]) {
        let observed = (!health.is_empty()).then(|| ObservedHealth {
            targets: health.to_vec(),
            at: Instant::now(),
        });
        self.health = observed.map(Arc::new);
        self.unsettled_since = if self.is_health_unsettled() {
            self.unsettled_since.or_else(|| Some(Instant::now()))
        } else {
            None
        };
    }

    /// Whether a later observation is likely to show other health. With the policy `Local`, a Node without a Pod is meant
    /// to fail.
    fn is_health_unsettled(&self) -> bool {
        let summary = self.health.as_ref().and_then(|health| health.summary());
        let is_local = self.seen.traffic_policy == TrafficPolicy::Local;
        summary.is_some_and(|it| it.unknown > 0 || it.is_outage() || it.unhealthy > 0 && !is_local)
    }

    /// Whether the last reconciliation succeeded, and neither another one runs nor a retry is due.
    pub(super) fn is_at_rest(&self) -> bool {
        self.settled.is_some() && !self.needs_retry && self.applying.is_none()
    }

    /// The targets that it has, is about to have, or failed to get. `None` if a retry will see to them soon.
    pub(super) fn current_targets(&self) -> Option<&Arc<TargetKeys>> {
        let applied = self.applied.as_ref().filter(|_| self.is_at_rest());
        let attempted = self.attempted.as_ref();
        self.applying.as_ref().or(attempted).or(applied)
    }
}

/// The records, by key of the Service.
#[derive(Default)]
pub(super) struct Records(Mutex<BTreeMap<String, Record>>);

impl Records {
    /// Reads from a record.
    pub(super) fn read<T>(&self, key: &str, read: impl FnOnce(&Record) -> T) -> Option<T> {
        self.0.lock().get(key).map(read)
    }

    /// Whether a Service may have a balancer that only this process would delete.
    pub(super) fn may_have_balancer(&self, key: &str) -> bool {
        let clouds = self.read(key, |record| record.clouds().count());
        clouds.is_some_and(|clouds| clouds > 0)
    }

    /// Changes the record of a Service, which is made if there is none.
    pub(super) fn update<T>(
        &self,
        service: &Arc<ServiceView>,
        change: impl FnOnce(&mut Record) -> T,
    ) -> T {
        let mut records = self.0.lock();
        let record = records
            .entry(service.service.to_string())
            .or_insert_with(|| Record::new(service));
        change(record)
    }

    /// Changes a record that is there.
    pub(super) fn amend(&self, key: &str, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.0.lock().get_mut(key) {
            change(record);
        }
    }

    /// Forgets a Service.
    pub(super) fn remove(&self, key: &str) {
        self.0.lock().remove(key);
    }

    /// Visits every record, and may change it.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&str, &mut Record)) {
        for (key, record) in self.0.lock().iter_mut() {
            visit(key, record);
        }
    }

    /// How many Services are remembered.
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }
}
