//! The limiter's bookkeeping. It never waits: it only says who may go, and when.

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
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// How long the others wait for what becomes of the first request after a refusal.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct State {
    settings: LimiterSettings,
    pace: Option<Bucket>,
    window: Option<Window>,
    closed_until: Option<Instant>,
    refusals_in_a_row: u32,
    probe: Option<Probe>,
    in_flight: u64,
    queue: BTreeMap<Rank, Arc<Notify>>,
    next_ticket: u64,
}

/// The one request that shows whether the cloud has enough of us still. Without it, all who waited for the
/// gate would be refused together.
#[derive(Debug)]
struct Probe {
    ticket: u64,
    patience_ends: Instant,
}

/// The most urgent first, then by arrival.
type Rank = (Reverse<Priority>, u64);

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Place {
    rank: Rank,
    bell: Arc<Notify>,
}

impl Place {
    pub(super) const fn ticket(&self) -> u64 {
        self.rank.1
    }

    pub(super) async fn woken(&self) {
        self.bell.notified().await;
    }
}

/// Whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Ours, and it has been counted.
    Now,
    /// Ours next, at this moment.
    At(Instant),
    /// Others are before us; by what is known now, ours comes at this moment.
    Behind(Instant),
    /// It would be time, but for what becomes of the first request after a refusal; at this moment at the
    /// latest.
    AfterProbe(Instant),
}

impl State {
    pub(super) fn new(settings: LimiterSettings, now: Instant) -> Self {
        Self {
            pace: settings
                .pace
                .map(|pace| Bucket::new(pace.interval, u64::from(pace.burst), now)),
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

    pub(super) fn enter(&mut self, priority: Priority) -> Place {
        let rank = (Reverse(priority), self.next_ticket);
        self.next_ticket += 1;
        let bell = Arc::new(Notify::new());
        self.queue.insert(rank, Arc::clone(&bell));
        Place { rank, bell }
    }

    pub(super) fn leave(&mut self, place: &Place) {
        self.queue.remove(&place.rank);
        self.wake_first();
    }

    /// Takes the turn if it has come. Who is first may always go before the others: the less urgent
    /// must leave more in the budget, so if the first has to wait, they have to as well.
    pub(super) fn turn(&mut self, place: &Place, now: Instant) -> Turn {
        let ahead = self.queue.range(..place.rank).count();
        let ready = self.ready_at(place.rank.0.0, ahead, now);
        if let Some(probe) = &self.probe
            && ready <= now
            && probe.patience_ends > now
        {
            return Turn::AfterProbe(probe.patience_ends);
        }
        if ahead > 0 {
            return Turn::Behind(ready);
        }
        if ready > now {
            return Turn::At(ready);
        }
        if let Some(pace) = &mut self.pace {
            pace.take(now, 1);
        }
        if let Some(window) = &mut self.window {
            window.take(now);
        }
        if self.refusals_in_a_row > 0 {
            self.probe = Some(Probe {
                ticket: place.ticket(),
                patience_ends: now + PROBE_PATIENCE,
            });
        }
        self.in_flight += 1;
        Turn::Now
    }

    fn ready_at(&self, priority: Priority, ahead: usize, now: Instant) -> Instant {
        let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
        let opens = self.closed_until.unwrap_or(now);
        let pace = self
            .pace
            .map_or(now, |pace| pace.ready_at(now, ahead.saturating_add(1)));
        let window = self.window.map_or(now, |window| {
            window.ready_at(now, self.floor(priority, window.limit()), ahead)
        });
        opens.max(pace).max(window).max(now)
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

    pub(super) fn landed(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// It is known what became of the request with this ticket.
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
        // What was under way when the gate closed is refused as well: that is still the same refusal.
        if self.closed_until.is_none_or(|opens| opens <= now) {
            self.refusals_in_a_row = self.refusals_in_a_row.saturating_add(1);
        }
        let doublings = self.refusals_in_a_row.saturating_sub(1).min(16);
        let doubled = FIRST_PAUSE.saturating_mul(1 << doublings);
        let pause = retry_after.unwrap_or_else(|| doubled.min(LONGEST_PAUSE));
        let opens = now.checked_add(pause);
        self.closed_until = self.closed_until.max(opens);
        // Everybody has to think again whether they can wait that long.
        for bell in self.queue.values() {
            bell.notify_one();
        }
    }

    pub(super) fn served(&mut self) {
        self.refusals_in_a_row = 0;
        if self.probe.take().is_some() {
            self.wake_first();
        }
    }

    fn wake_first(&self) {
        if let Some((_, bell)) = self.queue.first_key_value() {
            bell.notify_one();
        }
    }
}
