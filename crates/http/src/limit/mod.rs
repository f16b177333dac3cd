//! One rate limiter per credential: stays within the cloud's budget and leaves some of it for the user's other
//! tools.

mod bucket;
pub(crate) mod headers;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{BudgetRecord, Priority};
use http::HeaderMap;
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

pub use self::bucket::Refill;
use self::state::{QueueSlot, Readiness, State};

/// How often a caller checks again whose deadline is the very moment at which it may go.
const RECHECK_INTERVAL: Duration = Duration::from_millis(1);

/// How a limiter behaves until the cloud reports a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct LimiterSettings {
    /// Our own rate, where the cloud's limit is known but not reported in headers.
    pub rate: Option<RequestRate>,
    /// The part of the cloud's limit that is kept for others: background calls leave all of it, normal ones half of
    /// it, urgent ones none.
    pub reserve_percent: u8,
    /// How the cloud restores requests.
    pub refill: Refill,
}

/// A constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    /// One request per interval in the long run.
    pub interval: Duration,
    /// How many may go at once after a pause.
    pub burst: u32,
}

impl RequestRate {
    /// So many requests in a second in the long run, one at a time.
    pub fn per_second(requests: f64) -> Self {
        Self {
            interval: Duration::from_secs_f64(1.0 / requests),
            burst: 1,
        }
    }
}

impl Default for LimiterSettings {
    fn default() -> Self {
        Self {
            rate: None,
            reserve_percent: 20,
            refill: Refill::default(),
        }
    }
}

/// The budget of one credential, shared by all clients that use it.
///
/// Callers go in order of priority, and within a priority first come, first served.
#[derive(Debug, Clone)]
pub struct Limiter {
    state: Arc<Mutex<State>>,
}

/// The budget does not allow the call in time. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request budget allows the next call in {:.1}s", wait.as_secs_f64())]
pub struct BudgetExhausted {
    /// When it would be allowed.
    pub wait: Duration,
}

impl Limiter {
    /// A limiter. Must be called inside a tokio runtime if tests pause its clock.
    pub fn new(settings: LimiterSettings) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(settings, Instant::now()))),
        }
    }

    /// Waits until the call may be sent, at most `longest`.
    ///
    /// If that will not be in time, it fails at once, so that the caller can do something else meanwhile. A dropped
    /// future gives its slot to the next.
    pub async fn acquire(
        &self,
        priority: Priority,
        longest: Duration,
    ) -> Result<Permit, BudgetExhausted> {
        let entered = Instant::now();
        let deadline = entered.checked_add(longest);
        let queued = Queued {
            limiter: self,
            slot: self.lock().enqueue(priority),
        };
        loop {
            let now = Instant::now();
            let readiness = self.lock().readiness(&queued.slot, now);
            let wake_at = match readiness {
                Readiness::Now => {
                    return Ok(Permit {
                        limiter: self.clone(),
                        ticket: queued.slot.ticket(),
                        waited: now.saturating_duration_since(entered),
                        in_flight: true,
                    });
                }
                Readiness::At(ready) | Readiness::AfterOthers(ready)
                    if deadline.is_some_and(|deadline| ready > deadline) =>
                {
                    return Err(BudgetExhausted { wait: ready - now });
                }
                Readiness::At(ready) => Some(ready),
                // No caller whose time has come is sent away because of the probe.
                Readiness::AfterProbe(latest) => Some(latest),
                // Those ahead go at this very moment and wake this caller. If they may not after all, its deadline
                // still passes.
                Readiness::AfterOthers(ready) if ready <= now => {
                    deadline.map(|deadline| deadline.max(now + RECHECK_INTERVAL))
                }
                // Those ahead wake this caller; only the deadline needs a timer.
                Readiness::AfterOthers(_) => deadline,
            };
            tokio::select! {
                biased;
                () = queued.slot.woken() => {}
                () = wait_until(wake_at) => {}
            }
        }
    }

    /// Learns the remaining budget from the headers of a response, and returns it.
    pub fn learn(&self, headers: &HeaderMap, received: Timestamp) -> Option<BudgetRecord> {
        let budget = headers::budget(headers, received)?;
        self.lock().learn(&budget, Instant::now());
        Some(BudgetRecord {
            limit: budget.limit,
            remaining: budget.remaining,
        })
    }

    /// Blocks all callers, because the cloud throttled a request.
    ///
    /// Without `Retry-After`, they are blocked for a second, and twice as long after each further throttled request
    /// in a row. Throttled responses that arrive meanwhile do not count: their requests were already under way.
    /// Afterwards one request goes first as a probe, and the others wait for its outcome.
    pub fn refused(&self, retry_after: Option<Duration>) {
        self.lock().refused(retry_after, Instant::now());
    }

    /// The cloud served a request: throttled requests before it no longer count.
    pub fn served(&self) {
        self.lock().served();
    }

    /// No panic can leave the counters half changed, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Limiter {
    fn default() -> Self {
        Self::new(LimiterSettings::default())
    }
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A slot in the queue that is released on drop.
struct Queued<'a> {
    limiter: &'a Limiter,
    slot: QueueSlot,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.limiter.lock().dequeue(&self.slot);
    }
}

/// The permission to send one request; held until its outcome is known.
#[derive(Debug)]
pub struct Permit {
    limiter: Limiter,
    ticket: u64,
    waited: Duration,
    in_flight: bool,
}

impl Permit {
    /// How long it took to get.
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// The request is no longer in flight: the budget that the cloud reports includes it.
    pub fn finished(&mut self) {
        if std::mem::take(&mut self.in_flight) {
            self.limiter.lock().finished();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.finished();
        self.limiter.lock().settled(self.ticket);
    }
}

#[cfg(test)]
mod tests;
