//! Settings.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use cloudkeel_emulation::{Consistency, Latency, RateLimit, go_duration};

/// The settings of an emulator. The default is a fast and consistent cloud with the real rate limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// Everything random follows from it.
    pub seed: u64,
    /// How long every answer takes.
    pub latency: Latency,
    /// How many calls the tokens of a project may make together; `None` is no limit.
    pub rate_limit: Option<RateLimit>,
    /// How long actions run. While one runs, the resource that it changes is locked.
    #[serde(with = "go_duration")]
    pub action_duration: Duration,
    /// How long a managed certificate takes.
    #[serde(with = "go_duration")]
    pub certificate_duration: Duration,
    /// How far reads lag behind.
    pub consistency: Consistency,
    /// How many of each a project may have.
    pub limits: Limits,
    /// How many calls the Robot user may make to each path of the Robot API.
    pub robot_limit: RobotLimit,
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
                burst: 3600,
                refill: Duration::from_secs(1),
            }),
            action_duration: Duration::ZERO,
            certificate_duration: Duration::ZERO,
            consistency: Consistency::default(),
            limits: Limits::default(),
            robot_limit: RobotLimit::default(),
            history: Duration::from_mins(10),
            log_capacity: 10_000,
        }
    }
}

/// How many of each a project may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Servers of the project.
    pub servers: usize,
    /// Balancers of the project.
    pub load_balancers: usize,
    /// Routes of one network.
    pub routes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            servers: 10_000,
            load_balancers: 1_000,
            routes: 100,
        }
    }
}

/// Robot counts calls to a path in a window, and starts afresh when the window is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RobotLimit {
    /// Calls to one path in a window.
    pub max_request: u32,
    /// How long the window is.
    #[serde(with = "go_duration")]
    pub interval: Duration,
}

impl Default for RobotLimit {
    fn default() -> Self {
        Self {
            max_request: 200,
            interval: Duration::from_hours(1),
        }
    }
}
