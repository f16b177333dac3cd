//! One attempt on the lease: look, decide, write.

use std::sync::Arc;

use cloudkeel_api::Clock;
use kube::core::DynamicObject;
use tokio::time::Instant;
use tracing::debug;

use super::ElectionConfig;
use super::decide::{Action, Candidate, Moment, Observation, Standing, decide, released};
use super::record::Record;
use super::status::Shared;
use super::store::{LeaseStore, StoreError, StoredLease};

/// The lease as one candidate knows it.
pub(super) struct LeaseLock {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    me: Candidate,
    /// What we last saw of it, and since when.
    seen: Option<Observation>,
    /// Its last version that we read or wrote.
    lease: Option<StoredLease>,
    /// What we last wrote into it.
    ours: Record,
    /// Whether something that we sent may have made it ours without our knowing.
    unsure: bool,
}

/// What came of an attempt to get the lease.
#[derive(Debug)]
pub(super) enum Acquired {
    /// It is ours; the write began at this moment.
    Yes(Instant),
    /// Somebody else has it.
    No { holder: String },
}

/// What came of an attempt to keep the lease.
#[derive(Debug)]
pub(super) enum Renewed {
    /// It is still ours; the write began at this moment.
    Yes(Instant),
    /// It is somebody else's.
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

    /// Tries to make the lease ours.
    pub(super) async fn acquire(&mut self) -> Result<Acquired, StoreError> {
        self.look().await?;
        match self.decide(Standing::Candidate) {
            Action::Create(record) => self.create(record).await.map(Acquired::Yes),
            Action::Renew(record) | Action::TakeOver(record) => {
                self.update(record).await.map(Acquired::Yes)
            }
            Action::Wait { holder, .. } | Action::StepDown { holder } => {
                Ok(Acquired::No { holder })
            }
        }
    }

    /// Tries to keep the lease. It is enough to write if nobody else wrote since; else we look first.
    pub(super) async fn renew(&mut self) -> Result<Renewed, StoreError> {
        let next = self.me.renews(&self.ours, self.clock.now());
        match self.update(next).await {
            Ok(started) => return Ok(Renewed::Yes(started)),
            Err(error) => debug!(%error, "could not renew the lease at once, reading it first"),
        }
        self.look().await?;
        match self.decide(Standing::Leader(&self.ours)) {
            Action::Create(record) => self.create(record).await.map(Renewed::Yes),
            Action::Renew(record) | Action::TakeOver(record) => {
                self.shared.count_slow_path();
                self.update(record).await.map(Renewed::Yes)
            }
            Action::StepDown { holder } | Action::Wait { holder, .. } => Ok(Renewed::No { holder }),
        }
    }

    /// Gives the lease back if it is ours.
    pub(super) async fn release(&mut self) -> Result<(), StoreError> {
        self.look().await?;
        if let Some(record) = self.record().filter(|record| self.is_mine(record)) {
            let free = released(record, self.clock.now());
            self.update(free).await?;
        }
        Ok(())
    }

    /// Whether the lease is ours, or may be although no answer said so.
    pub(super) fn may_be_ours(&self) -> bool {
        self.unsure || self.record().is_some_and(|record| self.is_mine(record))
    }

    /// Takes note of a state that the watch told.
    pub(super) fn observe(&mut self, record: Option<Record>) {
        self.seen = Observation::seeing(self.seen.take(), record, Instant::now());
    }

    /// When the lease of somebody else expires; `None` if, as far as we have seen, it is free.
    pub(super) fn expires(&self) -> Option<Instant> {
        match self.decide(Standing::Candidate) {
            Action::Wait { until, .. } => Some(until),
            _ => None,
        }
    }

    /// How often the lease had changed hands when it became ours.
    pub(super) fn epoch(&self) -> u32 {
        u32::try_from(self.ours.transitions).unwrap_or_default()
    }

    /// The lease itself, if there ever was one.
    pub(super) fn object(&self) -> Option<&DynamicObject> {
        self.lease.as_ref().map(StoredLease::object)
    }

    fn record(&self) -> Option<&Record> {
        self.lease.as_ref().map(StoredLease::record)
    }

    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.me.identity
    }

    async fn look(&mut self) -> Result<(), StoreError> {
        let lease = self.store.get().await?;
        self.observe(lease.as_ref().map(|lease| lease.record().clone()));
        self.lease = lease;
        Ok(())
    }

    fn decide(&self, standing: Standing<'_>) -> Action {
        let now = Moment {
            monotonic: Instant::now(),
            wall: self.clock.now(),
        };
        decide(self.seen.as_ref(), standing, now, &self.me)
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

    /// The moment counts from before the request: only then is it never later than the effect.
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
