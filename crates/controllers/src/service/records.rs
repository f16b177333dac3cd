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
    /// The clouds in which it may have a balancer, as far as this process knows.
    pub(super) clouds: BTreeSet<String>,
    /// How its balancer was left, once it was as wished.
    pub(super) settled: Option<Settled>,
    /// The targets that are being applied right now.
    pub(super) applying: Option<Arc<Marks>>,
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
    /// When it was first seen, until its address is published.
    pub(super) waits_since: Option<Instant>,
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
            clouds: BTreeSet::new(),
            settled: None,
            applying: None,
            in_trouble: false,
            complaint: None,
            attempts: 0,
            leaving: Leaving::new(),
            ingress: None,
            written: None,
            told: Told::default(),
            worked_on: Instant::now(),
            missing_since: None,
            waits_since: None,
        }
    }

    pub(super) fn uid(&self) -> &str {
        &self.seen.service.uid
    }

    /// Whether there may be a balancer that nobody else would remove.
    pub(super) fn may_have_balancer(&self) -> bool {
        !self.clouds.is_empty()
    }

    /// How the balancer was left, unless it is being worked on or waits for a retry.
    pub(super) fn at_rest(&self) -> Option<&Settled> {
        let is_busy = self.in_trouble || self.applying.is_some();
        self.settled.as_ref().filter(|_| !is_busy)
    }

    /// The targets that it has, or is about to have. `None` if a retry will see to them anyway.
    pub(super) fn aimed_at(&self) -> Option<&Arc<Marks>> {
        let applied = self.at_rest().map(|settled| &settled.marks);
        self.applying.as_ref().or(applied)
    }

    /// The targets that it has, as far as is known.
    pub(super) fn applied(&self) -> Option<&Arc<Marks>> {
        self.settled.as_ref().map(|settled| &settled.marks)
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
