//! Metrics of the node IPAM controller.

use cloudkeel_controllers::ipam::IpamObserver;
use ipnet::IpNet;

use super::catalogue::{Catalogue, Counter, Gauge, Histogram, Labelled};
use super::{Metrics, buckets};

/// The ranges of Pod networks, by cluster CIDR.
#[derive(Debug, Clone)]
pub struct IpamMetrics {
    allocations: Labelled<Counter, 1>,
    releases: Labelled<Counter, 1>,
    usage: Labelled<Gauge, 1>,
    tries: Labelled<Histogram, 1>,
    blocks: Labelled<Gauge, 1>,
}

impl IpamMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        const CIDR: [&str; 1] = ["clusterCIDR"];
        Self {
            allocations: catalogue.counters(
                "node_ipam_controller_cidrset_cidrs_allocations_total",
                CIDR,
                "CIDRs allocated from a cluster CIDR.",
            ),
            releases: catalogue.counters(
                "node_ipam_controller_cidrset_cidrs_releases_total",
                CIDR,
                "CIDRs of a cluster CIDR that were released.",
            ),
            usage: catalogue.gauges(
                "node_ipam_controller_cidrset_usage_cidrs",
                CIDR,
                "The share of a cluster CIDR's CIDRs that are in use.",
            ),
            tries: catalogue.histograms(
                "node_ipam_controller_cidrset_allocation_tries_per_request",
                CIDR,
                buckets::CIDR_TRIES,
                "CIDRs in use that were skipped to find a free one.",
            ),
            blocks: catalogue.gauges(
                "node_ipam_controller_cirdset_max_cidrs",
                CIDR,
                "The number of CIDRs in a cluster CIDR. The name is upstream's, spelling included.",
            ),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no range has so many blocks that a float could not count them"
)]
impl IpamObserver for Metrics {
    fn has_blocks(&self, cluster_cidr: IpNet, blocks: u64) {
        self.ipam
            .blocks
            .with([&cluster_cidr.to_string()])
            .set(blocks as f64);
    }

    fn allocated(&self, cluster_cidr: IpNet, blocks: u64) {
        self.ipam
            .allocations
            .with([&cluster_cidr.to_string()])
            .inc_by(blocks);
    }

    fn released(&self, cluster_cidr: IpNet, blocks: u64) {
        self.ipam
            .releases
            .with([&cluster_cidr.to_string()])
            .inc_by(blocks);
    }

    fn usage(&self, cluster_cidr: IpNet, used: u64, blocks: u64) {
        let share = used as f64 / (blocks as f64).max(1.0);
        self.ipam.usage.with([&cluster_cidr.to_string()]).set(share);
    }

    fn tried(&self, cluster_cidr: IpNet, passed_over: u64) {
        let tries = self.ipam.tries.with([&cluster_cidr.to_string()]);
        tries.observe(passed_over as f64);
    }
}
