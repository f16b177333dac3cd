//! The only lease of a cluster, as an API server stores it.

use std::sync::{Arc, Mutex};

use kube::core::DynamicObject;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::election::record::Record;
use crate::election::store::{StoreError, StoredLease};

/// Something that happened to the lease.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub at: Instant,
    pub after: Record,
}

/// Notified of every write at the moment of its effect.
pub(super) type WriteObserver = Box<dyn Fn(&Write) + Send>;

#[derive(Default)]
struct State {
    lease: Option<DynamicObject>,
    version: u64,
    writes: Vec<Write>,
    observer: Option<WriteObserver>,
    watchers: Vec<mpsc::UnboundedSender<Option<Record>>>,
}

impl State {
    /// In their order, so that a run can be repeated.
    fn tell_watchers(&mut self, record: Option<&Record>) {
        self.watchers
            .retain(|watcher| watcher.send(record.cloned()).is_ok());
    }
}

/// An API server with one lease.
pub(super) struct Cluster {
    state: Mutex<State>,
    /// A planted bug: updates are not checked against their resource version.
    careless: bool,
}

impl Cluster {
    pub(super) fn new() -> Arc<Self> {
        Self::with(false)
    }

    pub(super) fn careless() -> Arc<Self> {
        Self::with(true)
    }

    fn with(careless: bool) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            careless,
        })
    }

    pub(super) fn get(&self) -> Option<StoredLease> {
        let state = self.state.lock().unwrap();
        state
            .lease
            .clone()
            .map(|lease| StoredLease::read(lease).unwrap())
    }

    pub(super) fn record(&self) -> Record {
        self.get().expect("there is a lease").record().clone()
    }

    pub(super) fn create(&self, record: &Record) -> Result<StoredLease, StoreError> {
        if self.get().is_some() {
            return Err(StoreError::Conflict);
        }
        Ok(self.put(StoredLease::fresh("kube-system", "ccm", record)))
    }

    pub(super) fn update(
        &self,
        lease: &StoredLease,
        record: &Record,
    ) -> Result<StoredLease, StoreError> {
        let Some(current) = self.get() else {
            return Err(StoreError::Failed("not found (404)".to_owned()));
        };
        let version = |lease: &StoredLease| lease.object().metadata.resource_version.clone();
        if !self.careless && version(&current) != version(lease) {
            return Err(StoreError::Conflict);
        }
        Ok(self.put(lease.with(record)))
    }

    /// What an operator could do with `kubectl edit`.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Record)) {
        let current = self.get().expect("there is a lease");
        let mut record = current.record().clone();
        change(&mut record);
        self.put(current.with(&record));
    }

    pub(super) fn delete(&self) {
        let mut state = self.state.lock().unwrap();
        state.lease = None;
        state.tell_watchers(None);
    }

    /// The current state and every later one.
    pub(super) fn changes(&self) -> mpsc::UnboundedReceiver<Option<Record>> {
        let (watcher, changes) = mpsc::unbounded_channel();
        let present = self.get().map(|lease| lease.record().clone());
        watcher.send(present).expect("the receiver is here");
        self.state.lock().unwrap().watchers.push(watcher);
        changes
    }

    pub(super) fn writes(&self) -> Vec<Write> {
        self.state.lock().unwrap().writes.clone()
    }

    pub(super) fn observed_by(&self, observer: WriteObserver) {
        self.state.lock().unwrap().observer = Some(observer);
    }

    fn put(&self, mut object: DynamicObject) -> StoredLease {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        object.metadata.resource_version = Some(state.version.to_string());
        object.metadata.uid = Some("u-1".to_owned());
        state.lease = Some(object.clone());
        let lease = StoredLease::read(object).unwrap();
        let after = lease.record().clone();
        state.tell_watchers(Some(&after));
        let write = Write {
            at: Instant::now(),
            after,
        };
        if let Some(observer) = &state.observer {
            observer(&write);
        }
        state.writes.push(write);
        lease
    }
}
