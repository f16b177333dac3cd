//! Settings that every emulated cloud has.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::history::View;
use super::{ScriptedFault, go_duration};

/// The settings that the gateway goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewaySettings {
    /// How long every answer takes.
    pub latency: Latency,
    /// How many calls the log keeps.
    pub log_capacity: usize,
}

/// How long every answer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Latency {
    /// At least this long.
    #[serde(with = "go_duration")]
    pub fixed: Duration,
    /// And up to this much longer, drawn from the seed.
    #[serde(with = "go_duration")]
    pub jitter: Duration,
}

/// A bucket of calls per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many calls a full bucket allows at once.
    pub burst: u32,
    /// How long it takes until one more is allowed.
    #[serde(with = "go_duration")]
    pub refill: Duration,
}

/// How far reads lag behind what really is. Changes go by what really is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Consistency {
    /// Lists show what was this long ago.
    #[serde(with = "go_duration")]
    pub list: Duration,
    /// Reads of a single resource show what was this long ago.
    #[serde(with = "go_duration")]
    pub get: Duration,
}

impl Consistency {
    /// The same lag for both.
    pub const fn both(lag: Duration) -> Self {
        Self {
            list: lag,
            get: lag,
        }
    }

    /// Which moment a read shows, given the fault that it met.
    pub fn view(self, is_list: bool, fault: Option<&impl ScriptedFault>, now: Instant) -> View {
        let lag = if is_list { self.list } else { self.get };
        let staler = fault.map_or(Duration::ZERO, ScriptedFault::staler);
        View::lagging(now, lag + staler)
    }
}
