//! Flags that only cloudkeel has. Each one switches something that upstream does not do.

use std::time::Duration;

use cloudkeel_api::FlagKey;

use super::choices::{DriftFlag, HealthCheckFlag};
use super::table::{Effect, FlagRow, Group, rows};

/// `--shutdown-grace-period`
pub const SHUTDOWN_GRACE_PERIOD: FlagKey<Duration> = FlagKey::new(
    "shutdown-grace-period",
    "How long work in flight may finish after SIGTERM, before the lease is released. All of a shutdown takes at \
     most 12s more.",
)
.with_default("10s");
/// `--leader-elect-release-on-exit`
pub const RELEASE_ON_EXIT: FlagKey<bool> = FlagKey::new(
    "leader-elect-release-on-exit",
    "Give the lease back on a clean exit, so that the next replica starts at once.",
)
.with_default("true");

/// `--kube-api-read-timeout`
pub const KUBE_API_READ_TIMEOUT: FlagKey<Duration> = FlagKey::new(
    "kube-api-read-timeout",
    "A connection to the API server is given up if nothing is heard on it for this long while an answer \
     or a change is waited for. Watches are asked to end a little sooner by themselves. 0 waits for ever.",
)
.with_default("60s");

/// `--cloud-reload-period`
pub const CLOUD_RELOAD_PERIOD: FlagKey<Duration> = FlagKey::new(
    "cloud-reload-period",
    "How often to look for new settings and credentials of clouds, in files and in Secrets. New ones \
     are proven with one read before they take over. 0 never looks.",
)
.with_default("10s");

/// `--follow-instance-type`
pub const FOLLOW_INSTANCE_TYPE: FlagKey<bool> = FlagKey::new(
    "follow-instance-type",
    "Change the instance-type labels of a Node whose machine was resized.",
)
.with_default("true");

/// `--follow-topology`
pub const FOLLOW_TOPOLOGY: FlagKey<bool> = FlagKey::new(
    "follow-topology",
    "Change the zone and region labels of a Node whose machine has moved. Without it, an Event says \
     so: volumes depend on these labels.",
)
.with_default("false");
/// `--node-deletion-grace-period`
pub const NODE_DELETION_GRACE: FlagKey<Duration> = FlagKey::new(
    "node-deletion-grace-period",
    "A Node that was never initialised is not deleted before it is this old, because clouds show \
     new machines late.",
)
.with_default("5m");
/// `--node-deletion-proofs`
pub const NODE_DELETION_PROOFS: FlagKey<u32> = FlagKey::new(
    "node-deletion-proofs",
    "How often in a row the cloud must prove that a machine is gone before its Node is deleted.",
)
.with_default("3");
/// `--node-deletion-confirmation-period`
pub const NODE_DELETION_CONFIRMATION: FlagKey<Duration> = FlagKey::new(
    "node-deletion-confirmation-period",
    "How long must lie between the first and the last of these proofs.",
)
.with_default("30s");
/// `--node-deletion-burst`
pub const NODE_DELETION_BURST: FlagKey<u32> = FlagKey::new(
    "node-deletion-burst",
    "How many Nodes of a cloud may be deleted at once; a fifth of them, if that is more.",
)
.with_default("10");
/// `--node-deletion-interval`
pub const NODE_DELETION_INTERVAL: FlagKey<Duration> = FlagKey::new(
    "node-deletion-interval",
    "Longest pause between two deletions of a cloud's Nodes after the burst; at least a fifth of them go in a minute.",
)
.with_default("10s");
/// `--load-balancer-drift`
pub const LOAD_BALANCER_DRIFT: FlagKey<DriftFlag> = FlagKey::new(
    "load-balancer-drift",
    "What happens if a load balancer is not as it was left: `repair` it and tell, only `report` it, \
     or `off`: do not look. Upstream never looks.",
)
.with_default("repair");
/// `--load-balancer-health-checks`
pub const LOAD_BALANCER_HEALTH_CHECKS: FlagKey<HealthCheckFlag> = FlagKey::new(
    "load-balancer-health-checks",
    "How targets are checked unless a Service asks for something else: `compatible` with the cloud's Go \
     CCM; `node-port`, which asks for endpoints with the policy Local; or `kube-proxy`, which asks \
     kube-proxy with the policy Cluster besides. A change shows in the cloud.",
)
.with_default("compatible");
/// `--load-balancer-sweep-period`
pub const LOAD_BALANCER_SWEEP_PERIOD: FlagKey<Duration> = FlagKey::new(
    "load-balancer-sweep-period",
    "Pause between two looks at all load balancers, for those that differ and those that no Service \
     has any more.",
)
.with_default("20m");
/// `--page`
pub const PAGE: FlagKey<bool> = FlagKey::new(
    "page",
    "Serve a live page for people at /page/ on the secure port, to whoever may get that path. It only \
     shows.",
)
.with_default("false");

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::Works;
    rows(
        Group::Cloudkeel,
        [
            (&SHUTDOWN_GRACE_PERIOD, Works),
            (&RELEASE_ON_EXIT, Works),
            (&KUBE_API_READ_TIMEOUT, Works),
            (&CLOUD_RELOAD_PERIOD, Works),
            (&FOLLOW_INSTANCE_TYPE, Works),
            (&FOLLOW_TOPOLOGY, Works),
            (&NODE_DELETION_GRACE, Works),
            (&NODE_DELETION_PROOFS, Works),
            (&NODE_DELETION_CONFIRMATION, Works),
            (&NODE_DELETION_BURST, Works),
            (&NODE_DELETION_INTERVAL, Works),
            (&LOAD_BALANCER_DRIFT, Works),
            (&LOAD_BALANCER_HEALTH_CHECKS, Works),
            (&LOAD_BALANCER_SWEEP_PERIOD, Works),
            (&PAGE, Works),
        ],
    )
}
