//! Limits how fast Nodes are deleted, so that an unforeseen error does not delete the whole cluster at once, while the
//! Nodes of a node pool that was really removed are deleted within minutes. Each deletion has its own proof, so the
//! limit grows with the cloud: the instances of a large one come and go all the time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::report::LimiterReport;

/// A slot that was not used for this long is lost. Those of an hour without an API server would all be used at once.
const SLOT_LASTS: Duration = Duration::from_mins(2);

/// A token bucket: a burst, then a share of the cloud's Nodes in every minute. Pure: time is given.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionLimiter {
    least_burst: usize,
    share: f64,
    interval: Duration,
    /// How many Nodes may be deleted now. Negative while Nodes wait for their slots.
    tokens: f64,
    refilled: Option<Instant>,
    /// How many Nodes the cloud had at most since the bucket was last full: deletions do not slow down those
    /// that follow.
    largest: usize,
    /// When each Node may be deleted, by UID.
    slots: BTreeMap<String, Instant>,
}

impl DeletionLimiter {
    /// A burst of at least `least_burst`, or this share of the cloud's Nodes; then one per
    /// `interval`, or the same share in every minute, whichever is more.
    pub const fn new(least_burst: usize, share: f64, interval: Duration) -> Self {
        Self {
            least_burst,
            share,
            interval,
            tokens: 0.0,
            refilled: None,
            largest: 0,
            slots: BTreeMap::new(),
        }
    }

    /// How long a Node of a cloud with so many Nodes has to wait for its slot, which is reserved once. A slot that is
    /// not needed any more has to be [released](Self::release).
    pub fn reserve(&mut self, uid: &str, nodes: usize, now: Instant) -> Duration {
        let reserved = self.slot(uid).filter(|slot| now < *slot + SLOT_LASTS);
        if let Some(slot) = reserved {
            return slot.saturating_duration_since(now);
        }
        self.refill(nodes, now);
        let missing = (1.0 - self.tokens).max(0.0);
        self.tokens -= 1.0;
        let wait = self.interval_now().mul_f64(missing);
        self.slots.insert(uid.to_owned(), now + wait);
        wait
    }

    /// A Node was deleted in its slot.
    pub fn consume(&mut self, uid: &str) {
        self.slots.remove(uid);
    }

    /// A Node is not deleted after all, so another one may be. Slots that were kept would add up while deletions are
    /// stopped, and all be used at once.
    pub fn release(&mut self, uid: &str) {
        if self.slots.remove(uid).is_some() {
            self.tokens += 1.0;
        }
    }

    /// When a Node may be deleted, if it has a slot.
    pub fn slot(&self, uid: &str) -> Option<Instant> {
        self.slots.get(uid).copied()
    }

    /// Its state.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of nodes, cut off at zero"
    )]
    pub fn report(&mut self, nodes: usize, now: Instant) -> LimiterReport {
        self.refill(nodes, now);
        LimiterReport {
            burst: self.burst(nodes) as u64,
            left: self.tokens.max(0.0) as u64,
            waiting: (-self.tokens).max(0.0).ceil() as usize,
            interval: self.interval_now(),
        }
    }

    /// The time between two slots.
    fn interval_now(&self) -> Duration {
        let in_a_minute = count(self.largest) * self.share;
        let by_size = Duration::try_from_secs_f64(60.0 / in_a_minute);
        by_size.map_or(self.interval, |by_size| by_size.min(self.interval))
    }

    fn refill(&mut self, nodes: usize, now: Instant) {
        let burst = self.burst(nodes);
        self.tokens = match self.refilled {
            None => burst,
            Some(at) => {
                let elapsed = now.saturating_duration_since(at).as_secs_f64();
                let interval = self.interval_now().as_secs_f64().max(1e-9);
                (self.tokens + elapsed / interval).min(burst)
            }
        };
        let is_full = self.tokens >= burst;
        self.largest = if is_full { 0 } else { self.largest }.max(nodes);
        self.refilled = Some(now);
    }

    fn burst(&self, nodes: usize) -> f64 {
        let share = (count(nodes) * self.share).floor();
        share.max(count(self.least_burst))
    }
}

/// No cluster has more Nodes than this can count.
fn count(nodes: usize) -> f64 {
    u32::try_from(nodes).unwrap_or(u32::MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many Nodes may be deleted at once.
    fn reserved(limiter: &mut DeletionLimiter, nodes: usize, now: Instant, tries: usize) -> usize {
        let first = limiter.slots.len();
        (first..first + tries)
            .filter(|uid| limiter.reserve(&uid.to_string(), nodes, now).is_zero())
            .count()
    }

    #[test]
    fn small_clusters_get_ten_and_large_ones_a_fifth() {
        let now = Instant::now();
        for (nodes, burst) in [(3, 10), (50, 10), (100, 20), (1000, 200)] {
            let mut limiter = DeletionLimiter::new(10, 0.2, Duration::from_secs(10));
            assert_eq!(reserved(&mut limiter, nodes, now, 2000), burst, "{nodes}");
        }
    }

    #[test]
    fn after_the_burst_each_gets_a_slot_of_its_own() {
        let start = Instant::now();
        let mut limiter = DeletionLimiter::new(1, 0.0, Duration::from_secs(10));
        let mut wait = |uid, seconds| {
            let now = start + Duration::from_secs(seconds);
            limiter.reserve(uid, 1, now).as_secs()
        };
        let waits = [wait("a", 0), wait("b", 0), wait("c", 0), wait("d", 5)];
        assert_eq!(waits, [0, 10, 20, 25]);
        assert_eq!(wait("c", 5), 15, "a slot is reserved once");
        assert_eq!(wait("c", 15 + 130), 0, "lost, and all others are over");
    }

    #[test]
    fn a_large_cloud_has_a_fifth_of_its_nodes_deleted_in_a_minute() {
        let start = Instant::now();
        let minute = Duration::from_mins(1);
        for (nodes, burst, in_a_minute) in [
            (3, 10, 6),
            (30, 10, 6),
            (100, 20, 20),
            (1000, 200, 200),
            (5000, 1000, 1000),
        ] {
            let mut limiter = DeletionLimiter::new(10, 0.2, Duration::from_secs(10));
            assert_eq!(
                reserved(&mut limiter, nodes, start, burst),
                burst,
                "{nodes}"
            );
            let waits = (0..2 * in_a_minute)
                .map(|uid| limiter.reserve(&format!("late {uid}"), nodes, start));
            let soon = waits.filter(|wait| *wait <= minute).count();
            assert_eq!(soon, in_a_minute, "{nodes}");
        }
    }

    #[test]
    fn a_slot_that_is_released_is_free_again() {
        let now = Instant::now();
        let mut limiter = DeletionLimiter::new(1, 0.0, Duration::from_secs(10));
        reserved(&mut limiter, 1, now, 2);
        limiter.release("1");
        limiter.release("1");
        limiter.consume("0");
        limiter.release("0");
        assert_eq!(limiter.reserve("2", 1, now), Duration::from_secs(10));
        let report = limiter.report(1, now);
        assert_eq!((report.burst, report.left, report.waiting), (1, 0, 1));
    }

    #[test]
    fn a_long_pause_refills_no_more_than_the_burst() {
        let start = Instant::now();
        let mut limiter = DeletionLimiter::new(10, 0.2, Duration::from_secs(10));
        reserved(&mut limiter, 10, start, 20);
        let later = start + Duration::from_hours(10);
        assert_eq!(reserved(&mut limiter, 10, later, 100), 10);
    }
}
