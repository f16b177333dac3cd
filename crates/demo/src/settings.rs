//! The times of the demo: what takes a minute in production takes seconds here. Said on screen too.

use std::time::Duration;

/// Kubelets report this often.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// A kubelet that was silent for so long makes its Node `Unknown`.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);

/// How often Nodes are looked at for that.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// How long connections of a target that leaves may take.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// A manager that ended is started again after this pause.
pub(crate) const RESTART: Duration = Duration::from_secs(3);

/// How long the scenario looks on while nothing must happen: longer than a deletion takes here,
/// which the step before them shows.
pub(crate) const NOTHING_FOR: Duration = Duration::from_secs(25);

/// The port of the demo's Service; below 1024 it would need rights.
pub(crate) const PORT: u16 = 8080;

/// The networks of Pods.
pub(crate) const PODS: &str = "10.244.0.0/16";

/// The flags of the managers that are not those of production.
pub(crate) const SHORTENED: [&str; 8] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
    "--node-monitor-period=1s",
    "--node-deletion-proofs=2",
    "--node-deletion-confirmation-period=2s",
    "--node-status-update-frequency=15s",
    "--load-balancer-sweep-period=30s",
];
