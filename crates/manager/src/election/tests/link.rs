//! The connection between one candidate and the cluster, which may be slow, lossy or cut.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::cluster::Cluster;
use crate::election::record::Record;
use crate::election::store::{LeaseStore, StoreError, StoredLease};

/// What becomes of one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate {
    /// How long it takes to reach the server, where it takes effect even if the caller has given up.
    pub there: Duration,
    /// How long the response takes.
    pub back: Duration,
    /// It never arrives.
    pub lost: bool,
    /// It takes effect, but the response is lost.
    pub answer_lost: bool,
    /// The server rejects it with this.
    pub refused: Option<StoreError>,
}

/// Decides the fate of every request.
pub(super) type Weather = Box<dyn FnMut() -> Fate + Send>;

/// One candidate's view of the lease.
pub(super) struct Link {
    cluster: Arc<Cluster>,
    weather: Mutex<Weather>,
    request_timeout: Duration,
    may_watch: bool,
    pub requests: AtomicU32,
    pub watches: AtomicU32,
}

impl Link {
    /// A fast and reliable one.
    pub(super) fn new(cluster: &Arc<Cluster>) -> Arc<Self> {
        Self::with(cluster, true, Box::new(Fate::default))
    }

    /// One whose role lacks the verb `watch`.
    pub(super) fn without_watch(cluster: &Arc<Cluster>) -> Arc<Self> {
        Self::with(cluster, false, Box::new(Fate::default))
    }

    pub(super) fn with(cluster: &Arc<Cluster>, may_watch: bool, weather: Weather) -> Arc<Self> {
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            weather: Mutex::new(weather),
            request_timeout: Duration::from_secs(5),
            may_watch,
            requests: AtomicU32::new(0),
            watches: AtomicU32::new(0),
        })
    }

    /// From now on every request has this fate.
    pub(super) fn turn(&self, fate: Fate) {
        self.turn_each(move || fate.clone());
    }

    /// From now on every request has the next fate.
    pub(super) fn turn_each(&self, fates: impl FnMut() -> Fate + Send + 'static) {
        *self.weather.lock().unwrap() = Box::new(fates);
    }

    /// All requests are lost.
    pub(super) fn cut(&self) {
        self.turn(Fate {
            lost: true,
            ..Fate::default()
        });
    }

    pub(super) fn heal(&self) {
        self.turn(Fate::default());
    }

    fn fate(&self) -> Fate {
        (self.weather.lock().unwrap())()
    }

    async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&Cluster) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let fate = self.fate();
        let (answer, answered) = oneshot::channel();
        let cluster = Arc::clone(&self.cluster);
        tokio::spawn(async move {
            sleep(fate.there).await;
            let outcome = match fate.refused {
                _ if fate.lost => return std::future::pending().await,
                Some(error) => Err(error),
                None => request(&cluster),
            };
            sleep(fate.back).await;
            if fate.answer_lost {
                return std::future::pending().await;
            }
            // The caller may have given up.
            let _ = answer.send(outcome);
        });
        match timeout(self.request_timeout, answered).await {
            Ok(answer) => answer.expect("an answer is sent or never comes"),
            Err(_) => Err(StoreError::TimedOut(self.request_timeout)),
        }
    }
}

#[async_trait]
impl LeaseStore for Link {
    async fn get(&self) -> Result<Option<StoredLease>, StoreError> {
        self.ask(|cluster| Ok(cluster.get())).await
    }

    async fn create(&self, record: &Record) -> Result<StoredLease, StoreError> {
        let record = record.clone();
        self.ask(move |cluster| cluster.create(&record)).await
    }

    async fn update(
        &self,
        lease: &StoredLease,
        record: &Record,
    ) -> Result<StoredLease, StoreError> {
        let (lease, record) = (lease.clone(), record.clone());
        self.ask(move |cluster| cluster.update(&lease, &record))
            .await
    }

    /// Events have the fate of requests: they are late, or the watch ends.
    async fn watch(
        &self,
        on_change: &(dyn Fn(Option<Record>) + Send + Sync),
    ) -> Result<(), StoreError> {
        self.watches.fetch_add(1, Ordering::Relaxed);
        if !self.may_watch {
            return Err(StoreError::Forbidden("watch".to_owned()));
        }
        let mut changes = self.cluster.changes();
        while let Some(record) = changes.recv().await {
            let fate = self.fate();
            if fate.lost || fate.answer_lost {
                return Err(StoreError::Failed("connection reset".to_owned()));
            }
            sleep(fate.back).await;
            on_change(record);
        }
        Ok(())
    }
}
