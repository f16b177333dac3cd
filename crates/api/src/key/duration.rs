//! Durations as Go writes them, because flags, variables and files of the Go CCMs use that form.

use std::time::Duration;

/// What Go holds in a duration: 64 bits of nanoseconds, with a sign.
const LONGEST: Duration = Duration::from_nanos(i64::MAX.unsigned_abs());

/// Reads `1h`, `1m30s`, `1.5s`, `500ms`, `0`. A bare number other than `0` is rejected, and so is a negative one,
/// which none of our keys needs. As in Go, durations of more than 292 years are rejected too.
pub fn parse_go_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(number_end);
        let unit_end = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        if !number.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let count: f64 = number.parse().ok()?;
        let part = Duration::try_from_secs_f64(count * seconds_per(unit)?).ok()?;
        total = total.checked_add(part)?;
        rest = behind;
    }
    (total <= LONGEST).then_some(total)
}

fn seconds_per(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

/// Writes a duration as Go does: `1h30m0s`, `10s`, `500ms`, `0s`.
pub fn format_go_duration(duration: Duration) -> String {
    let nanos = duration.subsec_nanos();
    let seconds = duration.as_secs();
    if seconds == 0 {
        return match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => with_fraction(nanos / 1_000, nanos % 1_000, 3, "µs"),
            _ => with_fraction(nanos / 1_000_000, nanos % 1_000_000, 6, "ms"),
        };
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let tail = with_fraction(seconds % 60, nanos, 9, "s");
    match (hours, minutes) {
        (0, 0) => tail,
        (0, minutes) => format!("{minutes}m{tail}"),
        (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
    }
}

fn with_fraction(
    whole: impl std::fmt::Display,
    fraction: u32,
    digits: usize,
    unit: &str,
) -> String {
    if fraction == 0 {
        return format!("{whole}{unit}");
    }
    let fraction = format!("{fraction:0digits$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, millis) in [
            ("0", 0),
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("500ms", 500),
            ("+5s", 5_000),
            ("2h", 7_200_000),
            ("1h0m0s", 3_600_000),
            ("2562047h", 9_223_369_200_000),
        ] {
            assert_eq!(
                parse_go_duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_go_refuses_and_negative_values() {
        for text in [
            "",
            "2562048h",
            "206004000040744000s",
            "5",
            "s",
            "+",
            "5 s",
            "5x",
            "-5s",
            "1.s.",
            "..s",
            "1m5",
            "99999999999999999999h",
        ] {
            assert_eq!(parse_go_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn writes_what_go_writes() {
        for (text, nanos) in [
            ("0s", 0_u64),
            ("500ms", 500_000_000),
            ("1.5ms", 1_500_000),
            ("10s", 10_000_000_000),
            ("1m30s", 90_000_000_000),
            ("12h0m0s", 43_200_000_000_000),
            ("1.5s", 1_500_000_000),
        ] {
            assert_eq!(format_go_duration(Duration::from_nanos(nanos)), text);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,30}") {
            let _ = parse_go_duration(&text);
        }

        #[test]
        fn written_durations_are_read_back(millis in 0_u64..100_000_000) {
            let duration = Duration::from_millis(millis);
            let back = parse_go_duration(&format_go_duration(duration)).unwrap();
            prop_assert!(back.abs_diff(duration) < Duration::from_micros(1));
        }
    }
}
