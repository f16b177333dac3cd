//! Settings.

use std::time::Duration;

use cloudkeel_emulation::{Consistency, Latency, RateLimit, go_duration};
use serde::{Deserialize, Serialize};

/// The settings of an emulator. The default is a fast and consistent cloud with the real rate limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// Everything random follows from it.
    pub seed: u64,
    /// How long every answer takes.
    pub latency: Latency,
    /// How many calls a token may make in an hour; `None` is no limit.
    pub rate_limit: Option<RateLimit>,
    /// How many calls a token may make in a minute; `None` is no limit.
    pub burst_limit: Option<u32>,
    /// How long a load balancer is `new`, and how long one works on a change. Meanwhile it takes no other.
    #[serde(with = "go_duration")]
    pub balancer_duration: Duration,
    /// How far reads lag behind.
    pub consistency: Consistency,
    /// How many load balancers an account may have.
    pub load_balancers: usize,
    /// How soon a load balancer may be resized, after its creation and after each resize.
    #[serde(with = "go_duration")]
    pub resize_after: Duration,
    /// How far back a stale answer can reach.
    #[serde(with = "go_duration")]
    pub history: Duration,
    /// How many calls the log keeps.
    pub log_capacity: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            latency: Latency::default(),
            rate_limit: Some(RateLimit {
                burst: 5_000,
                refill: Duration::from_millis(720),
            }),
            burst_limit: Some(250),
            balancer_duration: Duration::ZERO,
            consistency: Consistency::default(),
            load_balancers: 1_000,
            resize_after: Duration::ZERO,
            history: Duration::from_mins(10),
            log_capacity: 10_000,
        }
    }
}
