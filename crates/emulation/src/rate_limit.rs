//! Rate limits: buckets that refill, one per token or project, and windows that start afresh.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderName;
use tokio::time::Instant;

use super::RateLimit;

/// How full a bucket is. It is kept as the moment at which the bucket will be full again,
/// so that there is nothing to refill and nothing to round.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    full_at: Instant,
}

/// What a call found in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Calls that a full bucket allows.
    pub limit: u32,
    /// Calls that are left.
    pub remaining: u32,
    /// Until the bucket is full again.
    pub reset: Duration,
    /// Set if the call came too early: when to come again.
    pub retry_after: Option<Duration>,
}

impl Bucket {
    /// A bucket that is full now.
    const fn full(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// Takes one call out, if there is one.
    fn take(&mut self, limit: RateLimit, now: Instant) -> Budget {
        let capacity = limit.refill.saturating_mul(limit.burst);
        // No emptier than empty, even if the limit was a larger one until now.
        let missing = self.full_at.saturating_duration_since(now).min(capacity);
        let after = missing + limit.refill;
        let too_early = after.saturating_sub(capacity);
        let missing = if too_early.is_zero() { after } else { missing };
        self.full_at = now + missing;
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

impl Budget {
    /// The headers with it. Each cloud writes in its own way when the bucket is full again.
    pub fn headers(&self, reset: String) -> Vec<(HeaderName, String)> {
        [
            ("ratelimit-limit", self.limit.to_string()),
            ("ratelimit-remaining", self.remaining.to_string()),
            ("ratelimit-reset", reset),
        ]
        .map(|(name, value)| (HeaderName::from_static(name), value))
        .into()
    }
}

/// The buckets of all callers.
#[derive(Debug, Default)]
pub struct Buckets(BTreeMap<String, Bucket>);

impl Buckets {
    /// Takes one call out of a caller's bucket, which is full at first.
    pub fn charge(&mut self, caller: &str, limit: RateLimit, now: Instant) -> Budget {
        let bucket = self.0.entry(caller.to_owned());
        bucket.or_insert_with(|| Bucket::full(now)).take(limit, now)
    }
}

/// Counts calls in a window of time, which begins with the first of them.
#[derive(Debug)]
pub struct Windows<K>(BTreeMap<K, (Instant, u32)>);

impl<K> Default for Windows<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Windows<K> {
    /// Counts a call. If there were `most` in this window already: how long the window lasts.
    pub fn charge(
        &mut self,
        key: K,
        most: u32,
        length: Duration,
        now: Instant,
    ) -> Result<(), Duration> {
        let (begun, calls) = self.0.entry(key).or_insert((now, 0));
        let age = now.saturating_duration_since(*begun);
        if age >= length {
            (*begun, *calls) = (now, 0);
        }
        if *calls >= most {
            return Err(length.saturating_sub(age));
        }
        *calls += 1;
        Ok(())
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

    #[test]
    fn a_new_limit_counts_at_once_however_large_the_old_one_was() {
        let large = RateLimit {
            burst: u32::MAX,
            refill: Duration::from_hours(2_000_000),
        };
        let small = RateLimit {
            burst: 2,
            refill: Duration::from_secs(10),
        };
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        for _ in 0..50 {
            assert_eq!(bucket.take(large, start).retry_after, None);
        }
        for (case, second, retry_after) in [
            ("it is empty", 0, Some(10)),
            ("one is back", 10, None),
            ("all are back", 100, None),
        ] {
            let budget = bucket.take(small, start + Duration::from_secs(second));
            let retry_after = retry_after.map(Duration::from_secs);
            assert_eq!(budget.retry_after, retry_after, "{case}");
        }
    }

    #[test]
    fn every_caller_has_a_bucket_and_headers_say_what_is_in_it() {
        let limit = RateLimit {
            burst: 2,
            refill: Duration::from_secs(10),
        };
        let mut buckets = Buckets::default();
        let now = Instant::now();
        buckets.charge("a", limit, now);
        assert_eq!(buckets.charge("a", limit, now).remaining, 0);
        let budget = buckets.charge("b", limit, now);
        let headers = budget.headers("10".to_owned());
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(
            headers,
            [
                "ratelimit-limit: 2",
                "ratelimit-remaining: 1",
                "ratelimit-reset: 10"
            ]
        );
    }

    #[test]
    fn a_window_starts_afresh_when_it_is_over() {
        let start = Instant::now();
        let mut windows = Windows::default();
        for (case, key, second, expected) in [
            ("first", "a", 0, Ok(())),
            ("second", "a", 5, Ok(())),
            ("too many", "a", 6, Err(4)),
            ("another", "b", 6, Ok(())),
            ("afresh", "a", 10, Ok(())),
        ] {
            let now = start + Duration::from_secs(second);
            let charged = windows.charge(key, 2, Duration::from_secs(10), now);
            assert_eq!(charged, expected.map_err(Duration::from_secs), "{case}");
        }
    }
}
