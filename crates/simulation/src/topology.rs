//! What a cluster looks like when a run begins.

use std::net::Ipv6Addr;

use crate::accounts::Layout;
use crate::rng::Rng;

/// Machines that any plan may have.
pub(crate) const MOST_MACHINES: usize = 30;

/// Machines that most plans have.
const USUAL_MACHINES: usize = 6;

/// The cluster of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) layout: Layout,
    /// Machines that are there from the start.
    pub(crate) first_machines: usize,
    /// Machines that a plan may speak of.
    pub(crate) machines: usize,
    /// Whether the managers allocate the Pod CIDRs, and not the cluster.
    pub(crate) ipam: bool,
    /// Whether Pods have IPv4 and IPv6 addresses.
    pub(crate) dual_stack: bool,
}

impl Topology {
    /// The topology that belongs to a seed. It has choices of its own.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7090);
        let (first_machines, machines) = match rng.between(0, 19) {
            0 | 1 => (0, USUAL_MACHINES),
            2 => (MOST_MACHINES, MOST_MACHINES),
            3 => (rng.below(MOST_MACHINES), MOST_MACHINES),
            _ => (4, USUAL_MACHINES),
        };
        Self {
            layout: Layout::of_seed(seed),
            first_machines,
            machines,
            ipam: rng.chance(25),
            dual_stack: rng.chance(25),
        }
    }

    /// The usual one with this layout.
    #[cfg(test)]
    pub(crate) const fn with_layout(layout: Layout) -> Self {
        Self {
            layout,
            first_machines: 4,
            machines: USUAL_MACHINES,
            ipam: false,
            dual_stack: false,
        }
    }

    /// The networks of the Pods, as the managers are given them.
    pub(crate) const fn cluster_cidr(self) -> &'static str {
        if self.dual_stack {
            "10.244.0.0/16,fd00:10:244::/48"
        } else {
            "10.244.0.0/16"
        }
    }

    /// The Pod CIDRs that the cluster gives a Node.
    pub(crate) fn pod_cidrs(self, number: usize) -> Vec<String> {
        let mut cidrs = vec![format!("10.244.{number}.0/24")];
        if self.dual_stack {
            let number = u16::try_from(number).unwrap_or_default();
            let network = Ipv6Addr::new(0xfd00, 0x10, 0x244, number, 0, 0, 0, 0);
            cidrs.push(format!("{network}/64"));
        }
        cidrs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_clusters_of_all_kinds() {
        let all: Vec<_> = (0..400).map(Topology::of_seed).collect();
        let has = |what: fn(&Topology) -> bool| all.iter().filter(|it| what(it)).count();
        assert!(has(|it| it.first_machines == 0) > 20);
        assert!(has(|it| it.first_machines == MOST_MACHINES) > 10);
        assert!(has(|it| it.ipam && it.dual_stack) > 10);
        assert!(has(|it| it.first_machines == 4 && !it.ipam && !it.dual_stack) > 120);
    }

    #[test]
    fn a_cluster_with_both_families_gives_nodes_a_network_of_each() {
        let mut topology = Topology::with_layout(Layout::One);
        assert_eq!(topology.pod_cidrs(10), ["10.244.10.0/24"]);
        topology.dual_stack = true;
        assert_eq!(
            topology.pod_cidrs(10),
            ["10.244.10.0/24", "fd00:10:244:a::/64"]
        );
    }
}
