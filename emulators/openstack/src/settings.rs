//! Settings.

use std::time::Duration;

use cloudkeel_emulation::{Consistency, Latency, go_duration};
use serde::{Deserialize, Serialize};

/// The settings of an emulator. The default is a fast and consistent cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// Everything random follows from it.
    pub seed: u64,
    /// How long every answer takes.
    pub latency: Latency,
    /// How long a load balancer is in a `PENDING_` state after each change.
    #[serde(with = "go_duration")]
    pub job_duration: Duration,
    /// How far reads lag behind.
    pub consistency: Consistency,
    /// How many load balancers a project may have.
    pub load_balancers: usize,
    /// How many items a page of a list has.
    pub page_size: usize,
    /// How long a token is good.
    #[serde(with = "go_duration")]
    pub token_lifetime: Duration,
    /// How far back a stale answer can reach.
    #[serde(with = "go_duration")]
    pub history: Duration,
    /// How many calls the log keeps.
    pub log_capacity: usize,
    /// The extensions of Neutron.
    pub extensions: Vec<String>,
    /// The newest version of Octavia's API.
    pub octavia_version: String,
}

impl Default for Settings {
    fn default() -> Self {
        let extensions = ["allowed-address-pairs", "extraroute", "extraroute-atomic"];
        Self {
            seed: 0,
            latency: Latency::default(),
            job_duration: Duration::ZERO,
            consistency: Consistency::default(),
            load_balancers: 1_000,
            page_size: 1_000,
            token_lifetime: Duration::from_hours(4),
            history: Duration::from_mins(10),
            log_capacity: 10_000,
            extensions: extensions.map(str::to_owned).to_vec(),
            octavia_version: "v2.30".to_owned(),
        }
    }
}
