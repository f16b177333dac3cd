//! A bucket of calls per token.

use std::time::Duration;

use tokio::time::Instant;

use super::settings::RateLimit;

/// How full a token's bucket is. It is kept as the moment at which the bucket will be full again,
/// so that there is nothing to refill and nothing to round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    full_at: Instant,
}

/// What a call found in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// Until the bucket is full again.
    pub(crate) reset: Duration,
    /// Set if the call came too early: when to come again.
    pub(crate) retry_after: Option<Duration>,
}

impl Bucket {
    pub(crate) const fn full(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// Takes one call out, if there is one.
    pub(crate) fn take(&mut self, limit: RateLimit, now: Instant) -> Budget {
        let missing = self.full_at.saturating_duration_since(now);
        let capacity = limit.refill * limit.burst;
        let after = missing + limit.refill;
        let too_early = after.saturating_sub(capacity);
        if too_early.is_zero() {
            self.full_at = now + after;
        }
        let missing = self.full_at.saturating_duration_since(now);
        let left = capacity.saturating_sub(missing).as_nanos();
        let remaining = left.checked_div(limit.refill.as_nanos());
        Budget {
            limit: limit.burst,
            remaining: remaining
                .and_then(|calls| u32::try_from(calls).ok())
                .unwrap_or(limit.burst),
            reset: missing,
            retry_after: (!too_early.is_zero()).then_some(too_early),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_refuses_and_refills() {
        let limit = RateLimit {
            burst: 2,
            refill: Duration::from_secs(10),
        };
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        for (case, second, remaining, retry_after) in [
            ("first", 0, 1, None),
            ("second", 0, 0, None),
            ("too early", 0, 0, Some(10)),
            ("still too early", 4, 0, Some(6)),
            ("one is back", 10, 0, None),
            ("all are back", 100, 1, None),
        ] {
            let budget = bucket.take(limit, start + Duration::from_secs(second));
            assert_eq!(budget.remaining, remaining, "{case}");
            assert_eq!(
                budget.retry_after,
                retry_after.map(Duration::from_secs),
                "{case}"
            );
        }
    }
}
