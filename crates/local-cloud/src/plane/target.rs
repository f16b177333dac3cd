//! One target of one port.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cloudkeel_api::HealthState as Health;
use cloudkeel_provider_local::wire::TargetAt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::counters::Traffic;

#[derive(Debug)]
struct CheckState {
    health: Health,
    failures: u32,
    why: Option<String>,
}

/// A place that connections are led to.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) at: TargetAt,
    pub(super) address: SocketAddr,
    pub(super) traffic: Traffic,
    active: AtomicU64,
    check: Mutex<CheckState>,
    /// When the connections that it has are cut.
    end: watch::Sender<Option<Instant>>,
}

impl Target {
    pub(super) fn new(at: TargetAt, address: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            at,
            address,
            traffic: Traffic::default(),
            active: AtomicU64::new(0),
            check: Mutex::new(CheckState {
                health: Health::Unknown,
                failures: 0,
                why: None,
            }),
            end: watch::Sender::new(None),
        })
    }

    /// Connections that it has now.
    pub(super) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    pub(super) fn health(&self) -> Health {
        self.check().health
    }

    /// What the last check complained of.
    pub(super) fn complaint(&self) -> Option<String> {
        self.check().why.clone()
    }

    fn check(&self) -> std::sync::MutexGuard<'_, CheckState> {
        self.check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the result of a check. One good one is enough to come back.
    pub(super) fn record(&self, result: Result<(), impl fmt::Display>, retries: u32) {
        let mut check = self.check();
        match result {
            Ok(()) => {
                *check = CheckState {
                    health: Health::Healthy,
                    failures: 0,
                    why: None,
                };
            }
            Err(why) => {
                check.failures = check.failures.saturating_add(1);
                check.why = Some(why.to_string());
                if check.failures >= retries {
                    check.health = Health::Unhealthy;
                }
            }
        }
    }

    /// Says when its connections are cut; `None` lets them live.
    pub(super) fn end_at(&self, when: Option<Instant>) {
        self.end.send_if_modified(|end| {
            // Who drains already does not get more time by being asked again.
            let wanted = match (*end, when) {
                (Some(earlier), Some(later)) => Some(earlier.min(later)),
                (_, when) => when,
            };
            std::mem::replace(end, wanted) != wanted
        });
    }

    /// Whether its time is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.end.borrow().is_some_and(|end| end <= now)
    }

    /// Waits until its connections are to be cut.
    async fn over(&self) {
        let mut end = self.end.subscribe();
        loop {
            let when = *end.borrow_and_update();
            let changed = async {
                if end.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            match when {
                None => changed.await,
                Some(when) => tokio::select! {
                    () = sleep_until(when) => return,
                    () = changed => {}
                },
            }
        }
    }
}

/// A connection's claim on a target, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Lease(Arc<Target>);

impl Lease {
    pub(super) fn on(target: &Arc<Target>) -> Self {
        target.active.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(target))
    }

    pub(super) fn target(&self) -> &Target {
        &self.0
    }

    /// Waits until the connection is to be cut.
    pub(super) async fn over(&self) {
        self.0.over().await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}
