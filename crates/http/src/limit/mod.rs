//! One limiter per credential: keeps to the cloud's budget and leaves some of it for the user's other
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
use self::state::{Place, State, Turn};

/// How often somebody looks again whose time is up at the very moment of their turn.
const MOMENT: Duration = Duration::from_millis(1);

/// How a limiter behaves until the cloud says more.
#[derive(Debug, Clone, PartialEq)]
pub struct LimiterSettings {
    /// Our own pace, where the cloud's limit is known but not told in headers.
    pub pace: Option<Pace>,
    /// The part of the cloud's limit that is kept for others: background calls leave all of it,
    /// ordinary ones half of it, urgent ones none.
    pub reserve_percent: u8,
    /// How the cloud gives requests back.
    pub refill: Refill,
}

/// A steady pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// One request per interval in the long run.
    pub interval: Duration,
    /// How many may go at once after a quiet time.
    pub burst: u32,
}

impl Default for LimiterSettings {
    fn default() -> Self {
        Self {
            pace: None,
            reserve_percent: 20,
            refill: Refill::default(),
        }
    }
}

/// The budget of one credential, shared by all clients that use it.
///
/// Callers go in order of urgency, and among equals first come, first served.
#[derive(Debug, Clone)]
pub struct Limiter {
    state: Arc<Mutex<State>>,
}

/// The budget does not allow the call in time. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request budget allows the next call in {:.1}s", wait.as_secs_f64())]
pub struct HeldBack {
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

    /// Waits for a turn, at most `longest`.
    ///
    /// If the turn will not come in time, it fails at once, so that the caller can do something else
    /// meanwhile. A dropped future gives its place to the next.
    pub async fn acquire(&self, priority: Priority, longest: Duration) -> Result<Permit, HeldBack> {
        let entered = Instant::now();
        let deadline = entered.checked_add(longest);
        let queued = Queued {
            limiter: self,
            place: self.lock().enter(priority),
        };
        loop {
            let now = Instant::now();
            let turn = self.lock().turn(&queued.place, now);
            let wake_at = match turn {
                Turn::Now => {
                    return Ok(Permit {
                        limiter: self.clone(),
                        ticket: queued.place.ticket(),
                        waited: now.saturating_duration_since(entered),
                        under_way: true,
                    });
                }
                Turn::At(ready) | Turn::Behind(ready)
                    if deadline.is_some_and(|deadline| ready > deadline) =>
                {
                    return Err(HeldBack { wait: ready - now });
                }
                Turn::At(ready) => Some(ready),
                // Nobody who came to the gate in time is sent away for that moment.
                Turn::AfterProbe(latest) => Some(latest),
                // Those before us go this very moment and wake us. If they may not after all, our time still
                // runs out.
                Turn::Behind(ready) if ready <= now => {
                    deadline.map(|deadline| deadline.max(now + MOMENT))
                }
                // Whoever is before us wakes us; no clock is needed but the deadline.
                Turn::Behind(_) => deadline,
            };
            tokio::select! {
                biased;
                () = queued.place.woken() => {}
                () = wait_until(wake_at) => {}
            }
        }
    }

    /// Learns from the headers of an answer what is left, and says so.
    pub fn learn(&self, headers: &HeaderMap, received: Timestamp) -> Option<BudgetRecord> {
        let budget = headers::budget(headers, received)?;
        self.lock().learn(&budget, Instant::now());
        Some(BudgetRecord {
            limit: budget.limit,
            remaining: budget.remaining,
        })
    }

    /// Closes the gate for everybody, because the cloud refused a request as one too many.
    ///
    /// Without a word on how long, the gate stays closed for a second, and twice as long each further
    /// time in a row. Refusals that come in while it is closed are no further time: they were on their way.
    /// When it opens, one request goes first, and the others wait for what becomes of it.
    pub fn refused(&self, retry_after: Option<Duration>) {
        self.lock().refused(retry_after, Instant::now());
    }

    /// The cloud served a request: refusals before it are no longer "in a row".
    pub fn served(&self) {
        self.lock().served();
    }

    /// No panic can leave the counters half changed, so a poisoned lock is as good as any.
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

/// A place in the queue that is given up on drop.
struct Queued<'a> {
    limiter: &'a Limiter,
    place: Place,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.limiter.lock().leave(&self.place);
    }
}

/// The right to send one request; held until it is known what became of it.
#[derive(Debug)]
pub struct Permit {
    limiter: Limiter,
    ticket: u64,
    waited: Duration,
    under_way: bool,
}

impl Permit {
    /// How long it took to get.
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// The request is no longer under way: what the cloud says is left has it counted.
    pub fn landed(&mut self) {
        if std::mem::take(&mut self.under_way) {
            self.limiter.lock().landed();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.landed();
        self.limiter.lock().settled(self.ticket);
    }
}

#[cfg(test)]
mod tests;
