//! The timings of the demo: what takes a minute in production takes seconds here.

use std::time::Duration;

/// Kubelets report this often.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// A Node becomes `Unknown` when its kubelet has not reported for this long.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);

/// How often Nodes are checked for that.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a removed target drains.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// The pause before a manager is restarted.
pub(crate) const RESTART: Duration = Duration::from_secs(3);

/// How long the scenario waits while nothing must happen: longer than a deletion takes here, which an earlier step
/// shows.
pub(crate) const NOTHING_FOR: Duration = Duration::from_secs(25);

/// The port of the demo's Service; a port below 1024 would need privileges.
pub(crate) const PORT: u16 = 8080;

/// The Pod networks.
pub(crate) const PODS: &str = "10.244.0.0/16";

/// The managers' flags that differ from production.
pub(crate) const SHORTENED: [&str; 8] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
    "--node-monitor-period=1s",
    "--node-deletion-proofs=2",
    "--node-deletion-confirmation-period=2s",
    "--node-status-update-frequency=15s",
    "--load-balancer-drift-check-period=30s",
];
