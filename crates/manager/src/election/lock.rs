//! One attempt to hold the lease: read, decide, write.

use std::sync::Arc;

use cloudkeel_api::Clock;
use kube::core::DynamicObject;
use tokio::time::Instant;
use tracing::debug;

use super::ElectionConfig;
use super::decide::{Action, Candidate, Moment, Observation, Role, decide, released};
use super::record::Record;
use super::status::Shared;
use super::store::{LeaseStore, StoreError, StoredLease};

/// The lease as one candidate knows it.
pub(super) struct LeaseLock {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    me: Candidate,
    /// What was last observed, and since when.
    seen: Option<Observation>,
    /// The last version that was read or written.
    lease: Option<StoredLease>,
    /// The last record that was written.
    ours: Record,
    /// Whether a write without a response may have acquired the lease.
    unsure: bool,
}

/// The outcome of an attempt to acquire the lease.
#[derive(Debug)]
pub(super) enum Acquired {
    /// It is acquired; the write started at this time.
    Yes(Instant),
    /// Another candidate holds it.
    No { holder: String },
}

/// The outcome of an attempt to renew the lease.
#[derive(Debug)]
pub(super) enum Renewed {
    /// It is renewed; the write started at this time.
    Yes(Instant),
    /// Another candidate holds it.
    No { holder: String },
}

impl LeaseLock {
    pub(super) fn new(
        config: &ElectionConfig,
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
    ) -> Self {
        let me = Candidate {
            identity: config.identity.clone(),
            lease_seconds: config.lease_seconds(),
        };
        Self {
            store,
            clock,
            shared,
            me,
            seen: None,
            lease: None,
            ours: Record::default(),
            unsure: false,
        }
    }

    /// Tries to acquire the lease.
    pub(super) async fn acquire(&mut self) -> Result<Acquired, StoreError> {
        self.read().await?;
        match self.decide(Role::Candidate) {
            Action::Create(record) => self.create(record).await.map(Acquired::Yes),
            Action::Renew(record) | Action::TakeOver(record) => {
                self.update(record).await.map(Acquired::Yes)
            }
            Action::Wait { holder, .. } | Action::StepDown { holder } => {
                Ok(Acquired::No { holder })
            }
        }
    }

    /// Tries to renew the lease. If the record has not changed since, a write is enough; otherwise it is read first.
    pub(super) async fn renew(&mut self) -> Result<Renewed, StoreError> {
        let next = self.me.renews(&self.ours, self.clock.now());
        match self.update(next).await {
            Ok(started) => return Ok(Renewed::Yes(started)),
            Err(error) => {
                debug!(err = %error, "failed to update lease optimistically, falling back to slow path");
            }
        }
        self.read().await?;
        match self.decide(Role::Leader(&self.ours)) {
            Action::Create(record) => self.create(record).await.map(Renewed::Yes),
            Action::Renew(record) | Action::TakeOver(record) => {
                self.shared.count_slow_path();
                self.update(record).await.map(Renewed::Yes)
            }
            Action::StepDown { holder } | Action::Wait { holder, .. } => Ok(Renewed::No { holder }),
        }
    }

    /// Releases the lease if this candidate holds it.
    pub(super) async fn release(&mut self) -> Result<(), StoreError> {
        self.read().await?;
        if let Some(record) = self.record().filter(|record| self.is_mine(record)) {
            let free = released(record, self.clock.now());
            self.update(free).await?;
        }
        Ok(())
    }

    /// Whether this candidate holds the lease, or may hold it although no response confirmed it.
    pub(super) fn may_be_ours(&self) -> bool {
        self.unsure || self.record().is_some_and(|record| self.is_mine(record))
    }

    /// Records a state from the watch.
    pub(super) fn observe(&mut self, record: Option<Record>) {
        self.seen = Observation::seeing(self.seen.take(), record, Instant::now());
    }

    /// When the lease of another candidate expires; `None` if, as far as is known, it is free.
    pub(super) fn expires(&self) -> Option<Instant> {
        match self.decide(Role::Candidate) {
            Action::Wait { until, .. } => Some(until),
            _ => None,
        }
    }

    /// How often the holder had changed when it was acquired.
    pub(super) fn epoch(&self) -> u32 {
        u32::try_from(self.ours.transitions).unwrap_or_default()
    }

    /// The Lease object, if there ever was one.
    pub(super) fn object(&self) -> Option<&DynamicObject> {
        self.lease.as_ref().map(StoredLease::object)
    }

    fn record(&self) -> Option<&Record> {
        self.lease.as_ref().map(StoredLease::record)
    }

    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.me.identity
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let lease = self.store.get().await?;
        self.observe(lease.as_ref().map(|lease| lease.record().clone()));
        self.lease = lease;
        Ok(())
    }

    fn decide(&self, role: Role<'_>) -> Action {
        let now = Moment {
            monotonic: Instant::now(),
            wall: self.clock.now(),
        };
        decide(self.seen.as_ref(), role, now, &self.me)
    }

    async fn create(&mut self, record: Record) -> Result<Instant, StoreError> {
        let store = Arc::clone(&self.store);
        self.write(async move { store.create(&record).await }).await
    }

    async fn update(&mut self, record: Record) -> Result<Instant, StoreError> {
        let Some(lease) = self.lease.clone() else {
            return self.create(record).await;
        };
        let store = Arc::clone(&self.store);
        self.write(async move { store.update(&lease, &record).await })
            .await
    }

    /// Time counts from before the request: only then is it never later than the effect.
    async fn write(
        &mut self,
        request: impl Future<Output = Result<StoredLease, StoreError>> + Send,
    ) -> Result<Instant, StoreError> {
        let started = Instant::now();
        let unsure_before = std::mem::replace(&mut self.unsure, true);
        let answer = request.await;
        if matches!(answer, Err(StoreError::Conflict | StoreError::Forbidden(_))) {
            self.unsure = unsure_before;
        }
        let lease = answer?;
        self.unsure = false;
        self.ours = lease.record().clone();
        self.observe(Some(self.ours.clone()));
        self.lease = Some(lease);
        Ok(started)
    }
}
