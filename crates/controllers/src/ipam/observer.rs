//! What happens to the ranges, for metrics.

use ipnet::IpNet;

use crate::runtime::Unobserved;

/// Hears what happens to the ranges. The manager turns it into metrics, with the cluster CIDR as the
/// label `clusterCIDR`.
pub trait IpamObserver: Send + Sync {
    /// A range has so many blocks: `node_ipam_controller_cirdset_max_cidrs`, spelt as upstream has it.
    /// Told once, at the start.
    fn has_blocks(&self, cluster_cidr: IpNet, blocks: u64);
    /// So many blocks came into use: `node_ipam_controller_cidrset_cidrs_allocations_total`. Blocks that
    /// Nodes already had and those of service ranges count too.
    fn allocated(&self, cluster_cidr: IpNet, blocks: u64);
    /// So many blocks were given back: `node_ipam_controller_cidrset_cidrs_releases_total`.
    fn released(&self, cluster_cidr: IpNet, blocks: u64);
    /// So many of all blocks are in use now: `node_ipam_controller_cidrset_usage_cidrs` is the quotient.
    fn usage(&self, cluster_cidr: IpNet, used: u64, blocks: u64);
    /// So many blocks in use were passed over to find a free one:
    /// `node_ipam_controller_cidrset_allocation_tries_per_request`.
    fn tried(&self, cluster_cidr: IpNet, passed_over: u64);
}

impl IpamObserver for Unobserved {
    fn has_blocks(&self, _cluster_cidr: IpNet, _blocks: u64) {}
    fn allocated(&self, _cluster_cidr: IpNet, _blocks: u64) {}
    fn released(&self, _cluster_cidr: IpNet, _blocks: u64) {}
    fn usage(&self, _cluster_cidr: IpNet, _used: u64, _blocks: u64) {}
    fn tried(&self, _cluster_cidr: IpNet, _passed_over: u64) {}
}
