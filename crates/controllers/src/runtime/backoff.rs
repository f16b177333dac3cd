//! Growing pauses between attempts, and jitter, so that many managers do not retry in step.

use std::time::Duration;

/// Pauses that double from `first` up to `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// Never longer than this; also the pause after a failure that only a change by the operator can end.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many failures in a row, counted from 1.
    pub fn pause(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}

/// Between nine and eleven tenths of a period. The same seed, index and round give the same pause.
pub(crate) fn jittered(period: Duration, seed: u64, index: usize, round: u64) -> Duration {
    let index = u64::try_from(index).unwrap_or(0);
    let mixed = [index, round].iter().fold(seed, |mixed, value| {
        (mixed ^ value.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    });
    let share = u32::try_from((mixed >> 40) % 1000).unwrap_or(0);
    period.mul_f64(0.9 + 0.2 * f64::from(share) / 1000.0)
}

/// The backoff of a watch, as kube's watcher asks for it: growing pauses with jitter that follow from a seed.
pub(super) struct WatchBackoff {
    backoff: Backoff,
    seed: u64,
    /// Distinguishes watches of the same seed.
    index: usize,
    failures: u32,
    round: u64,
}

impl WatchBackoff {
    pub(super) const fn new(backoff: Backoff, seed: u64, index: usize) -> Self {
        Self {
            backoff,
            seed,
            index,
            failures: 0,
            round: 0,
        }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        self.round = self.round.wrapping_add(1);
        let pause = self.backoff.pause(self.failures);
        Some(jittered(pause, self.seed, self.index, self.round))
    }
}

impl kube::runtime::utils::Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::utils::Backoff as _;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_mins(5),
        };
        let pauses: Vec<_> = [0, 1, 2, 3, 7, 8, u32::MAX]
            .map(|failures| backoff.pause(failures).as_secs())
            .into();
        assert_eq!(pauses, [5, 5, 10, 20, 300, 300, 300]);
    }

    #[test]
    fn jitter_stays_near_the_period_and_differs() {
        let period = Duration::from_mins(10);
        let pauses: Vec<_> = (0..50).map(|round| jittered(period, 7, 0, round)).collect();
        assert!(
            pauses
                .iter()
                .all(|p| *p >= period.mul_f64(0.9) && *p <= period.mul_f64(1.1))
        );
        let distinct: std::collections::BTreeSet<_> = pauses.iter().collect();
        assert!(distinct.len() > 25, "{}", distinct.len());
    }

    #[test]
    fn the_pauses_of_a_watch_grow_start_anew_and_follow_from_the_seed() {
        const BACKOFF: Backoff = Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
        };
        let is_about = |pause: Option<Duration>, seconds: u64| {
            let (pause, expected) = (pause.unwrap(), Duration::from_secs(seconds));
            assert!(pause.abs_diff(expected) <= expected / 10, "{pause:?}");
        };
        let mut pauses = WatchBackoff::new(BACKOFF, 7, 0);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            is_about(pauses.next(), seconds);
        }
        pauses.reset();
        is_about(pauses.next(), 1);
        let first = |seed, index| WatchBackoff::new(BACKOFF, seed, index).next();
        assert_eq!(first(7, 0), first(7, 0));
        assert_ne!(first(7, 0), first(8, 0));
        assert_ne!(first(7, 0), first(7, 1));
    }
}
