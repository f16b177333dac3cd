//! The state of a limiter. It never waits: it only computes which caller may go, and when.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Priority;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::LimiterSettings;
use super::bucket::{Bucket, Window};
use super::headers::Budget;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// How long the others wait for the outcome of the first request after throttling.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct State {
    settings: LimiterSettings,
    rate: Option<Bucket>,
    window: Option<Window>,
    closed_until: Option<Instant>,
    refusals_in_a_row: u32,
    probe: Option<Probe>,
    in_flight: u64,
    queue: BTreeMap<Rank, Arc<Notify>>,
    next_ticket: u64,
}

/// The one request that shows whether the cloud still throttles. Without it, all waiting callers would be throttled
/// together.
#[derive(Debug)]
struct Probe {
    ticket: u64,
    timeout_at: Instant,
}

/// The highest priority first, then by arrival.
type Rank = (Reverse<Priority>, u64);

/// A slot in the queue.
#[derive(Debug)]
pub(super) struct QueueSlot {
    rank: Rank,
    wake: Arc<Notify>,
}

impl QueueSlot {
    pub(super) const fn ticket(&self) -> u64 {
        self.rank.1
    }

    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }
}

/// When a caller may go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Now, and the request has been counted.
    Now,
    /// Next, at this time.
    At(Instant),
    /// After others; by what is known now, at this time.
    AfterOthers(Instant),
    /// It could go, but for the outcome of the probe; at this time at the latest.
    AfterProbe(Instant),
}

impl State {
    pub(super) fn new(settings: LimiterSettings, now: Instant) -> Self {
        Self {
            rate: settings
                .rate
                .map(|rate| Bucket::new(rate.interval, u64::from(rate.burst), now)),
            settings,
            window: None,
            closed_until: None,
            refusals_in_a_row: 0,
            probe: None,
            in_flight: 0,
            queue: BTreeMap::new(),
            next_ticket: 0,
        }
    }

    pub(super) fn enqueue(&mut self, priority: Priority) -> QueueSlot {
        let rank = (Reverse(priority), self.next_ticket);
        self.next_ticket += 1;
        let wake = Arc::new(Notify::new());
        self.queue.insert(rank, Arc::clone(&wake));
        QueueSlot { rank, wake }
    }

    pub(super) fn dequeue(&mut self, slot: &QueueSlot) {
        self.queue.remove(&slot.rank);
        self.wake_first();
    }

    /// Takes a request from the budget if the caller may go. The first in the queue may always go before the others:
    /// lower priorities must leave more in the budget, so if the first has to wait, they have to as well.
    pub(super) fn readiness(&mut self, slot: &QueueSlot, now: Instant) -> Readiness {
        let ahead = self.queue.range(..slot.rank).count();
        let ready = self.ready_at(slot.rank.0.0, ahead, now);
        if let Some(probe) = &self.probe
            && ready <= now
            && probe.timeout_at > now
        {
            return Readiness::AfterProbe(probe.timeout_at);
        }
        if ahead > 0 {
            return Readiness::AfterOthers(ready);
        }
        if ready > now {
            return Readiness::At(ready);
        }
        if let Some(rate) = &mut self.rate {
            rate.take(now, 1);
        }
        if let Some(window) = &mut self.window {
            window.take(now);
        }
        if self.refusals_in_a_row > 0 {
            self.probe = Some(Probe {
                ticket: slot.ticket(),
                timeout_at: now + PROBE_TIMEOUT,
            });
        }
        self.in_flight += 1;
        Readiness::Now
    }

    fn ready_at(&self, priority: Priority, ahead: usize, now: Instant) -> Instant {
        let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
        let opens = self.closed_until.unwrap_or(now);
        let rate = self
            .rate
            .map_or(now, |rate| rate.ready_at(now, ahead.saturating_add(1)));
        let window = self.window.map_or(now, |window| {
            window.ready_at(now, self.floor(priority, window.limit()), ahead)
        });
        opens.max(rate).max(window).max(now)
    }

    /// How many requests this priority leaves to others.
    fn floor(&self, priority: Priority, limit: u64) -> u64 {
        let percent = u64::from(self.settings.reserve_percent.min(100));
        let reserve = limit.saturating_mul(percent).div_ceil(100);
        match priority {
            Priority::Background => reserve,
            Priority::Normal => reserve / 2,
            Priority::Urgent => 0,
        }
    }

    pub(super) fn finished(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The outcome of the request with this ticket is known.
    pub(super) fn settled(&mut self, ticket: u64) {
        if self
            .probe
            .as_ref()
            .is_some_and(|probe| probe.ticket == ticket)
        {
            self.probe = None;
            self.wake_first();
        }
    }

    pub(super) fn learn(&mut self, budget: &Budget, now: Instant) {
        let refill = self.settings.refill;
        self.window = Some(Window::seen(now, budget, self.in_flight, refill));
        self.wake_first();
    }

    pub(super) fn refused(&mut self, retry_after: Option<Duration>, now: Instant) {
        // Requests that were in flight are throttled as well: that is still the same event.
        if self.closed_until.is_none_or(|opens| opens <= now) {
            self.refusals_in_a_row = self.refusals_in_a_row.saturating_add(1);
        }
        let doublings = self.refusals_in_a_row.saturating_sub(1).min(16);
        let doubled = FIRST_PAUSE.saturating_mul(1 << doublings);
        let pause = retry_after.unwrap_or_else(|| doubled.min(MAX_PAUSE));
        let opens = now.checked_add(pause);
        self.closed_until = self.closed_until.max(opens);
        // Every caller has to check whether it can wait that long.
        for wake in self.queue.values() {
            wake.notify_one();
        }
    }

    pub(super) fn served(&mut self) {
        self.refusals_in_a_row = 0;
        if self.probe.take().is_some() {
            self.wake_first();
        }
    }

    fn wake_first(&self) {
        if let Some((_, wake)) = self.queue.first_key_value() {
            wake.notify_one();
        }
    }
}
