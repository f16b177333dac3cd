//! A candidate: waits for the lease, leads, releases it.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Clock, Problems};
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

use super::ElectionConfig;
use super::background::BackgroundTasks;
use super::config::JITTER;
use super::events::{KubeLeaseEvents, LeaseEvent, LeaseEvents};
use super::kube_store::KubeLease;
use super::lease_watch::LeaseWatch;
use super::lock::{Acquired, LeaseLock, Renewed};
use super::status::{Election, Leadership, Loss, Shared};
use super::store::{LeaseStore, StoreError};
use crate::log_messages::{
    LEADER_ELECTION_LOST, LEASE_ACQUIRE_FAILED, LEASE_ACQUIRED, LEASE_ACQUIRED_TOO_LATE,
    LEASE_RELEASE_FAILED, LEASE_RENEW_FAILED,
};

/// How long the end of an election waits for its last events to be written.
pub(crate) const EVENTS_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// How long releasing the lease may take. The shutdown waits for it, and the lease expires anyway.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two attempts to release the lease.
const RELEASE_RETRY_PERIOD: Duration = Duration::from_millis(200);

/// A candidate for one lease.
///
/// Dropping it, or the future of [`Elector::run`], is like a crash: it may no longer write, and holds the lease
/// until it expires.
pub struct Elector {
    config: ElectionConfig,
    store: Arc<dyn LeaseStore>,
    events: Arc<dyn LeaseEvents>,
    clock: Arc<dyn Clock>,
    lock: LeaseLock,
    shared: Arc<Shared>,
    status: watch::Sender<Leadership>,
    pending_events: TaskTracker,
    background: BackgroundTasks,
    random: fastrand::Rng,
}

/// How an election ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The caller stopped it.
    Stopped {
        /// Whether the lease is certainly not held any more. If not, the next leader waits until it expires.
        released: bool,
    },
    /// It led and lost the lease. The process should exit, because unfinished work may be anywhere.
    Lost(Loss),
}

/// Why an attempt, or the wait for the next one, was interrupted.
enum Interrupted {
    Stopped,
    Lost(Loss),
}

impl Elector {
    /// A candidate for a lease in this store.
    pub fn new(
        config: ElectionConfig,
        store: Arc<dyn LeaseStore>,
        events: Arc<dyn LeaseEvents>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problems> {
        config.validate()?;
        Ok(Self::unchecked(config, store, events, clock))
    }

    /// A candidate for a lease in the API server. The client should be from
    /// [`election_client`](super::election_client).
    pub fn kubernetes(
        config: ElectionConfig,
        client: Client,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problems> {
        let store = Arc::new(KubeLease::new(client.clone(), &config));
        let events = Arc::new(KubeLeaseEvents::new(client, &config));
        Self::new(config, store, events, clock)
    }

    pub(super) fn unchecked(
        config: ElectionConfig,
        store: Arc<dyn LeaseStore>,
        events: Arc<dyn LeaseEvents>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let shared = Arc::new(Shared::new(&config));
        let lock = LeaseLock::new(
            &config,
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&shared),
        );
        let (status, _) = watch::channel(Leadership::Standby {
            holder: None,
            error: None,
        });
        Self {
            config,
            store,
            events,
            clock,
            lock,
            shared,
            status,
            pending_events: TaskTracker::new(),
            background: BackgroundTasks::default(),
            random: fastrand::Rng::new(),
        }
    }

    /// Makes the pauses repeatable.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.random = fastrand::Rng::with_seed(seed);
        self
    }

    /// Starts its tasks in this way.
    #[must_use]
    pub fn with_background(mut self, background: BackgroundTasks) -> Self {
        self.background = background;
        self
    }

    pub(super) const fn background(&self) -> &BackgroundTasks {
        &self.background
    }

    /// A handle for observing this election.
    pub fn election(&self) -> Election {
        Election::new(Arc::clone(&self.shared), self.status.subscribe())
    }

    /// Waits for the lease and renews it, until it is lost or `stop` is cancelled.
    ///
    /// Cancel `stop` only after everything that writes has stopped: the fence closes and the lease is released, so
    /// another replica may write within a moment.
    pub async fn run(mut self, stop: CancellationToken) -> Ended {
        let mut lease_watch = if self.config.watch {
            let store = Arc::clone(&self.store);
            LeaseWatch::start(store, self.config.retry_period, &self.background)
        } else {
            LeaseWatch::none()
        };
        let interrupted = match self.wait_for_lease(&mut lease_watch, &stop).await {
            Ok(()) => self.keep_lease(&mut lease_watch, &stop).await,
            Err(interrupted) => interrupted,
        };
        let ended = match interrupted {
            Interrupted::Stopped => self.stop().await,
            Interrupted::Lost(loss) => self.lose(loss),
        };
        self.pending_events.close();
        let written = tokio::time::timeout(EVENTS_FLUSH_TIMEOUT, self.pending_events.wait()).await;
        if written.is_err() {
            debug!("leader election events were not written in time");
        }
        ended
    }

    async fn wait_for_lease(
        &mut self,
        lease_watch: &mut LeaseWatch,
        stop: &CancellationToken,
    ) -> Result<(), Interrupted> {
        let lease = self.lease_path();
        info!(
            lease,
            identity = self.config.identity,
            "attempting to acquire leader lease"
        );
        loop {
            let attempt = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(Interrupted::Stopped),
                attempt = self.lock.acquire() => attempt,
            };
            match attempt {
                Ok(Acquired::Yes(started)) if self.start_leading(started) => return Ok(()),
                Ok(Acquired::Yes(_)) => warn!(lease, "{LEASE_ACQUIRED_TOO_LATE}"),
                Ok(Acquired::No { holder }) => self.note_holder(&holder),
                Err(StoreError::Conflict) => {
                    debug!(lease, "another candidate acquired the lease first");
                }
                Err(error) => {
                    warn!(lease, err = %error, "{LEASE_ACQUIRE_FAILED}");
                    self.note_error(error.to_string());
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(Interrupted::Stopped),
                () = self.until_next_attempt(lease_watch) => {}
            }
        }
    }

    /// Waits for the next attempt: after a jittered pause, when the lease expires, or when the watch shows that it
    /// is free, whichever comes first.
    async fn until_next_attempt(&mut self, lease_watch: &mut LeaseWatch) {
        let jitter = 1.0 + self.random.f64() * JITTER;
        let next_attempt = Instant::now() + self.config.retry_period.mul_f64(jitter);
        let mut wake = next_attempt.min(self.lock.expires().unwrap_or(next_attempt));
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(wake) => return,
                record = lease_watch.next() => {
                    self.lock.observe(record);
                    let Some(expires) = self.lock.expires() else { return };
                    wake = next_attempt.min(expires);
                }
            }
        }
    }

    async fn keep_lease(
        &mut self,
        lease_watch: &mut LeaseWatch,
        stop: &CancellationToken,
    ) -> Interrupted {
        let fence = self.shared.fence.clone();
        let mut last_error = None;
        let mut next = Instant::now() + self.config.retry_period;
        loop {
            tokio::select! {
                biased;
                () = fence.closed() => return Interrupted::Lost(Loss::NotRenewed { last_error }),
                () = stop.cancelled() => return Interrupted::Stopped,
                () = tokio::time::sleep_until(next) => {}
                () = other_holder(lease_watch, &self.config.identity) => {}
            }
            next = Instant::now() + self.config.retry_period;
            let attempt = tokio::select! {
                biased;
                () = fence.closed() => return Interrupted::Lost(Loss::NotRenewed { last_error }),
                () = stop.cancelled() => return Interrupted::Stopped,
                attempt = self.lock.renew() => attempt,
            };
            match attempt {
                Ok(Renewed::Yes(started)) => {
                    if !fence.extend(started + self.config.renew_deadline) {
                        return Interrupted::Lost(Loss::NotRenewed { last_error });
                    }
                    self.shared.renewed(Some(started));
                    last_error = None;
                }
                Ok(Renewed::No { holder }) => {
                    return Interrupted::Lost(Loss::Superseded { holder });
                }
                Err(error) => {
                    warn!(lease = self.lease_path(), err = %error, "{LEASE_RENEW_FAILED}");
                    last_error = Some(error.to_string());
                }
            }
        }
    }

    /// Opens the fence, unless the lease was acquired too long ago.
    fn start_leading(&self, acquired: Instant) -> bool {
        let epoch = self.lock.epoch();
        let fence = &self.shared.fence;
        if !fence.open(epoch, acquired + self.config.renew_deadline) {
            return false;
        }
        self.background.spawn(fence.clone().keep_time());
        self.shared.renewed(Some(acquired));
        let since = self.clock.now();
        self.status
            .send_replace(Leadership::Leading { since, epoch });
        self.record(LeaseEvent::BecameLeader);
        info!(lease = self.lease_path(), epoch, "{LEASE_ACQUIRED}");
        true
    }

    fn note_holder(&self, holder: &str) {
        let now = Leadership::Standby {
            holder: Some(holder.to_owned()),
            error: None,
        };
        if *self.status.borrow() != now {
            info!(
                lease = self.lease_path(),
                holder, "lease is held by another replica"
            );
            self.status.send_replace(now);
        }
    }

    /// The lease cannot be read or acquired. Its last known holder leads no longer than the lease lasts.
    fn note_error(&self, error: String) {
        let holder = match &*self.status.borrow() {
            Leadership::Standby { holder, .. } if self.lock.expires().is_some() => holder.clone(),
            _ => None,
        };
        let error = Some(error);
        self.status
            .send_replace(Leadership::Standby { holder, error });
    }

    /// Closes the fence and releases the lease.
    async fn stop(&mut self) -> Ended {
        let led = self.shared.fence.epoch().is_some();
        self.shared.fence.close();
        self.status.send_replace(Leadership::Stopped);
        let released =
            !self.lock.may_be_ours() || self.config.release_on_stop && self.release().await;
        if led {
            self.record(LeaseEvent::StoppedLeading);
        }
        if released {
            self.shared.renewed(None);
        }
        Ended::Stopped { released }
    }

    /// Tries for a while to release the lease.
    async fn release(&mut self) -> bool {
        let lease = self.lease_path();
        let trying = async {
            while let Err(error) = self.lock.release().await {
                debug!(err = %error, "failed to release lease, retrying");
                tokio::time::sleep(RELEASE_RETRY_PERIOD).await;
            }
        };
        let limit = self.config.renew_deadline.min(RELEASE_TIMEOUT);
        let released = tokio::time::timeout(limit, trying).await;
        if released.is_ok() {
            info!(lease, "released lease");
        } else {
            warn!(lease, "{LEASE_RELEASE_FAILED}");
        }
        released.is_ok()
    }

    fn lose(&self, loss: Loss) -> Ended {
        self.shared.fence.close();
        error!(lease = self.lease_path(), err = %loss, "{LEADER_ELECTION_LOST}");
        self.status.send_replace(Leadership::Lost(loss.clone()));
        self.record(LeaseEvent::StoppedLeading);
        Ended::Lost(loss)
    }

    fn record(&self, event: LeaseEvent) {
        let Some(lease) = self.lock.object().cloned() else {
            return;
        };
        let (events, now) = (Arc::clone(&self.events), self.clock.now());
        let recording = async move { events.record(&lease, event, now).await };
        let recording = self.pending_events.track_future(recording);
        self.background.spawn(recording);
    }

    fn lease_path(&self) -> String {
        format!("{}/{}", self.config.namespace, self.config.name)
    }
}

impl Drop for Elector {
    fn drop(&mut self) {
        self.shared.fence.close();
        self.status.send_if_modified(|status| {
            let running = matches!(
                status,
                Leadership::Standby { .. } | Leadership::Leading { .. }
            );
            if running {
                *status = Leadership::Lost(Loss::Abandoned);
            }
            running
        });
    }
}

/// Completes when the watch shows another holder. It may be an old state, so this is a reason to read the lease, not
/// to stop leading.
async fn other_holder(lease_watch: &mut LeaseWatch, me: &str) {
    loop {
        let record = lease_watch.next().await;
        if record.is_none_or(|record| record.holder != me) {
            return;
        }
    }
}
