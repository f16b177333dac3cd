//! The numbers that the cloud takes. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use cloudkeel_api::{HealthCheck, LoadBalancerSpec, format_go_duration};

/// Seconds between two checks of a target.
pub(super) const INTERVAL: RangeInclusive<u64> = 3..=60;
/// Seconds that a check may take.
pub(super) const TIMEOUT: RangeInclusive<u64> = 1..=60;
/// Failures in a row until a target is out.
pub(super) const RETRIES: RangeInclusive<u32> = 1..=5;

/// What the cloud uses if nothing is said.
pub(super) const USUAL_INTERVAL: u64 = 15;
pub(super) const USUAL_TIMEOUT: u64 = 10;
pub(super) const USUAL_RETRIES: u32 = 3;
pub(super) const USUAL_PATH: &str = "/";

/// Whole seconds as the Go CCM sends them: the rest is cut off. What would be none of them, which the
/// cloud refuses, is the least that it takes.
pub(super) fn truncated(duration: Duration, least: u64) -> u64 {
    match duration.as_secs() {
        0 => least,
        seconds => seconds,
    }
}

/// Whole seconds for a neutral wish: the next that the cloud takes.
pub(super) fn rounded(duration: Duration, range: &RangeInclusive<u64>) -> u64 {
    let up = u64::from(duration.subsec_nanos() > 0);
    let seconds = duration.as_secs().saturating_add(up);
    seconds.clamp(*range.start(), *range.end())
}

pub(super) fn clamped(retries: u32) -> u32 {
    retries.clamp(*RETRIES.start(), *RETRIES.end())
}

/// Whether a neutral check asks for numbers of its own.
pub(super) const fn has_numbers(check: &HealthCheck) -> bool {
    check.interval.is_some() || check.timeout.is_some() || check.unhealthy_threshold.is_some()
}

/// The neutral numbers that the cloud does not take as they are, and what is used in their place.
pub(super) fn out_of_range(spec: &LoadBalancerSpec) -> Vec<String> {
    // The checks of all ports come from the same annotations.
    let Some(check) = spec
        .listeners
        .first()
        .map(|listener| &listener.health_check)
    else {
        return Vec::new();
    };
    let duration = |asked: Option<Duration>, range: &RangeInclusive<u64>, what: &str| {
        let asked = asked?;
        let used = rounded(asked, range);
        (Duration::from_secs(used) != asked).then(|| {
            let asked = format_go_duration(asked);
            format!("{what} {asked}, so {used}s is used")
        })
    };
    let retries = check
        .unhealthy_threshold
        .filter(|asked| clamped(*asked) != *asked);
    let retries = retries.map(|asked| {
        let used = clamped(asked);
        format!("take a target out after {asked} failed checks, so {used} is used")
    });
    [
        duration(check.interval, &INTERVAL, "check targets every"),
        duration(check.timeout, &TIMEOUT, "give a check"),
        retries,
    ]
    .into_iter()
    .flatten()
    .collect()
}
