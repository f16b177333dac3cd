//! Exponential backoff with full jitter: a random pause between zero and a doubling bound, so that clients that
//! failed together do not retry together.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The bounds of the pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The bound of the first pause.
    pub first: Duration,
    /// The bound that no pause exceeds.
    pub longest: Duration,
}

impl Backoff {
    /// The bound of the pause after the `failures`th failure in a row.
    pub fn bound(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }

    /// The pause after the `failures`th failure in a row.
    pub fn pause(&self, failures: u32, jitter: &Jitter) -> Duration {
        jitter.up_to(self.bound(failures))
    }
}

/// A random source that tests can seed.
#[derive(Debug)]
pub struct Jitter(Mutex<fastrand::Rng>);

impl Jitter {
    /// The same sequence every time.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// A duration between zero and `bound`, both included.
    pub fn up_to(&self, bound: Duration) -> Duration {
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Duration::from_nanos(rng.u64(..=nanos))
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Self(Mutex::new(fastrand::Rng::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(20),
    };

    #[test]
    fn bounds_double_up_to_the_longest() {
        let bounds: Vec<_> = [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX]
            .map(|failures| BACKOFF.bound(failures).as_secs())
            .into();
        assert_eq!(bounds, [1, 1, 2, 4, 8, 16, 20, 20, 20]);
    }

    #[test]
    fn pauses_use_the_whole_range_and_repeat_with_the_seed() {
        let throw = |seed| -> Vec<_> {
            let jitter = Jitter::seeded(seed);
            (0..200).map(|_| BACKOFF.pause(3, &jitter)).collect()
        };
        let pauses = throw(7);
        assert_eq!(pauses, throw(7));
        assert_ne!(pauses, throw(8));
        let bound = BACKOFF.bound(3);
        assert!(pauses.iter().all(|pause| *pause <= bound));
        assert!(pauses.iter().any(|pause| *pause < bound / 10));
        assert!(pauses.iter().any(|pause| *pause > bound * 9 / 10));
    }
}
