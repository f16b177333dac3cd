//! Settings.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_provider_local::wire::{self, Features};
use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use cloudkeel_emulation::{Consistency, Latency, RateLimit, go_duration};

/// The settings of a simulated cloud. The default is a fast, consistent, generous one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// Everything random follows from it.
    pub seed: u64,
    /// How many items a page has at most, which is also the default.
    pub page_size: u64,
    /// How long every answer takes.
    pub latency: Latency,
    /// How many calls a token may make; `None` is no limit.
    pub rate_limit: Option<RateLimit>,
    /// How long it takes to build, change or take down a balancer, and to boot a machine.
    #[serde(with = "go_duration")]
    pub action_duration: Duration,
    /// How far reads lag behind.
    pub consistency: Consistency,
    /// Machines that reads do not show although they run, as when a zone is hidden.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub hidden: BTreeSet<u64>,
    /// How long a deleted machine is still shown, in the state `deleted`.
    #[serde(with = "go_duration")]
    pub keep_deleted: Duration,
    /// What a project may have.
    pub limits: Limits,
    /// What the cloud can do.
    pub features: Features,
    /// Whether two balancers of a project may not have the same name.
    pub unique_names: bool,
    /// Where the addresses of balancers come from.
    pub pools: Pools,
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
            page_size: 50,
            latency: Latency::default(),
            rate_limit: None,
            action_duration: Duration::ZERO,
            consistency: Consistency::default(),
            hidden: BTreeSet::new(),
            keep_deleted: Duration::ZERO,
            limits: Limits::default(),
            features: Features::default(),
            unique_names: true,
            pools: Pools::default(),
            history: Duration::from_mins(10),
            log_capacity: 10_000,
        }
    }
}

/// What a project may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Targets of one balancer.
    pub targets: usize,
    /// Listeners of one balancer.
    pub listeners: usize,
    /// Balancers of the project.
    pub balancers: usize,
    /// Routes of the project.
    pub routes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            targets: 10_000,
            listeners: 100,
            balancers: 10_000,
            routes: 10_000,
        }
    }
}

impl Limits {
    /// What the API says of them.
    pub(super) fn of_balancers(&self) -> wire::Limits {
        wire::Limits {
            targets: u32::try_from(self.targets).ok(),
            listeners: u32::try_from(self.listeners).ok(),
        }
    }
}

/// Where the addresses of balancers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Pools {
    /// For public balancers.
    pub public_v4: Ipv4Net,
    /// For public balancers.
    pub public_v6: Ipv6Net,
    /// Only inside.
    pub internal_v4: Ipv4Net,
    /// Only inside.
    pub internal_v6: Ipv6Net,
}

/// Networks that are set aside for tests and documentation.
impl Default for Pools {
    fn default() -> Self {
        Self {
            public_v4: Ipv4Net::new_assert([198, 18, 0, 0].into(), 15),
            public_v6: Ipv6Net::new_assert([0x2001, 0xdb8, 1, 0, 0, 0, 0, 0].into(), 64),
            internal_v4: Ipv4Net::new_assert([10, 200, 0, 0].into(), 16),
            internal_v6: Ipv6Net::new_assert([0xfd00, 0x200, 0, 0, 0, 0, 0, 0].into(), 64),
        }
    }
}
