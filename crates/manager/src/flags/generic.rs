//! Flags of the manager as a whole.

use std::time::Duration;

use cloudkeel_api::FlagKey;

use super::table::{Effect, FlagRow, Group, rows};

/// `--cloud-provider`
pub const CLOUD_PROVIDER: FlagKey<String> = FlagKey::new(
    "cloud-provider",
    "The cloud provider. Not needed if --cloud-config is cloudkeel's own file, which lists its clouds, or if the \
     program is started under the name of the Go binary it replaces.",
);
/// `--cloud-config`
pub const CLOUD_CONFIG: FlagKey<String> = FlagKey::new(
    "cloud-config",
    "Configuration file: cloudkeel's own (apiVersion: cloudkeel.dev/v1), or that of the cloud's Go CCM.",
);
/// `--cluster-name`
pub const CLUSTER_NAME: FlagKey<String> =
    FlagKey::new("cluster-name", "Name of the cluster in the cloud.").with_default("kubernetes");
/// `--cluster-cidr`
pub const CLUSTER_CIDR: FlagKey<String> = FlagKey::new(
    "cluster-cidr",
    "CIDRs of the Pods, separated by a comma: one, or one per IP family.",
);
/// `--allocate-node-cidrs`
pub const ALLOCATE_NODE_CIDRS: FlagKey<bool> = FlagKey::new(
    "allocate-node-cidrs",
    "Allocate Pod CIDRs for Nodes. Charts set this while kube-controller-manager allocates, so the node IPAM \
     controller runs only if --controllers names it too.",
)
.with_default("false");
/// `--cidr-allocator-type`
pub const CIDR_ALLOCATOR_TYPE: FlagKey<String> = FlagKey::new(
    "cidr-allocator-type",
    "How Pod CIDRs are allocated: RangeAllocator.",
)
.with_default("RangeAllocator");
/// `--configure-cloud-routes`
pub const CONFIGURE_CLOUD_ROUTES: FlagKey<bool> = FlagKey::new(
    "configure-cloud-routes",
    "Configure routes for the Pod CIDRs in the cloud. Needs --cluster-cidr.",
)
.with_default("true");
/// `--route-reconciliation-period`
pub const ROUTE_RECONCILIATION_PERIOD: FlagKey<Duration> = FlagKey::new(
    "route-reconciliation-period",
    "Routes are updated when Nodes change, and all of them are checked every hour. If this flag is given, they \
     are checked this often, unless the gate for watch-based routes is true, as upstream.",
)
.with_default("10s");
/// `--use-service-account-credentials`
pub const USE_SERVICE_ACCOUNT_CREDENTIALS: FlagKey<bool> = FlagKey::new(
    "use-service-account-credentials",
    "Use a separate ServiceAccount for each controller.",
)
.with_default("false");
/// `--external-cloud-volume-plugin`
pub const EXTERNAL_CLOUD_VOLUME_PLUGIN: FlagKey<String> = FlagKey::new(
    "external-cloud-volume-plugin",
    "Volume plugin of in-tree cloud providers.",
);
/// `--allow-untagged-cloud`
pub const ALLOW_UNTAGGED_CLOUD: FlagKey<bool> = FlagKey::new(
    "allow-untagged-cloud",
    "Start although the cloud's resources have no ClusterID.",
)
.with_default("false");
/// `--node-sync-period`
pub const NODE_SYNC_PERIOD: FlagKey<Duration> = FlagKey::new(
    "node-sync-period",
    "Period of a loop that no longer exists.",
)
.with_default("0s");
/// `--min-resync-period`
pub const MIN_RESYNC_PERIOD: FlagKey<Duration> =
    FlagKey::new("min-resync-period", "Resync period of the watches.").with_default("12h");
/// `--kube-api-content-type`
pub const KUBE_API_CONTENT_TYPE: FlagKey<String> = FlagKey::new(
    "kube-api-content-type",
    "Content type of requests to the API server.",
)
.with_default("application/vnd.kubernetes.protobuf");
/// `--kube-api-qps`
pub const KUBE_API_QPS: FlagKey<f64> = FlagKey::new(
    "kube-api-qps",
    "Requests per second to the API server. Without the flag there is no client-side limit: the API server's \
     priority and fairness applies.",
);
/// `--kube-api-burst`
pub const KUBE_API_BURST: FlagKey<u32> = FlagKey::new(
    "kube-api-burst",
    "Burst above --kube-api-qps; without that flag it has no effect.",
)
.with_default("30");
/// `--controller-start-interval`
pub const CONTROLLER_START_INTERVAL: FlagKey<Duration> = FlagKey::new(
    "controller-start-interval",
    "Interval between the starts of controllers.",
)
.with_default("0s");
/// `--controllers`
pub const CONTROLLERS: FlagKey<Vec<String>> = FlagKey::new(
    "controllers",
    "Which controllers run: `*` for all that are enabled by default, `name` to enable one, `-name` to disable \
     one.",
)
.with_default("*");
/// `--feature-gates`
pub const FEATURE_GATES: FlagKey<Vec<String>> = FlagKey::new(
    "feature-gates",
    "Feature gates as `Name=true` or `Name=false`. Unknown gates are reported in the log.",
);
/// `--leader-elect`
pub const LEADER_ELECT: FlagKey<bool> = FlagKey::new(
    "leader-elect",
    "Run the controllers only in the replica that holds the lease.",
)
.with_default("true");
/// `--leader-elect-lease-duration`
pub const LEASE_DURATION: FlagKey<Duration> = FlagKey::new(
    "leader-elect-lease-duration",
    "How long other replicas wait before they take a lease that is not renewed.",
)
.with_default("15s");
/// `--leader-elect-renew-deadline`
pub const RENEW_DEADLINE: FlagKey<Duration> = FlagKey::new(
    "leader-elect-renew-deadline",
    "How long the leader tries to renew the lease before it stops leading.",
)
.with_default("10s");
/// `--leader-elect-retry-period`
pub const RETRY_PERIOD: FlagKey<Duration> = FlagKey::new(
    "leader-elect-retry-period",
    "Interval between attempts to acquire or renew the lease.",
)
.with_default("2s");
/// `--leader-elect-resource-lock`
pub const RESOURCE_LOCK: FlagKey<String> =
    FlagKey::new("leader-elect-resource-lock", "Kind of lock: leases.").with_default("leases");
/// `--leader-elect-resource-name`
pub const RESOURCE_NAME: FlagKey<String> =
    FlagKey::new("leader-elect-resource-name", "Name of the lease.")
        .with_default("cloud-controller-manager");
/// `--leader-elect-resource-namespace`
pub const RESOURCE_NAMESPACE: FlagKey<String> =
    FlagKey::new("leader-elect-resource-namespace", "Namespace of the lease.")
        .with_default("kube-system");
/// `--profiling`
pub const PROFILING: FlagKey<bool> = FlagKey::new(
    "profiling",
    "Serve /debug/flags/v, which sets the log level.",
)
.with_default("true");
/// `--contention-profiling`
pub const CONTENTION_PROFILING: FlagKey<bool> =
    FlagKey::new("contention-profiling", "Profile lock contention.").with_default("false");
/// `--enable-leader-migration`
pub const ENABLE_LEADER_MIGRATION: FlagKey<bool> = FlagKey::new(
    "enable-leader-migration",
    "Run some controllers under a second lease, to migrate them from another manager.",
)
.with_default("false");
/// `--leader-migration-config`
pub const LEADER_MIGRATION_CONFIG: FlagKey<String> = FlagKey::new(
    "leader-migration-config",
    "LeaderMigrationConfiguration file; without it, upstream's default list.",
);
/// `--master`
pub const MASTER: FlagKey<String> = FlagKey::new(
    "master",
    "Address of the API server; overrides the kubeconfig. Without a scheme it is https if the kubeconfig has a \
     credential or a certificate authority, else http.",
);
/// `--kubeconfig`
pub const KUBECONFIG: FlagKey<String> = FlagKey::new(
    "kubeconfig",
    "File with the address and credentials of the API server. Without it and --master: those files of \
     $KUBECONFIG that exist, else the ServiceAccount of the Pod.",
);

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::{Deprecated, None, Works};
    let generic = rows(
        Group::Generic,
        [
            (&CLOUD_PROVIDER, Works),
            (&CLOUD_CONFIG, Works),
            (&CLUSTER_NAME, Works),
            (&CLUSTER_CIDR, Works),
            (&ALLOCATE_NODE_CIDRS, Works),
            (&CIDR_ALLOCATOR_TYPE, Works),
            (&CONFIGURE_CLOUD_ROUTES, Works),
            (&ROUTE_RECONCILIATION_PERIOD, Works),
            (&USE_SERVICE_ACCOUNT_CREDENTIALS, Works),
            (
                &EXTERNAL_CLOUD_VOLUME_PLUGIN,
                None("in-tree volume plugins are gone"),
            ),
            (
                &ALLOW_UNTAGGED_CLOUD,
                Deprecated("a cloud without a ClusterID only causes a warning"),
            ),
            (&NODE_SYNC_PERIOD, None("Nodes are watched")),
            (
                &MIN_RESYNC_PERIOD,
                None("watches are repaired when they break, and lists have their own period"),
            ),
            (
                &KUBE_API_CONTENT_TYPE,
                None(
                    "Nodes and Services are read in protobuf and some Nodes are written in it; the rest is JSON",
                ),
            ),
            (&KUBE_API_QPS, Works),
            (&KUBE_API_BURST, Works),
            (&CONTROLLER_START_INTERVAL, Works),
            (&CONTROLLERS, Works),
            (&FEATURE_GATES, Works),
            (&LEADER_ELECT, Works),
            (&LEASE_DURATION, Works),
            (&RENEW_DEADLINE, Works),
            (&RETRY_PERIOD, Works),
            (&RESOURCE_LOCK, Works),
            (&RESOURCE_NAME, Works),
            (&RESOURCE_NAMESPACE, Works),
        ],
    );
    let debugging = rows(
        Group::Debugging,
        [
            (&PROFILING, Works),
            (
                &CONTENTION_PROFILING,
                None("there is no Go runtime to profile"),
            ),
        ],
    );
    let migration = rows(
        Group::LeaderMigration,
        [
            (&ENABLE_LEADER_MIGRATION, Works),
            (&LEADER_MIGRATION_CONFIG, Works),
        ],
    );
    let misc = rows(Group::Misc, [(&MASTER, Works), (&KUBECONFIG, Works)]);
    [generic, debugging, migration, misc].concat()
}
