//! Who has which blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::NodeFacts;
use ipnet::IpNet;

use super::cidr_set::{Candidate, CidrSet};
use super::observer::IpamObserver;
use super::range::ClusterRange;

/// What a Node has, or is about to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holding {
    /// The Node, which another of the same name is not.
    pub(super) uid: String,
    /// Its networks.
    pub(super) cidrs: Vec<IpNet>,
    /// Whether it has them.
    pub(super) certainty: Certainty,
}

/// Whether a Node has what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It does not have them yet.
    Reserved,
    /// A write may have arrived, or may still do so.
    InDoubt,
    /// It has them for good.
    Written,
}

/// Something about a Node's networks that only a person can put right, because they can never be
/// changed once they are written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    /// It lies elsewhere.
    #[error("Pod network {cidr} is outside the cluster CIDR {cluster_cidr}")]
    Outside {
        /// The Node's network.
        cidr: IpNet,
        /// Where it should lie.
        cluster_cidr: IpNet,
    },
    /// There are fewer cluster CIDRs than the Node has networks.
    #[error("Pod network {cidr} is number {number}, but there is no cluster CIDR number {number}")]
    Extra {
        /// The Node's network.
        cidr: IpNet,
        /// Its place, counted from 1.
        number: usize,
    },
    /// Another Node has some of the same addresses.
    #[error("Pod network {cidr} overlaps {theirs} of Node {node}")]
    Shared {
        /// The Node's network.
        cidr: IpNet,
        /// The other's network.
        theirs: IpNet,
        /// The other Node.
        node: String,
    },
}

impl Misfit {
    /// The reason of the event about it.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Outside { .. } | Self::Extra { .. } => "CIDROutOfRange",
            Self::Shared { .. } => "CIDRShared",
        }
    }
}

/// All ranges, and who has which blocks of them.
pub(super) struct Book {
    sets: Vec<CidrSet>,
    services: Vec<IpNet>,
    /// By the name of the Node.
    holdings: BTreeMap<String, Holding>,
    /// Whether a block has ever been wanted by two. Only then is a release more than its own matter.
    is_contested: bool,
    observer: Arc<dyn IpamObserver>,
}

impl Book {
    /// Ranges of which only the service ranges are in use.
    pub(super) fn new(
        ranges: &[ClusterRange],
        services: &[IpNet],
        observer: Arc<dyn IpamObserver>,
    ) -> Self {
        let mut sets: Vec<_> = ranges.iter().copied().map(CidrSet::new).collect();
        for set in &mut sets {
            observer.has_blocks(set.range().cidr(), set.range().blocks());
            observed(set, observer.as_ref(), |set| {
                for service in services {
                    set.occupy(service);
                }
            });
        }
        Self {
            sets,
            services: services.to_vec(),
            holdings: BTreeMap::new(),
            is_contested: false,
            observer,
        }
    }

    /// What the Node of this name has.
    pub(super) fn holding(&self, name: &str) -> Option<&Holding> {
        self.holdings.get(name)
    }

    /// How many more Nodes can get a block of each range.
    pub(super) fn room(&self) -> u64 {
        self.sets.iter().map(CidrSet::free).min().unwrap_or(0)
    }

    /// The next free block of every range, or the cluster CIDR that has none. Nothing is taken, so a
    /// range that is full costs the others no block.
    pub(super) fn candidates(&self) -> Result<Vec<Candidate>, IpNet> {
        let next = |set: &CidrSet| set.next_free().ok_or_else(|| set.range().cidr());
        self.sets.iter().map(next).collect()
    }

    /// Takes one block of every range for a Node.
    pub(super) fn reserve(&mut self, node: &NodeFacts, blocks: &[Candidate]) {
        for (set, block) in self.sets.iter_mut().zip(blocks) {
            observed(set, self.observer.as_ref(), |set| set.take(block));
            self.observer.tried(set.range().cidr(), block.passed_over);
        }
        let cidrs = blocks.iter().map(|block| block.cidr).collect();
        self.hold(node, cidrs, Certainty::Reserved);
    }

    /// Notes the networks that a Node has for good. What was reserved for it and is something else
    /// becomes free.
    pub(super) fn settle(&mut self, node: &NodeFacts) -> Vec<Misfit> {
        let held = self.holdings.get(&node.name);
        let as_reserved =
            held.is_some_and(|held| held.uid == node.uid && held.cidrs == node.pod_cidrs);
        let mut misfits = Vec::new();
        if !as_reserved {
            self.release(&node.name);
            for (index, cidr) in node.pod_cidrs.iter().enumerate() {
                misfits.extend(self.misplaced(index, cidr));
                misfits.extend(self.occupy(cidr));
            }
        }
        self.hold(node, node.pod_cidrs.clone(), Certainty::Written);
        misfits
    }

    /// Notes that what is reserved for a Node may have been written. It is kept until the Node is gone
    /// or has been seen with networks: a request that timed out here may be carried out at any time.
    pub(super) fn doubt(&mut self, name: &str) {
        if let Some(held) = self.holdings.get_mut(name) {
            held.certainty = Certainty::InDoubt;
        }
    }

    /// Frees what is reserved for a Node after a write that was refused, unless an earlier one is in
    /// doubt.
    pub(super) fn give_up(&mut self, name: &str) {
        let is_reserved = |held: &Holding| held.certainty == Certainty::Reserved;
        if self.holdings.get(name).is_some_and(is_reserved) {
            self.release(name);
        }
    }

    /// Frees what the Node of this name had, but for what somebody else has too.
    pub(super) fn release(&mut self, name: &str) {
        let Some(freed) = self.holdings.remove(name) else {
            return;
        };
        let others = self.holdings.values().flat_map(|held| &held.cidrs);
        let others = others.chain(&self.services);
        for set in &mut self.sets {
            observed(set, self.observer.as_ref(), |set| {
                for cidr in &freed.cidrs {
                    set.release(cidr);
                }
                if self.is_contested {
                    for other in others.clone() {
                        set.occupy(other);
                    }
                }
            });
        }
    }

    fn hold(&mut self, node: &NodeFacts, cidrs: Vec<IpNet>, certainty: Certainty) {
        let holding = Holding {
            uid: node.uid.clone(),
            cidrs,
            certainty,
        };
        self.holdings.insert(node.name.clone(), holding);
    }

    /// Whether a Node's network does not lie in the cluster CIDR of its place.
    fn misplaced(&self, index: usize, cidr: &IpNet) -> Option<Misfit> {
        match self.sets.get(index) {
            None => Some(Misfit::Extra {
                cidr: *cidr,
                number: index + 1,
            }),
            Some(set) if set.touched_by(cidr) == 0 => Some(Misfit::Outside {
                cidr: *cidr,
                cluster_cidr: set.range().cidr(),
            }),
            Some(_) => None,
        }
    }

    /// Counts a network as used in every range that it touches, also if it is misplaced: Pods have its
    /// addresses all the same.
    fn occupy(&mut self, cidr: &IpNet) -> Option<Misfit> {
        let mut is_contested = false;
        for set in &mut self.sets {
            let touched = set.touched_by(cidr);
            let new = observed(set, self.observer.as_ref(), |set| set.occupy(cidr));
            is_contested |= new < touched;
        }
        if !is_contested {
            return None;
        }
        self.is_contested = true;
        self.holdings.iter().find_map(|(node, held)| {
            let theirs = held.cidrs.iter().find(|theirs| overlap(theirs, cidr))?;
            Some(Misfit::Shared {
                cidr: *cidr,
                theirs: *theirs,
                node: node.clone(),
            })
        })
    }
}

/// Changes a set and tells what that means for its blocks.
fn observed<T>(
    set: &mut CidrSet,
    observer: &dyn IpamObserver,
    change: impl FnOnce(&mut CidrSet) -> T,
) -> T {
    let before = set.used();
    let outcome = change(set);
    let (range, after) = (set.range(), set.used());
    if after > before {
        observer.allocated(range.cidr(), after - before);
    } else if after < before {
        observer.released(range.cidr(), before - after);
    }
    observer.usage(range.cidr(), after, range.blocks());
    outcome
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

#[cfg(test)]
mod tests;
