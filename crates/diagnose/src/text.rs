//! Times as people read them.

use std::time::Duration;

use jiff::Timestamp;

/// How long ago, such as `3m` or `2h5m`; `0s` for what lies in the future.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let ago = now.duration_since(then);
    duration(Duration::try_from(ago).unwrap_or_default())
}

/// A duration in its two largest units, as kubectl shows ages.
pub fn duration(span: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = span.as_secs();
    let two = |large: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{rest}"),
    };
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        HOUR..DAY => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        _ => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
    }
}

/// The first few of a list, and how many more there are.
pub(crate) fn first_few<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let all: Vec<String> = all.into_iter().map(|it| it.to_string()).collect();
    let shown: Vec<_> = all.iter().take(SHOWN).map(String::as_str).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_at_most_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (125, "2m5s"),
            (3600, "1h"),
            (7500, "2h5m"),
            (86_400, "1d"),
            (100_000, "1d3h"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn of_a_long_list_the_rest_is_counted() {
        assert_eq!(first_few(["a", "b", "c"]), "a, b, c");
        assert_eq!(first_few(["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
