//! Rate limits in response headers.

use std::time::{Duration, SystemTime};

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;

/// Longer waits are shortened to this: one wrong header must not block a credential for a day, and one more request
/// after an hour is harmless.
const LONGEST: Duration = Duration::from_hours(1);

/// From here on, a number of seconds is a time since 1970 (this one is in 2001), not a wait.
const FIRST_EPOCH: u64 = 1_000_000_000;

/// From here on, it is a time in milliseconds.
const FIRST_EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// The remaining request budget, as the cloud reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Requests allowed per window.
    pub limit: u64,
    /// Requests left in it.
    pub remaining: u64,
    /// When all of `limit` is available again, if the cloud reports it.
    pub reset: Option<Duration>,
}

/// How long the cloud asks to wait. `received` is when the response arrived, by our own clock.
///
/// Reads seconds, an HTTP date (compared with the response's own `Date`, since clocks differ), and Azure's
/// milliseconds.
pub fn retry_after(headers: &HeaderMap, received: Timestamp) -> Option<Duration> {
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        if let Some(millis) = headers
            .get(name)
            .and_then(|value| leading(value.as_bytes()))
        {
            return Some(Duration::from_millis(millis).min(LONGEST));
        }
    }
    let value = headers.get(RETRY_AFTER)?;
    if let Some(seconds) = seconds(value.as_bytes()) {
        return Some(seconds.min(LONGEST));
    }
    let moment = http_date(value.to_str().ok()?)?;
    Some(until(moment, cloud_time(headers, received)))
}

/// The budget from `RateLimit-*` or `X-RateLimit-*` headers; `None` unless limit and remainder are both present.
pub fn budget(headers: &HeaderMap, received: Timestamp) -> Option<Budget> {
    let read = |names: [HeaderName; 2]| {
        let value = names.into_iter().find_map(|name| headers.get(name))?;
        leading(value.as_bytes())
    };
    let limit = read([
        HeaderName::from_static("ratelimit-limit"),
        HeaderName::from_static("x-ratelimit-limit"),
    ])?;
    let remaining = read([
        HeaderName::from_static("ratelimit-remaining"),
        HeaderName::from_static("x-ratelimit-remaining"),
    ])?;
    let reset = read([
        HeaderName::from_static("ratelimit-reset"),
        HeaderName::from_static("x-ratelimit-reset"),
    ])
    .map(|value| reset_in(value, cloud_time(headers, received)));
    (limit > 0).then(|| Budget {
        limit,
        remaining: remaining.min(limit),
        reset,
    })
}

fn reset_in(value: u64, now: Timestamp) -> Duration {
    let moment = match value {
        FIRST_EPOCH_MILLIS.. => i64::try_from(value)
            .ok()
            .and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        FIRST_EPOCH.. => i64::try_from(value)
            .ok()
            .and_then(|seconds| Timestamp::from_second(seconds).ok()),
        _ => return Duration::from_secs(value).min(LONGEST),
    };
    moment.map_or(LONGEST, |moment| until(moment, now))
}

/// The time by the cloud's own clock, so that a wrong clock here does not extend waits.
fn cloud_time(headers: &HeaderMap, received: Timestamp) -> Timestamp {
    headers
        .get(DATE)
        .and_then(|value| http_date(value.to_str().ok()?))
        .unwrap_or(received)
}

fn http_date(text: &str) -> Option<Timestamp> {
    let moment: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    Timestamp::try_from(moment).ok()
}

fn until(moment: Timestamp, now: Timestamp) -> Duration {
    // Before now means now.
    Duration::try_from(moment.duration_since(now))
        .unwrap_or_default()
        .min(LONGEST)
}

/// Whole or fractional seconds, rounded up to the next millisecond.
fn seconds(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    let seconds: f64 = text.parse().ok()?;
    let longest = LONGEST.as_secs_f64();
    Some(Duration::from_secs_f64(seconds.clamp(0.0, longest)))
}

/// The number that a value starts with: `100`, but also `100, 100;w=60`.
fn leading(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let ends_cleanly = rest
        .trim_start()
        .chars()
        .next()
        .is_none_or(|c| matches!(c, ',' | ';' | '.'));
    if !ends_cleanly {
        return None;
    }
    match digits.parse() {
        Ok(number) => Some(number),
        Err(_) if digits.is_empty() => None,
        Err(_) => Some(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        // 1_800_000_000 is Fri, 15 Jan 2027 08:00:00 GMT.
        for (case, pairs, expected) in [
            ("seconds", vec![("Retry-After", "7")], Some(7_000)),
            ("zero", vec![("retry-after", "0")], Some(0)),
            ("spaces", vec![("Retry-After", " 7 ")], Some(7_000)),
            ("fraction", vec![("Retry-After", "1.5")], Some(1_500)),
            (
                "date",
                vec![("Retry-After", "Fri, 15 Jan 2027 08:00:30 GMT")],
                Some(30_000),
            ),
            (
                "old date form",
                vec![("Retry-After", "Friday, 15-Jan-27 08:00:30 GMT")],
                Some(30_000),
            ),
            (
                "past date",
                vec![("Retry-After", "Fri, 15 Jan 2027 07:00:00 GMT")],
                Some(0),
            ),
            (
                "our clock is an hour behind",
                vec![
                    ("Retry-After", "Fri, 15 Jan 2027 09:00:30 GMT"),
                    ("Date", "Fri, 15 Jan 2027 09:00:00 GMT"),
                ],
                Some(30_000),
            ),
            (
                "Azure",
                vec![("x-ms-retry-after-ms", "250"), ("Retry-After", "9")],
                Some(250),
            ),
            (
                "absurd",
                vec![("Retry-After", "99999999999999999999999")],
                Some(3_600_000),
            ),
            ("negative", vec![("Retry-After", "-5")], None),
            ("words", vec![("Retry-After", "soon")], None),
            ("infinite", vec![("Retry-After", "inf")], None),
            ("empty", vec![("Retry-After", "")], None),
            ("absent", vec![], None),
        ] {
            let found = retry_after(&headers(&pairs), now());
            assert_eq!(found, expected.map(Duration::from_millis), "{case}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn budgets_are_read_in_every_form() {
        let budget_of = |limit, remaining, reset| {
            Some(Budget {
                limit,
                remaining,
                reset: Option::map(reset, Duration::from_secs),
            })
        };
        for (case, pairs, expected) in [
            (
                "Hetzner: epoch",
                vec![
                    ("RateLimit-Limit", "3600"),
                    ("RateLimit-Remaining", "3599"),
                    ("RateLimit-Reset", "1800000001"),
                ],
                budget_of(3600, 3599, Some(1)),
            ),
            (
                "DigitalOcean: lower case",
                vec![
                    ("ratelimit-limit", "5000"),
                    ("ratelimit-remaining", "4816"),
                    ("ratelimit-reset", "1800003600"),
                ],
                budget_of(5000, 4816, Some(3600)),
            ),
            (
                "with X and seconds",
                vec![
                    ("X-RateLimit-Limit", "100"),
                    ("X-RateLimit-Remaining", "0"),
                    ("X-RateLimit-Reset", "30"),
                ],
                budget_of(100, 0, Some(30)),
            ),
            (
                "a list of policies",
                vec![
                    ("RateLimit-Limit", "100, 100;w=60"),
                    ("RateLimit-Remaining", "50"),
                    ("RateLimit-Reset", "12"),
                ],
                budget_of(100, 50, Some(12)),
            ),
            (
                "milliseconds",
                vec![
                    ("RateLimit-Limit", "10"),
                    ("RateLimit-Remaining", "5"),
                    ("RateLimit-Reset", "1800000005000"),
                ],
                budget_of(10, 5, Some(5)),
            ),
            (
                "reset has passed",
                vec![
                    ("RateLimit-Limit", "10"),
                    ("RateLimit-Remaining", "5"),
                    ("RateLimit-Reset", "1700000000"),
                ],
                budget_of(10, 5, Some(0)),
            ),
            (
                "more left than allowed",
                vec![("RateLimit-Limit", "10"), ("RateLimit-Remaining", "50")],
                budget_of(10, 10, None),
            ),
            ("no remainder", vec![("RateLimit-Limit", "10")], None),
            ("no limit", vec![("RateLimit-Remaining", "10")], None),
            (
                "limit zero",
                vec![("RateLimit-Limit", "0"), ("RateLimit-Remaining", "0")],
                None,
            ),
            (
                "words",
                vec![("RateLimit-Limit", "many"), ("RateLimit-Remaining", "few")],
                None,
            ),
            (
                "glued words",
                vec![("RateLimit-Limit", "10x"), ("RateLimit-Remaining", "5")],
                None,
            ),
        ] {
            assert_eq!(budget(&headers(&pairs), now()), expected, "{case}");
        }
    }

    fn any_value() -> impl Strategy<Value = HeaderValue> {
        let bytes = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            any::<u64>().prop_map(|number| number.to_string().into_bytes()),
            "[0-9.,;: GMTa-z-]{0,40}".prop_map(String::into_bytes),
        ];
        bytes.prop_filter_map("not a header value", |bytes| {
            HeaderValue::from_bytes(&bytes).ok()
        })
    }

    proptest! {
        #[test]
        fn no_header_value_makes_the_parsers_panic_or_wait_for_more_than_an_hour(
            values in prop::collection::vec(any_value(), 7),
            now in -1_000_000_000i64..4_000_000_000,
        ) {
            let names = [
                "retry-after", "date", "retry-after-ms", "ratelimit-limit", "ratelimit-remaining",
                "x-ratelimit-limit", "ratelimit-reset",
            ];
            for skipped in 0..names.len() {
                let headers: HeaderMap = names
                    .iter()
                    .zip(&values)
                    .enumerate()
                    .filter(|(at, _)| *at != skipped)
                    .map(|(_, (name, value))| (HeaderName::from_static(name), value.clone()))
                    .collect();
                let now = Timestamp::from_second(now).unwrap();
                prop_assert!(retry_after(&headers, now).unwrap_or_default() <= LONGEST);
                if let Some(budget) = budget(&headers, now) {
                    prop_assert!(budget.remaining <= budget.limit);
                    prop_assert!(budget.reset.unwrap_or_default() <= LONGEST);
                }
            }
        }
    }
}
