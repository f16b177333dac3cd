//! Flags of the controllers.

use std::time::Duration;

use cloudkeel_api::FlagKey;

use super::table::{Effect, FlagRow, Group, rows};

/// `--concurrent-node-syncs`
pub const CONCURRENT_NODE_SYNCS: FlagKey<u32> = FlagKey::new(
    "concurrent-node-syncs",
    "How many Nodes are initialized concurrently. Upstream's default is 1.",
)
.with_default("32");
/// `--concurrent-node-status-updates`
pub const CONCURRENT_NODE_STATUS_UPDATES: FlagKey<u32> = FlagKey::new(
    "concurrent-node-status-updates",
    "How many Nodes' addresses are updated concurrently; 0 means as many as --concurrent-node-syncs.",
)
.with_default("0");
/// `--node-status-update-frequency`
pub const NODE_STATUS_UPDATE_FREQUENCY: FlagKey<Duration> = FlagKey::new(
    "node-status-update-frequency",
    "Pause between two lists of the cloud, which refresh addresses and labels. Upstream's default \
     is 5m, for one call per Node; a list is a few pages for all of them.",
)
.with_default("10m");
/// `--node-monitor-period`
pub const NODE_MONITOR_PERIOD: FlagKey<Duration> = FlagKey::new(
    "node-monitor-period",
    "How soon the cloud is asked about a Node that is not ready, and the shortest interval between two requests \
     about it.",
)
.with_default("5s");
/// `--concurrent-node-lifecycle-syncs`
pub const CONCURRENT_NODE_LIFECYCLE_SYNCS: FlagKey<u32> = FlagKey::new(
    "concurrent-node-lifecycle-syncs",
    "How many Nodes that are not ready are checked concurrently. Upstream's default is 1.",
)
.with_default("20");
/// `--concurrent-service-syncs`
pub const CONCURRENT_SERVICE_SYNCS: FlagKey<u32> = FlagKey::new(
    "concurrent-service-syncs",
    "How many load balancers are synced concurrently, never one of them twice. Upstream's default is 1.",
)
.with_default("10");
/// `--service-cluster-ip-range`
pub const SERVICE_CLUSTER_IP_RANGE: FlagKey<String> = FlagKey::new(
    "service-cluster-ip-range",
    "CIDRs of the Services, which are not allocated to Nodes.",
);
/// `--node-cidr-mask-size`
pub const NODE_CIDR_MASK_SIZE: FlagKey<u16> = FlagKey::new(
    "node-cidr-mask-size",
    "Mask size of a Node's Pod CIDR in a single-stack cluster; 0 means 24 for IPv4, 64 for IPv6.",
)
.with_default("0");
/// `--node-cidr-mask-size-ipv4`
pub const NODE_CIDR_MASK_SIZE_IPV4: FlagKey<u16> = FlagKey::new(
    "node-cidr-mask-size-ipv4",
    "Mask size of a Node's IPv4 Pod CIDR; 0 means 24.",
)
.with_default("0");
/// `--node-cidr-mask-size-ipv6`
pub const NODE_CIDR_MASK_SIZE_IPV6: FlagKey<u16> = FlagKey::new(
    "node-cidr-mask-size-ipv6",
    "Mask size of a Node's IPv6 Pod CIDR; 0 means 64.",
)
.with_default("0");

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::Works;
    let node = rows(
        Group::CloudNode,
        [
            (&CONCURRENT_NODE_SYNCS, Works),
            (&CONCURRENT_NODE_STATUS_UPDATES, Works),
        ],
    );
    let lifecycle = rows(
        Group::CloudNodeLifecycle,
        [
            (&NODE_MONITOR_PERIOD, Works),
            (&CONCURRENT_NODE_LIFECYCLE_SYNCS, Works),
        ],
    );
    let service = rows(Group::Service, [(&CONCURRENT_SERVICE_SYNCS, Works)]);
    let ipam = rows(
        Group::NodeIpam,
        [
            (&SERVICE_CLUSTER_IP_RANGE, Works),
            (&NODE_CIDR_MASK_SIZE, Works),
            (&NODE_CIDR_MASK_SIZE_IPV4, Works),
            (&NODE_CIDR_MASK_SIZE_IPV6, Works),
        ],
    );
    let misc = rows(Group::Misc, [(&NODE_STATUS_UPDATE_FREQUENCY, Works)]);
    [node, lifecycle, service, ipam, misc].concat()
}
