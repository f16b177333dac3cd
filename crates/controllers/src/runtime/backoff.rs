//! Growing pauses between attempts.

use std::time::Duration;

/// Pauses that double from `first` up to `longest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// Never longer than this; also the pause when only a person can help.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many failures in a row, counted from 1.
    pub fn pause(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
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
}
