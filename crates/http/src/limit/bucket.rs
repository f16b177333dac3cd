//! Two ways to count requests: our own rate, and the cloud's window. Both are pure: the time is a parameter.

use std::time::Duration;

use tokio::time::Instant;

use super::headers::Budget;

/// A constant rate with a burst. Its only state is the time at which it will be full again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    interval: Duration,
    burst: u64,
    full_at: Instant,
}

impl Bucket {
    /// `burst` requests, one coming back every `interval`, all there at `full_at`.
    pub(super) fn new(interval: Duration, burst: u64, full_at: Instant) -> Self {
        Self {
            interval,
            burst: burst.max(1),
            full_at,
        }
    }

    /// When `needed` requests are available. More than the burst are never available at once, but callers further
    /// back in the queue can still compute when they may go.
    pub(super) fn ready_at(&self, now: Instant, needed: u64) -> Instant {
        let full_at = self.full_at.max(now);
        let ready = if needed > self.burst {
            later(full_at, times(self.interval, needed - self.burst))
        } else {
            full_at
                .checked_sub(times(self.interval, self.burst - needed))
                .unwrap_or(now)
        };
        ready.max(now)
    }

    pub(super) fn take(&mut self, now: Instant, count: u64) {
        self.full_at = later(self.full_at.max(now), times(self.interval, count));
    }
}

/// How a cloud restores requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refill {
    /// All at once when the window ends. Also the safe guess.
    #[default]
    AtReset,
    /// One by one, so that all are back at the reset, as Hetzner does.
    Gradual,
}

/// The assumed length of a window if the cloud does not report it.
const UNKNOWN_RESET: Duration = Duration::from_mins(1);

/// The window that the cloud last reported, minus what was sent since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    limit: u64,
    left: Left,
}

#[derive(Debug, Clone, Copy)]
enum Left {
    AtReset { remaining: u64, reset: Instant },
    Gradual(Bucket),
}

impl Window {
    /// The window after a response, with `in_flight` other requests under way that the cloud may not have counted
    /// yet.
    pub(super) fn seen(now: Instant, budget: &Budget, in_flight: u64, refill: Refill) -> Self {
        let limit = budget.limit;
        let reset = budget.reset.unwrap_or(UNKNOWN_RESET);
        let left = match refill {
            Refill::AtReset => Left::AtReset {
                remaining: budget.remaining.saturating_sub(in_flight),
                reset: later(now, reset),
            },
            Refill::Gradual => {
                let missing = limit.saturating_sub(budget.remaining).max(1);
                let interval = reset / u32::try_from(missing).unwrap_or(u32::MAX);
                let mut bucket = Bucket::new(interval, limit, later(now, reset));
                bucket.take(now, in_flight);
                Left::Gradual(bucket)
            }
        };
        Self { limit, left }
    }

    /// The cloud's limit.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// When more than `floor` requests are left for a caller with `ahead` others before it.
    pub(super) fn ready_at(&self, now: Instant, floor: u64, ahead: u64) -> Instant {
        // With a full window even the lowest priority may go, or it never could.
        let floor = floor.min(self.limit.saturating_sub(1));
        let needed = floor.saturating_add(ahead).saturating_add(1);
        match &self.left {
            Left::AtReset { remaining, reset } if *remaining < needed => (*reset).max(now),
            Left::AtReset { .. } => now,
            Left::Gradual(bucket) => bucket.ready_at(now, needed),
        }
    }

    pub(super) fn take(&mut self, now: Instant) {
        match &mut self.left {
            Left::AtReset { remaining, reset } => {
                if now >= *reset {
                    *remaining = self.limit;
                    *reset = later(now, UNKNOWN_RESET);
                }
                *remaining = remaining.saturating_sub(1);
            }
            Left::Gradual(bucket) => bucket.take(now, 1),
        }
    }
}

fn times(interval: Duration, count: u64) -> Duration {
    interval.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

/// `moment + wait`, or a day from the moment if that is beyond what a clock can show.
fn later(moment: Instant, wait: Duration) -> Instant {
    moment
        .checked_add(wait)
        .unwrap_or_else(|| moment + Duration::from_hours(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_bucket_gives_its_burst_and_then_keeps_the_pace() {
        let start = Instant::now();
        let mut bucket = Bucket::new(SECOND, 3, start);
        let mut times = Vec::new();
        for _ in 0..6 {
            let at = bucket.ready_at(start, 1);
            bucket.take(at, 1);
            times.push((at - start).as_secs());
        }
        assert_eq!(times, [0, 0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_bucket_never_saves_more_than_its_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(SECOND, 2, start);
        bucket.take(start, 1);
        let later = start + 100 * SECOND;
        bucket.take(later, 2);
        assert_eq!(bucket.ready_at(later, 1), later + SECOND);
        assert_eq!(
            bucket.ready_at(later, 3),
            later + 3 * SECOND,
            "third in the queue"
        );
    }

    fn budget(limit: u64, remaining: u64, reset: Option<u64>) -> Budget {
        Budget {
            limit,
            remaining,
            reset: reset.map(Duration::from_secs),
        }
    }

    /// How many seconds a caller waits that leaves `floor` requests to others.
    fn wait(refill: Refill, seen: Budget, in_flight: u64, floor: u64, ahead: u64) -> u64 {
        let now = Instant::now();
        let window = Window::seen(now, &seen, in_flight, refill);
        (window.ready_at(now, floor, ahead) - now).as_secs()
    }

    #[test]
    fn a_window_that_resets_says_when_enough_is_left() {
        let all = Refill::AtReset;
        let left = |remaining| budget(100, remaining, Some(60));
        assert_eq!(wait(all, left(50), 0, 20, 0), 0, "plenty");
        assert_eq!(wait(all, left(21), 0, 20, 0), 0, "just enough");
        assert_eq!(wait(all, left(20), 0, 20, 0), 60, "at the floor");
        assert_eq!(wait(all, left(21), 0, 20, 1), 60, "others ahead");
        assert_eq!(wait(all, left(21), 1, 20, 0), 60, "others under way");
        assert_eq!(
            wait(all, budget(100, 0, None), 0, 0, 0),
            60,
            "no reset known"
        );
        assert_eq!(
            wait(all, budget(1, 1, Some(60)), 0, 1, 0),
            0,
            "tiny but full"
        );
    }

    #[test]
    fn a_window_that_refills_says_when_enough_is_back() {
        let slowly = Refill::Gradual;
        // One is restored every second.
        let left = |remaining| budget(100, remaining, Some(100 - remaining));
        assert_eq!(wait(slowly, left(50), 0, 20, 0), 0, "plenty");
        assert_eq!(wait(slowly, left(20), 0, 20, 0), 1, "at the floor");
        assert_eq!(wait(slowly, left(20), 0, 20, 4), 5, "others ahead");
        assert_eq!(wait(slowly, left(21), 2, 20, 0), 2, "others under way");
        assert_eq!(wait(slowly, left(0), 0, 20, 0), 21, "far below");
        assert_eq!(wait(slowly, left(0), 0, 0, 0), 1, "spent, and urgent");
        assert_eq!(wait(slowly, left(100), 0, 20, 0), 0, "full");
        assert_eq!(
            wait(slowly, left(100), 0, 100, 0),
            0,
            "all is reserved, but full"
        );
    }

    #[test]
    fn what_is_sent_is_counted_until_the_cloud_speaks_again() {
        let now = Instant::now();
        let mut window = Window::seen(now, &budget(10, 4, Some(60)), 0, Refill::AtReset);
        window.take(now);
        window.take(now);
        assert_eq!(window.ready_at(now, 2, 0), now + 60 * SECOND);
        let after = now + 61 * SECOND;
        assert_eq!(window.ready_at(after, 2, 0), after, "the window began anew");
        window.take(after);
        assert_eq!(window.ready_at(after, 8, 0), after);
        assert_eq!(window.ready_at(after, 9, 0), after + 60 * SECOND);
    }
}
