//! Pauses that differ a little, so that many managers do not knock in step.

use std::time::Duration;

/// Between nine and eleven tenths of a period. The same seed, index and round give the same pause.
pub(crate) fn jittered(period: Duration, seed: u64, index: usize, round: u64) -> Duration {
    let index = u64::try_from(index).unwrap_or(0);
    let mixed = [index, round].iter().fold(seed, |mixed, value| {
        (mixed ^ value.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    });
    let share = u32::try_from((mixed >> 40) % 1000).unwrap_or(0);
    period.mul_f64(0.9 + 0.2 * f64::from(share) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
