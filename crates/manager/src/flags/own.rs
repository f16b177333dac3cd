//! Flags that only cloudkeel has. Each one controls something that upstream does not do.

use std::time::Duration;

use cloudkeel_api::{DriftPolicy, FlagKey};

use super::choices::HealthCheckFlag;
use super::table::{Effect, FlagRow, Group, rows};

/// `--shutdown-grace-period`
pub const SHUTDOWN_GRACE_PERIOD: FlagKey<Duration> = FlagKey::new(
    "shutdown-grace-period",
    "How long controllers may finish their work after SIGTERM, before the lease is released. The whole shutdown \
     takes at most 12s more.",
)
.with_default("10s");
/// `--leader-elect-release-on-exit`
pub const RELEASE_ON_EXIT: FlagKey<bool> = FlagKey::new(
    "leader-elect-release-on-exit",
    "Release the lease on a clean exit, so that the next replica leads at once.",
)
.with_default("true");

/// `--kube-api-read-timeout`
pub const KUBE_API_READ_TIMEOUT: FlagKey<Duration> = FlagKey::new(
    "kube-api-read-timeout",
    "Close a connection to the API server on which no data arrived for this long while a response or a watch \
     event was expected. Watches are requested with a slightly shorter timeout. 0 means no timeout.",
)
.with_default("60s");

/// `--cloud-reload-period`
pub const CLOUD_RELOAD_PERIOD: FlagKey<Duration> = FlagKey::new(
    "cloud-reload-period",
    "How often files and Secrets are checked for new cloud settings and credentials. New ones are tested with \
     one read before they are used. 0 disables reloading.",
)
.with_default("10s");

/// `--follow-instance-type`
pub const FOLLOW_INSTANCE_TYPE: FlagKey<bool> = FlagKey::new(
    "follow-instance-type",
    "Update the instance-type labels of a Node when its instance is resized.",
)
.with_default("true");

/// `--follow-topology`
pub const FOLLOW_TOPOLOGY: FlagKey<bool> = FlagKey::new(
    "follow-topology",
    "Update the zone and region labels of a Node when its instance moves. Off by default, because volumes depend \
     on these labels; an Event reports the change instead.",
)
.with_default("false");
/// `--node-deletion-grace-period`
pub const NODE_DELETION_GRACE: FlagKey<Duration> = FlagKey::new(
    "node-deletion-grace-period",
    "A Node that was never initialized is not deleted before it is this old, because clouds may list new instances \
     late.",
)
.with_default("5m");
/// `--node-deletion-proofs`
pub const NODE_DELETION_PROOFS: FlagKey<u32> = FlagKey::new(
    "node-deletion-proofs",
    "How many consecutive lookups must confirm that an instance is gone before its Node is deleted.",
)
.with_default("3");
/// `--node-deletion-confirmation-period`
pub const NODE_DELETION_CONFIRMATION: FlagKey<Duration> = FlagKey::new(
    "node-deletion-confirmation-period",
    "The minimum time between the first and the last of these confirmations.",
)
.with_default("30s");
/// `--node-deletion-burst`
pub const NODE_DELETION_BURST: FlagKey<u32> = FlagKey::new(
    "node-deletion-burst",
    "How many Nodes of a cloud may be deleted in one burst, or a fifth of them if that is more.",
)
.with_default("10");
/// `--node-deletion-interval`
pub const NODE_DELETION_INTERVAL: FlagKey<Duration> = FlagKey::new(
    "node-deletion-interval",
    "The longest interval between two deletions of a cloud's Nodes after the burst; at least a fifth of them may be \
     deleted per minute.",
)
.with_default("10s");
/// `--load-balancer-drift`
pub const LOAD_BALANCER_DRIFT: FlagKey<DriftPolicy> = FlagKey::new(
    "load-balancer-drift",
    "What happens when a load balancer was changed in the cloud: `repair` it and report, only `report` it, or `off` \
     to not check. Upstream does not check.",
)
.with_default("repair");
/// `--load-balancer-conditions`
pub const LOAD_BALANCER_CONDITIONS: FlagKey<bool> = FlagKey::new(
    "load-balancer-conditions",
    "Whether a Service whose load balancer fails, or has no healthy target, says so in conditions of its status.",
)
.with_default("true");
/// `--load-balancer-health-checks`
pub const LOAD_BALANCER_HEALTH_CHECKS: FlagKey<HealthCheckFlag> = FlagKey::new(
    "load-balancer-health-checks",
    "Health checks of load balancer targets, unless a Service's annotations say otherwise: `auto`, which is \
     `node-port` for clouds in cloudkeel's own configuration file whose Go CCM ignores externalTrafficPolicy, and else \
     `compatible`; `compatible` with the cloud's Go CCM; `node-port`, which checks the node port, or the health check port with \
     externalTrafficPolicy Local; or `kube-proxy`, which also checks kube-proxy with externalTrafficPolicy \
     Cluster. Changing it changes the load balancers in the cloud.",
)
.with_default("auto");
/// `--load-balancer-drift-check-period`
pub const LOAD_BALANCER_DRIFT_CHECK_PERIOD: FlagKey<Duration> = FlagKey::new(
    "load-balancer-drift-check-period",
    "How often all load balancers are checked for drift, and for load balancers without a Service.",
)
.with_default("20m");

/// `--load-balancer-sweep-period`, the former name of `--load-balancer-drift-check-period`
pub const FORMER_LOAD_BALANCER_DRIFT_CHECK_PERIOD: FlagKey<Duration> = FlagKey::new(
    "load-balancer-sweep-period",
    "The former name of --load-balancer-drift-check-period.",
);
/// `--dry-run`
pub const DRY_RUN: FlagKey<bool> = FlagKey::new(
    "dry-run",
    "Only show what the controllers would do, in the log, in /status and in metrics. Nothing is written to the \
     cluster or to a cloud, not even a lease, so it can run beside an active manager.",
)
.with_default("false");
/// `--webhook-service`
pub const WEBHOOK_SERVICE: FlagKey<String> = FlagKey::new(
    "webhook-service",
    "NAMESPACE/NAME of the Service through which the API server reaches the webhook port. With it, the certificate of \
     that port is made and renewed by cloudkeel, kept in the Secret of the same name, and written to the caBundle of the \
     MutatingWebhookConfiguration NAME. Has no effect with --webhook-tls-cert-file.",
);
/// `--page`
pub const PAGE: FlagKey<bool> = FlagKey::new(
    "page",
    "Serve a read-only status page at /page/ on the secure port, to users who are authorized to get that path.",
)
.with_default("false");

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::{Deprecated, Works};
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
            (&LOAD_BALANCER_CONDITIONS, Works),
            (&LOAD_BALANCER_HEALTH_CHECKS, Works),
            (&LOAD_BALANCER_DRIFT_CHECK_PERIOD, Works),
            (
                &FORMER_LOAD_BALANCER_DRIFT_CHECK_PERIOD,
                Deprecated("use --load-balancer-drift-check-period"),
            ),
            (&DRY_RUN, Works),
            (&WEBHOOK_SERVICE, Works),
            (&PAGE, Works),
        ],
    )
}
