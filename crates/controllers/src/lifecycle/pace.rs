//! The pace of deletions. A node pool that was really removed is gone within minutes; a mistake that
//! nobody foresaw does not take the whole cluster at once.

use std::time::Duration;

use tokio::time::Instant;

/// A burst, then one at a time. Pure: time is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    least_burst: usize,
    share: f64,
    interval: Duration,
    /// How many may go now.
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

    /// Whether one more may go now, of a cloud with so many Nodes. If not: how long to wait.
    pub fn take(&mut self, nodes: usize, now: Instant) -> Result<(), Duration> {
        let burst = self.burst(nodes);
        self.left = match self.refilled {
            None => burst,
            Some(at) => {
                let elapsed = now.saturating_duration_since(at).as_secs_f64();
                (self.left + elapsed / self.interval.as_secs_f64().max(1e-9)).min(burst)
            }
        };
        self.refilled = Some(now);
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        Err(self.interval.mul_f64(1.0 - self.left))
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
        (0..tries).filter(|_| pace.take(nodes, now).is_ok()).count()
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
    fn after_the_burst_one_goes_per_interval_and_the_wait_is_exact() {
        let start = Instant::now();
        let mut pace = Pace::new(1, 0.0, Duration::from_secs(10));
        assert_eq!(pace.take(1, start), Ok(()));
        assert_eq!(pace.take(1, start), Err(Duration::from_secs(10)));
        let half = start + Duration::from_secs(5);
        assert_eq!(pace.take(1, half), Err(Duration::from_secs(5)));
        assert_eq!(pace.take(1, start + Duration::from_secs(10)), Ok(()));
    }

    #[test]
    fn a_long_pause_refills_no_more_than_the_burst() {
        let start = Instant::now();
        let mut pace = Pace::new(10, 0.2, Duration::from_secs(10));
        taken(&mut pace, 10, start, 100);
        let later = start + Duration::from_hours(10);
        assert_eq!(taken(&mut pace, 10, later, 100), 10);
    }
}
