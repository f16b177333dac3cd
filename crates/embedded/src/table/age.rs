//! Durations as `kubectl` shows them: `5m10s`, `3h`, `12d`.

use jiff::Timestamp;

/// How long ago a moment was, in a few letters.
pub(super) fn age(moment: &str, now: Timestamp) -> String {
    match moment.parse::<Timestamp>() {
        Ok(moment) => human(now.duration_since(moment).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

fn human(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, shown) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (310, "5m10s"),
            (600, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600, "8h"),
            (2 * 86_400, "2d"),
            (3 * 86_400 + 7200, "3d2h"),
            (30 * 86_400, "30d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(human(seconds), shown, "{seconds}");
        }
    }
}
