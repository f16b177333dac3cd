//! Which Node has which blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::NodeFacts;
use ipnet::IpNet;

use super::cidr_set::CidrSet;
use crate::clouds::is_unmanaged;
use crate::paused::paused_by;
use crate::runtime::Unobserved;
use crate::view::NodeView;

/// Observes the cluster CIDRs. The manager turns it into metrics, with the cluster CIDR as the label `clusterCIDR`.
pub trait IpamObserver: Send + Sync {
    /// A cluster CIDR has so many blocks: `node_ipam_controller_cirdset_max_cidrs`, spelt as upstream has it.
    /// Called once, at the start.
    fn has_blocks(&self, _cluster_cidr: IpNet, _blocks: u64) {}
    /// So many blocks were allocated: `node_ipam_controller_cidrset_cidrs_allocations_total`. Blocks that Nodes
    /// already had and those of service ranges count too.
    fn allocated(&self, _cluster_cidr: IpNet, _blocks: u64) {}
    /// So many blocks were released: `node_ipam_controller_cidrset_cidrs_releases_total`.
    fn released(&self, _cluster_cidr: IpNet, _blocks: u64) {}
    /// So many of all blocks are allocated now: `node_ipam_controller_cidrset_usage_cidrs` is the quotient.
    fn usage(&self, _cluster_cidr: IpNet, _used: u64, _blocks: u64) {}
    /// So many allocated blocks were skipped to find a free one:
    /// `node_ipam_controller_cidrset_allocation_tries_per_request`.
    fn tried(&self, _cluster_cidr: IpNet, _skipped: u64) {}
}

impl IpamObserver for Unobserved {}

/// What a Node has, or is about to get.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Allocation {
    /// The Node, which another of the same name is not.
    uid: String,
    cidrs: Vec<IpNet>,
    state: AllocationState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllocationState {
    /// The Node does not have them yet.
    Reserved,
    /// A write may have arrived, or may still do so.
    Unconfirmed,
    /// The Node has them for good.
    Written,
}

/// What is left to do for a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing but to report what is wrong with the networks that it has.
    Done(Vec<PodCidrProblem>),
    /// Write these, which are reserved for it.
    Write(Vec<IpNet>),
    /// This cluster CIDR has no free block for it.
    Exhausted(IpNet),
}

/// Something about a Node's networks that only a person can put right, because they can never be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodCidrProblem {
    /// The reason of the Event about it.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// All cluster CIDRs, and which Node has which blocks of them.
pub(super) struct Allocations {
    sets: Vec<CidrSet>,
    service_cidrs: Vec<IpNet>,
    by_node: BTreeMap<String, Allocation>,
    observer: Arc<dyn IpamObserver>,
}

impl Allocations {
    /// Cluster CIDRs of which only the service ranges are allocated.
    pub(super) fn new(
        sets: Vec<CidrSet>,
        service_cidrs: &[IpNet],
        observer: Arc<dyn IpamObserver>,
    ) -> Self {
        let mut this = Self {
            sets,
            service_cidrs: service_cidrs.to_vec(),
            by_node: BTreeMap::new(),
            observer,
        };
        for set in &mut this.sets {
            this.observer.has_blocks(set.cluster_cidr(), set.blocks());
            observed(set, this.observer.as_ref(), |set| {
                for cidr in service_cidrs {
                    set.occupy(cidr);
                }
            });
        }
        this
    }

    /// How many more Nodes can get a block of each cluster CIDR.
    pub(super) fn free(&self) -> u64 {
        self.sets.iter().map(CidrSet::free).min().unwrap_or(0)
    }

    /// Follows a Node as it is seen now, and says what is left to do for it.
    pub(super) fn sync(&mut self, name: &str, node: Option<&NodeView>) -> Step {
        let uid = node.map(|node| &node.facts.uid);
        let allocation = self.by_node.get(name);
        if allocation.is_some_and(|allocation| Some(&allocation.uid) != uid) {
            self.release(name);
        }
        let Some(node) = node else {
            return Step::Done(Vec::new());
        };
        if !node.facts.pod_cidrs.is_empty() {
            return Step::Done(self.occupy(&node.facts));
        }
        match self.by_node.get(name) {
            // The watch may lag behind a write, but it never takes one back.
            Some(allocation) if allocation.state == AllocationState::Written => {
                Step::Done(Vec::new())
            }
            // What is reserved stays so until the Node is gone: a write may still be on its way.
            _ if node.deleting || is_left_alone(&node.facts) => Step::Done(Vec::new()),
            Some(allocation) => Step::Write(allocation.cidrs.clone()),
            None => self.reserve(&node.facts),
        }
    }

    /// Reserves one block of every cluster CIDR, or none if one of them is exhausted.
    fn reserve(&mut self, node: &NodeFacts) -> Step {
        if let Some(full) = self.sets.iter().find(|set| set.free() == 0) {
            return Step::Exhausted(full.cluster_cidr());
        }
        let mut cidrs = Vec::new();
        for set in &mut self.sets {
            let allocated = observed(set, self.observer.as_ref(), CidrSet::allocate_next);
            if let Some((block, skipped)) = allocated {
                self.observer.tried(set.cluster_cidr(), skipped);
                cidrs.push(block);
            }
        }
        self.insert(node, cidrs.clone(), AllocationState::Reserved);
        Step::Write(cidrs)
    }

    /// Notes the networks that a Node has for good. What was reserved for it and is something else becomes free.
    pub(super) fn occupy(&mut self, node: &NodeFacts) -> Vec<PodCidrProblem> {
        let allocation = self.by_node.get(&node.name);
        let is_known =
            allocation.is_some_and(|known| known.uid == node.uid && known.cidrs == node.pod_cidrs);
        let mut problems = Vec::new();
        if !is_known {
            self.release(&node.name);
            for (index, cidr) in node.pod_cidrs.iter().enumerate() {
                problems.extend(self.misplaced(index, cidr));
                problems.extend(self.occupy_blocks(cidr));
            }
        }
        self.insert(node, node.pod_cidrs.clone(), AllocationState::Written);
        problems
    }

    /// Notes that what is reserved for a Node may have been written. It is kept until the Node is gone or has been
    /// seen with networks: a request that timed out here may be carried out at any time.
    pub(super) fn set_unconfirmed(&mut self, name: &str) {
        if let Some(allocation) = self.by_node.get_mut(name) {
            allocation.state = AllocationState::Unconfirmed;
        }
    }

    /// Frees what is reserved for a Node after a write was refused, unless an earlier one may have arrived.
    pub(super) fn release_reserved(&mut self, name: &str) {
        let allocation = self.by_node.get(name);
        if allocation.is_some_and(|known| known.state == AllocationState::Reserved) {
            self.release(name);
        }
    }

    /// Frees what the Node of this name had, but for blocks that other Nodes or services have too.
    fn release(&mut self, name: &str) {
        let Some(released) = self.by_node.remove(name) else {
            return;
        };
        let others = self.by_node.values().flat_map(|other| &other.cidrs);
        let others = others.chain(&self.service_cidrs);
        for set in &mut self.sets {
            observed(set, self.observer.as_ref(), |set| {
                for cidr in &released.cidrs {
                    set.release(cidr);
                }
                for cidr in others.clone() {
                    set.occupy(cidr);
                }
            });
        }
    }

    fn insert(&mut self, node: &NodeFacts, cidrs: Vec<IpNet>, state: AllocationState) {
        let allocation = Allocation {
            uid: node.uid.clone(),
            cidrs,
            state,
        };
        self.by_node.insert(node.name.clone(), allocation);
    }

    /// Whether a Node's network does not lie in the cluster CIDR of its place.
    fn misplaced(&self, index: usize, cidr: &IpNet) -> Option<PodCidrProblem> {
        let message = match self.sets.get(index) {
            Some(set) if set.touched_by(cidr) > 0 => return None,
            Some(set) => format!(
                "Pod CIDR {cidr} is outside the cluster CIDR {}",
                set.cluster_cidr()
            ),
            None => {
                let number = index + 1;
                format!(
                    "Pod CIDR {cidr} is number {number}, but there is no cluster CIDR number {number}"
                )
            }
        };
        let reason = "CIDROutOfRange";
        Some(PodCidrProblem { reason, message })
    }

    /// Allocates the blocks of a network in every cluster CIDR, also if it is misplaced: Pods have its addresses
    /// all the same.
    fn occupy_blocks(&mut self, cidr: &IpNet) -> Option<PodCidrProblem> {
        let mut is_shared = false;
        for set in &mut self.sets {
            let new = observed(set, self.observer.as_ref(), |set| set.occupy(cidr));
            is_shared |= new < set.touched_by(cidr);
        }
        if !is_shared {
            return None;
        }
        let overlap = |other: &IpNet| other.contains(cidr) || cidr.contains(other);
        self.by_node.iter().find_map(|(node, other)| {
            let theirs = other.cidrs.iter().find(|theirs| overlap(theirs))?;
            Some(PodCidrProblem {
                reason: "CIDRShared",
                message: format!("Pod CIDR {cidr} overlaps {theirs} of Node {node}"),
            })
        })
    }
}

/// Changes a cluster CIDR, and notifies the observer of what that means for its blocks.
fn observed<T>(
    set: &mut CidrSet,
    observer: &dyn IpamObserver,
    change: impl FnOnce(&mut CidrSet) -> T,
) -> T {
    let before = set.allocated();
    let outcome = change(set);
    let (cluster_cidr, after) = (set.cluster_cidr(), set.allocated());
    if after > before {
        observer.allocated(cluster_cidr, after - before);
    } else if after < before {
        observer.released(cluster_cidr, before - after);
    }
    observer.usage(cluster_cidr, after, set.blocks());
    outcome
}

/// Whether a person wants the Node to be left alone, for good or for now. What it has is noted all the same.
pub(super) fn is_left_alone(node: &NodeFacts) -> bool {
    is_unmanaged(node) || paused_by(&node.annotations).is_some()
}

#[cfg(test)]
mod tests;
