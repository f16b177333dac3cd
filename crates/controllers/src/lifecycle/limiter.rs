//! How fast Nodes are deleted. A node pool that was really removed is gone within minutes; a mistake that
//! was not foreseen does not take the whole cluster at once. Each deletion is proven by itself, so the limit follows
//! the size of the cloud: the machines of a large one come and go all the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::report::PaceReport;

/// A burst, then a share of the cloud's Nodes in every minute. Pure: time is given.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionLimiter {
    least_burst: usize,
    share: f64,
    interval: Duration,
    /// How many may go now. Less than nothing while turns are promised.
    left: f64,
    refilled: Option<Instant>,
    /// How many Nodes the cloud had at most since the burst was last whole: deletions do not slow down those
    /// that are promised a turn after them.
    largest: usize,
}

impl DeletionLimiter {
    /// A burst of at least `least_burst`, or this share of the cloud's Nodes; then one per
    /// `interval`, or the same share in every minute, whichever is more.
    pub const fn new(least_burst: usize, share: f64, interval: Duration) -> Self {
        Self {
            least_burst,
            share,
            interval,
            left: 0.0,
            refilled: None,
            largest: 0,
        }
    }

    /// Promises a turn to one more, of a cloud with so many Nodes, and says how long it has to wait for
    /// it. A promise that is not used has to be [given back](Self::give_back).
    pub fn take(&mut self, nodes: usize, now: Instant) -> Duration {
        self.refill(nodes, now);
        let missing = (1.0 - self.left).max(0.0);
        self.left -= 1.0;
        self.interval_now().mul_f64(missing)
    }

    /// A turn that was promised is not needed after all.
    pub fn give_back(&mut self) {
        self.left += 1.0;
    }

    /// How it stands.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of nodes, cut off at zero"
    )]
    pub fn report(&mut self, nodes: usize, now: Instant) -> PaceReport {
        self.refill(nodes, now);
        PaceReport {
            burst: self.burst(nodes) as u64,
            left: self.left.max(0.0) as u64,
            waiting: (-self.left).max(0.0).ceil() as usize,
            interval: self.interval_now(),
        }
    }

    /// The time between two turns.
    #[expect(
        clippy::cast_precision_loss,
        reason = "no cluster has so many nodes that a float could not count them"
    )]
    fn interval_now(&self) -> Duration {
        let in_a_minute = self.largest as f64 * self.share;
        let by_size = Duration::try_from_secs_f64(60.0 / in_a_minute);
        by_size.map_or(self.interval, |by_size| by_size.min(self.interval))
    }

    fn refill(&mut self, nodes: usize, now: Instant) {
        let burst = self.burst(nodes);
        self.left = match self.refilled {
            None => burst,
            Some(at) => {
                let elapsed = now.saturating_duration_since(at).as_secs_f64();
                let interval = self.interval_now().as_secs_f64().max(1e-9);
                (self.left + elapsed / interval).min(burst)
            }
        };
        let is_whole = self.left >= burst;
        self.largest = if is_whole {
            nodes
        } else {
            self.largest.max(nodes)
        };
        self.refilled = Some(now);
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "no cluster has so many nodes that a float could not count them"
    )]
    fn burst(&self, nodes: usize) -> f64 {
        (nodes as f64 * self.share)
            .floor()
            .max(self.least_burst as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(limiter: &mut DeletionLimiter, nodes: usize, now: Instant, tries: usize) -> usize {
        (0..tries)
            .filter(|_| limiter.take(nodes, now).is_zero())
            .count()
    }

    #[test]
    fn small_clusters_get_ten_and_large_ones_a_fifth() {
        let now = Instant::now();
        for (nodes, burst) in [(3, 10), (50, 10), (100, 20), (1000, 200)] {
            let mut limiter = DeletionLimiter::new(10, 0.2, Duration::from_secs(10));
            assert_eq!(taken(&mut limiter, nodes, now, 2000), burst, "{nodes}");
        }
    }

    #[test]
    fn after_the_burst_each_gets_a_turn_of_its_own() {
        let start = Instant::now();
        let mut limiter = DeletionLimiter::new(1, 0.0, Duration::from_secs(10));
        let mut wait = |seconds| {
            let now = start + Duration::from_secs(seconds);
            limiter.take(1, now).as_secs()
        };
        assert_eq!([wait(0), wait(0), wait(0), wait(5)], [0, 10, 20, 25]);
        assert_eq!(wait(60), 0, "all turns are over");
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
            assert_eq!(taken(&mut limiter, nodes, start, burst), burst, "{nodes}");
            let waits = (0..2 * in_a_minute).map(|_| limiter.take(nodes, start));
            let soon = waits.filter(|wait| *wait <= minute).count();
            assert_eq!(soon, in_a_minute, "{nodes}");
        }
    }

    #[test]
    fn a_turn_that_is_given_back_is_free_again() {
        let now = Instant::now();
        let mut limiter = DeletionLimiter::new(1, 0.0, Duration::from_secs(10));
        taken(&mut limiter, 1, now, 2);
        limiter.give_back();
        assert_eq!(limiter.take(1, now), Duration::from_secs(10));
        let report = limiter.report(1, now);
        assert_eq!((report.burst, report.left, report.waiting), (1, 0, 1));
    }

    #[test]
    fn a_long_pause_refills_no_more_than_the_burst() {
        let start = Instant::now();
        let mut limiter = DeletionLimiter::new(10, 0.2, Duration::from_secs(10));
        taken(&mut limiter, 10, start, 20);
        let later = start + Duration::from_hours(10);
        assert_eq!(taken(&mut limiter, 10, later, 100), 10);
    }
}
