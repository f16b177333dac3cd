//! Choices from one seed.

use std::time::Duration;

/// A source of choices: the same seed, the same choices.
#[derive(Debug, Clone)]
pub(crate) struct Rng(fastrand::Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // Seeds that people type are close to each other; their choices should not be.
        Self(fastrand::Rng::with_seed(
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D,
        ))
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        self.0.u32(low..=high)
    }

    /// Below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(0..end.max(1))
    }

    /// A time before `end`, in whole tenths of a second.
    pub(crate) fn time(&mut self, end: Duration) -> Duration {
        let tenths = u64::try_from(end.as_millis() / 100).unwrap_or(u64::MAX);
        Duration::from_millis(self.0.u64(0..=tenths) * 100)
    }

    /// So many seconds, from `low` to `high`.
    pub(crate) fn seconds(&mut self, low: u32, high: u32) -> Duration {
        Duration::from_secs(u64::from(self.between(low, high)))
    }

    /// Whether something with so many chances in a hundred happens.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.between(1, 100) <= percent
    }

    /// One of them.
    pub(crate) fn one_of<T: Clone>(&mut self, things: &[T]) -> Option<T> {
        things.get(self.below(things.len())).cloned()
    }

    /// The seed of another source.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.u64(..)
    }
}
