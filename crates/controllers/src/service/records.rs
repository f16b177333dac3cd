//! What is remembered of each Service while it is served here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use tokio::time::Instant;

use super::marks::{Leaving, MarkSets, Marks};
use super::spec::Warning;
use crate::view::ServiceView;

/// What is remembered of a Service.
pub(super) struct Record {
    /// The Service as it was last worked on: its claim outlives it.
    pub(super) seen: Arc<ServiceView>,
    /// What this process knows of its balancer in each cloud that it asked for one.
    clouds: BTreeMap<String, Presence>,
    /// Whether this process has worked on its balancer, other than to remove it.
    pub(super) was_ensured: bool,
    /// How its balancer was left, once it was as wished.
    pub(super) settled: Option<Settled>,
    /// The targets that are being applied right now.
    pub(super) applying: Option<Arc<Marks>>,
    /// The targets of the last attempt, if the cloud refused some of it and did the rest. Its balancer
    /// follows the Nodes while that is tried again.
    pub(super) partly: Option<Arc<Marks>>,
    /// Whether the last attempt left something to do, which its retry is going to.
    pub(super) in_trouble: bool,
    /// What went wrong last, until it is as wished.
    pub(super) complaint: Option<String>,
    /// Counts the attempts, so that a look from outside knows whether it is out of date.
    pub(super) attempts: u64,
    /// Since when its Nodes are on their way out.
    pub(super) leaving: Leaving,
    /// What was last published, or is being published.
    pub(super) ingress: Option<Vec<LoadBalancerIngress>>,
    /// The Service as the API server answered to our last write. The watch may be behind it.
    pub(super) written: Option<Arc<ServiceView>>,
    /// What was told already.
    pub(super) told: Told,
    /// When its balancer was last made or changed, as far as this process knows; at first, when the Service
    /// was first seen: another leader may have been at it until then.
    pub(super) worked_on: Instant,
    /// Since when its balancer, which is to be removed, is not found.
    pub(super) missing_since: Option<Instant>,
    /// Since when no Node of its clouds is Ready, while its balancer is not found.
    pub(super) no_ready_node_since: Option<Instant>,
    /// When it was first seen, until its address is published.
    pub(super) waits_since: Option<Instant>,
}

/// What is known of a balancer in one cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// The cloud was asked for one, or is about to be, and has made none.
    Asked,
    /// It was seen or made, or the answer to the order is not known.
    Possible,
    /// It was seen, and was not there any more when it was to be removed.
    Vanished,
    /// The cloud has agreed to remove everything that was there.
    Removing,
    /// And nothing is left.
    Removed,
}

/// How a balancer was left.
#[derive(Clone)]
pub(super) struct Settled {
    /// For this Service.
    pub(super) service: Arc<ServiceView>,
    /// With these targets.
    pub(super) marks: Arc<Marks>,
}

/// What was told already and need not be told again.
#[derive(Default)]
pub(super) struct Told {
    /// That work has begun, and not yet that it has ended.
    pub(super) ensuring: bool,
    /// That the balancer is being removed.
    pub(super) deleting: bool,
    /// That a balancer stays although the Service goes; the Event is the provider's.
    pub(super) kept: bool,
    /// What the cloud is waiting for.
    pub(super) pending: Option<String>,
    /// That there is no Node.
    pub(super) unavailable: bool,
    /// That the cloud has no load balancers.
    pub(super) unsupported: bool,
    /// What its owner should know.
    pub(super) advice: Vec<Warning>,
}

impl Record {
    fn new(service: &Arc<ServiceView>) -> Self {
        Self {
            seen: Arc::clone(service),
            clouds: BTreeMap::new(),
            was_ensured: false,
            settled: None,
            applying: None,
            partly: None,
            in_trouble: false,
            complaint: None,
            attempts: 0,
            leaving: Leaving::new(),
            ingress: None,
            written: None,
            told: Told::default(),
            worked_on: Instant::now(),
            missing_since: None,
            no_ready_node_since: None,
            waits_since: None,
        }
    }

    pub(super) fn uid(&self) -> &str {
        &self.seen.service.uid
    }

    /// Whether there may be a balancer that nobody else would remove.
    pub(super) fn may_have_balancer(&self) -> bool {
        self.clouds().next().is_some()
    }

    /// The clouds in which it may have a balancer, as far as this process knows.
    pub(super) fn clouds(&self) -> impl Iterator<Item = &String> {
        let may_have_it = |(_, presence): &(_, &Presence)| **presence != Presence::Removed;
        self.clouds
            .iter()
            .filter(may_have_it)
            .map(|(cloud, _)| cloud)
    }

    /// What is known of its balancer in a cloud.
    pub(super) fn presence_in(&self, cloud: &str) -> Option<Presence> {
        self.clouds.get(cloud).copied()
    }

    /// Whether the cloud has agreed to remove everything that was there.
    pub(super) fn is_removal_agreed(&self, cloud: &str) -> bool {
        let presence = self.presence_in(cloud);
        matches!(presence, Some(Presence::Removing | Presence::Removed))
    }

    /// A cloud is about to be asked for a balancer. What was removed from there before is no sign of
    /// what becomes of this one.
    pub(super) fn note_request(&mut self, cloud: &str) {
        let known = match self.presence_in(cloud) {
            None | Some(Presence::Asked | Presence::Removing | Presence::Removed) => {
                Presence::Asked
            }
            Some(Presence::Possible | Presence::Vanished) => Presence::Possible,
        };
        self.set_presence(cloud, known);
    }

    /// More is known of its balancer in a cloud.
    pub(super) fn set_presence(&mut self, cloud: &str, presence: Presence) {
        self.clouds.insert(cloud.to_owned(), presence);
    }

    /// Nothing of it is in these clouds any more, and they are not asked again.
    pub(super) fn forget_clouds(&mut self, clouds: &BTreeSet<String>) {
        self.clouds.retain(|cloud, _| !clouds.contains(cloud));
    }

    /// How the balancer was left, unless it is being worked on or waits for a retry.
    pub(super) fn at_rest(&self) -> Option<&Settled> {
        let is_busy = self.in_trouble || self.applying.is_some();
        self.settled.as_ref().filter(|_| !is_busy)
    }

    /// The targets that it has, or is about to have. `None` if a retry will see to them anyway.
    pub(super) fn aimed_at(&self) -> Option<&Arc<Marks>> {
        let applied = self.at_rest().map(|settled| &settled.marks);
        self.applying.as_ref().or(self.partly.as_ref()).or(applied)
    }

    /// The targets that it has, as far as is known.
    pub(super) fn applied(&self) -> Option<&Arc<Marks>> {
        let settled = self.settled.as_ref().map(|settled| &settled.marks);
        self.partly.as_ref().or(settled)
    }
}

/// The records, by key of the Service.
#[derive(Default)]
pub(super) struct Records {
    records: Mutex<BTreeMap<String, Record>>,
    sets: Mutex<MarkSets>,
}

impl Records {
    /// Looks at a record.
    pub(super) fn read<T>(&self, key: &str, look: impl FnOnce(&Record) -> T) -> Option<T> {
        self.lock().get(key).map(look)
    }

    /// Whether a Service may have a balancer that nobody else would remove.
    pub(super) fn may_have_balancer(&self, key: &str) -> bool {
        self.read(key, Record::may_have_balancer)
            .unwrap_or_default()
    }

    /// Changes the record of a Service, which is made if there is none.
    pub(super) fn update<T>(
        &self,
        service: &Arc<ServiceView>,
        change: impl FnOnce(&mut Record) -> T,
    ) -> T {
        let mut records = self.lock();
        let record = records
            .entry(service.service.to_string())
            .or_insert_with(|| Record::new(service));
        change(record)
    }

    /// Changes a record that is there.
    pub(super) fn amend(&self, key: &str, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.lock().get_mut(key) {
            change(record);
        }
    }

    /// Forgets a Service.
    pub(super) fn remove(&self, key: &str) {
        self.lock().remove(key);
    }

    /// Looks at every record, and may change it.
    pub(super) fn for_each(&self, mut look: impl FnMut(&str, &mut Record)) {
        for (key, record) in self.lock().iter_mut() {
            look(key, record);
        }
    }

    /// How many Services are remembered.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The same set for all who have it.
    pub(super) fn share(&self, marks: Marks) -> Arc<Marks> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.keep(marks)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
