//! The pace of deletions. A node pool that was really removed is gone within minutes; a mistake that
//! nobody foresaw does not take the whole cluster at once.

use std::time::Duration;

use tokio::time::Instant;

use crate::report::PaceReport;

/// A burst, then one at a time. Pure: time is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    least_burst: usize,
    share: f64,
    interval: Duration,
    /// How many may go now. Less than nothing while turns are promised.
    left: f64,
    refilled: Option<Instant>,
}

impl Pace {
    /// A burst of at least `least_burst`, or this share of the cloud's Nodes, then one per
    /// `interval`.
    pub const fn new(least_burst: usize, share: f64, interval: Duration) -> Self {
        Self {
            least_burst,
            share,
            interval,
            left: 0.0,
            refilled: None,
        }
    }

    /// Promises a turn to one more, of a cloud with so many Nodes, and says how long it has to wait for
    /// it. A promise that is not used has to be [given back](Self::give_back).
    pub fn take(&mut self, nodes: usize, now: Instant) -> Duration {
        self.refill(nodes, now);
        let missing = (1.0 - self.left).max(0.0);
        self.left -= 1.0;
        self.interval.mul_f64(missing)
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
            interval: self.interval,
        }
    }

    fn refill(&mut self, nodes: usize, now: Instant) {
        let burst = self.burst(nodes);
        self.left = match self.refilled {
            None => burst,
            Some(at) => {
                let elapsed = now.saturating_duration_since(at).as_secs_f64();
                (self.left + elapsed / self.interval.as_secs_f64().max(1e-9)).min(burst)
            }
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

    fn taken(pace: &mut Pace, nodes: usize, now: Instant, tries: usize) -> usize {
        (0..tries)
            .filter(|_| pace.take(nodes, now).is_zero())
            .count()
    }

    #[test]
    fn small_clusters_get_ten_and_large_ones_a_fifth() {
        let now = Instant::now();
        for (nodes, burst) in [(3, 10), (50, 10), (100, 20), (1000, 200)] {
            let mut pace = Pace::new(10, 0.2, Duration::from_secs(10));
            assert_eq!(taken(&mut pace, nodes, now, 2000), burst, "{nodes}");
        }
    }

    #[test]
    fn after_the_burst_each_gets_a_turn_of_its_own() {
        let start = Instant::now();
        let mut pace = Pace::new(1, 0.0, Duration::from_secs(10));
        let mut wait = |seconds| {
            let now = start + Duration::from_secs(seconds);
            pace.take(1, now).as_secs()
        };
        assert_eq!([wait(0), wait(0), wait(0), wait(5)], [0, 10, 20, 25]);
        assert_eq!(wait(60), 0, "all turns are over");
    }

    #[test]
    fn a_turn_that_is_given_back_is_somebody_elses() {
        let now = Instant::now();
        let mut pace = Pace::new(1, 0.0, Duration::from_secs(10));
        taken(&mut pace, 1, now, 2);
        pace.give_back();
        assert_eq!(pace.take(1, now), Duration::from_secs(10));
        let report = pace.report(1, now);
        assert_eq!((report.burst, report.left, report.waiting), (1, 0, 1));
    }

    #[test]
    fn a_long_pause_refills_no_more_than_the_burst() {
        let start = Instant::now();
        let mut pace = Pace::new(10, 0.2, Duration::from_secs(10));
        taken(&mut pace, 10, start, 20);
        let later = start + Duration::from_hours(10);
        assert_eq!(taken(&mut pace, 10, later, 100), 10);
    }
}
