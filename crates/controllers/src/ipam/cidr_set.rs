//! A cluster CIDR, cut into one block per Node: which blocks are allocated, and which is next.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// How many bits of an IPv6 cluster CIDR may tell Nodes apart, as upstream has it.
const MAX_NODE_BITS_V6: u8 = 16;

/// The blocks of one cluster CIDR.
#[derive(Debug, Clone)]
pub(super) struct CidrSet {
    cluster_cidr: IpNet,
    node_mask: u8,
    allocated: Ranges,
    /// Where the next search starts: behind the block that was allocated last. So a released block rests as long as
    /// possible, and whatever still refers to its last Node has time to forget.
    next_candidate: u64,
}

impl CidrSet {
    /// Cuts a cluster CIDR into blocks with this mask, or says which mask is possible.
    pub(super) fn new(cluster_cidr: IpNet, node_mask: u8) -> Result<Self, String> {
        let (cluster_mask, longest) = (cluster_cidr.prefix_len(), cluster_cidr.max_prefix_len());
        if node_mask > longest {
            return Err(format!(
                "a mask of at most {longest}, which is the length of an address"
            ));
        }
        if node_mask < cluster_mask {
            return Err(format!(
                "a mask of at least {cluster_mask}, which is that of the cluster CIDR"
            ));
        }
        if longest == 128 && node_mask - cluster_mask > MAX_NODE_BITS_V6 {
            return Err(format!(
                "a mask of at most {}, which is {MAX_NODE_BITS_V6} bits beyond the cluster CIDR",
                cluster_mask + MAX_NODE_BITS_V6
            ));
        }
        Ok(Self {
            cluster_cidr: cluster_cidr.trunc(),
            node_mask,
            allocated: Ranges::default(),
            next_candidate: 0,
        })
    }

    /// The cluster CIDR.
    pub(super) const fn cluster_cidr(&self) -> IpNet {
        self.cluster_cidr
    }

    /// How many blocks there are.
    pub(super) fn blocks(&self) -> u64 {
        1 << (self.node_mask - self.cluster_cidr.prefix_len())
    }

    /// How many blocks are allocated.
    pub(super) const fn allocated(&self) -> u64 {
        self.allocated.count
    }

    /// How many blocks are free.
    pub(super) fn free(&self) -> u64 {
        self.blocks() - self.allocated()
    }

    /// How many blocks a network touches; none if it lies outside the cluster CIDR.
    pub(super) fn touched_by(&self, cidr: &IpNet) -> u64 {
        self.span(cidr).map_or(0, |(first, last)| last - first + 1)
    }

    /// Allocates every block that a network touches. Returns how many were free before.
    pub(super) fn occupy(&mut self, cidr: &IpNet) -> u64 {
        self.span(cidr)
            .map_or(0, |(first, last)| self.allocated.insert(first, last))
    }

    /// Frees every block that a network touches. Returns how many were allocated before.
    pub(super) fn release(&mut self, cidr: &IpNet) -> u64 {
        self.span(cidr)
            .map_or(0, |(first, last)| self.allocated.remove(first, last))
    }

    /// Allocates the next free block, round robin. Returns it with how many allocated blocks were skipped to find
    /// it; `None` if all are allocated.
    pub(super) fn allocate_next(&mut self) -> Option<(IpNet, u64)> {
        let blocks = self.blocks();
        let gap = self.allocated.first_gap_from(self.next_candidate);
        let (index, skipped) = if gap < blocks {
            (gap, gap - self.next_candidate)
        } else {
            let gap = self.allocated.first_gap_from(0);
            (gap, blocks - self.next_candidate + gap)
        };
        let block = self.block(index)?;
        self.allocated.insert(index, index);
        self.next_candidate = (index + 1) % blocks;
        Some((block, skipped))
    }

    /// The block of this index, counted from 0. `None` if there are not as many.
    fn block(&self, index: u64) -> Option<IpNet> {
        if index >= self.blocks() {
            return None;
        }
        // A shift by the whole width happens only where there is a single block.
        let offset = u128::from(index).checked_shl(self.host_bits()).unwrap_or(0);
        let bits = number(self.cluster_cidr.network()) + offset;
        let address = match self.cluster_cidr {
            IpNet::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).ok()?)),
            IpNet::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        IpNet::new(address, self.node_mask).ok()
    }

    /// The first and the last block that a network touches.
    fn span(&self, cidr: &IpNet) -> Option<(u64, u64)> {
        if cidr.contains(&self.cluster_cidr) {
            return Some((0, self.blocks() - 1));
        }
        if !self.cluster_cidr.contains(cidr) {
            return None;
        }
        Some((self.index(cidr.network())?, self.index(cidr.broadcast())?))
    }

    /// The index of the block with this address of the cluster CIDR.
    fn index(&self, address: IpAddr) -> Option<u64> {
        let offset = number(address).checked_sub(number(self.cluster_cidr.network()))?;
        let index = offset.checked_shr(self.host_bits()).unwrap_or(0);
        u64::try_from(index).ok()
    }

    fn host_bits(&self) -> u32 {
        u32::from(self.cluster_cidr.max_prefix_len() - self.node_mask)
    }
}

impl fmt::Display for CidrSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in blocks of /{}", self.cluster_cidr, self.node_mask)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A set of numbers, kept as ranges: a cluster CIDR may have four billion blocks, and a service range or Nodes that
/// came one after the other are a single entry.
#[derive(Debug, Clone, Default)]
struct Ranges {
    /// First and last of each range. No two of them touch.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl Ranges {
    /// Adds all from `first` to `last`. Returns how many of them are new.
    fn insert(&mut self, first: u64, last: u64) -> u64 {
        let before = self.count;
        let (mut low, mut high) = (first, last);
        while let Some((begin, end)) = self.last_in(low.saturating_sub(1), high.saturating_add(1)) {
            self.take_out(begin, end);
            low = low.min(begin);
            high = high.max(end);
        }
        self.put(low, high);
        self.count - before
    }

    /// Removes all from `first` to `last`. Returns how many of them were there.
    fn remove(&mut self, first: u64, last: u64) -> u64 {
        let before = self.count;
        while let Some((begin, end)) = self.last_in(first, last) {
            self.take_out(begin, end);
            if begin < first {
                self.put(begin, first - 1);
            }
            if end > last {
                self.put(last + 1, end);
            }
        }
        before - self.count
    }

    /// The first number from `start` on that is not in the set.
    fn first_gap_from(&self, start: u64) -> u64 {
        self.last_in(start, start).map_or(start, |(_, end)| end + 1)
    }

    /// The last range that has a number between `first` and `last`.
    fn last_in(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let (begin, end) = self.ranges.range(..=last).next_back()?;
        (*end >= first).then_some((*begin, *end))
    }

    fn put(&mut self, first: u64, last: u64) {
        self.ranges.insert(first, last);
        self.count += last - first + 1;
    }

    fn take_out(&mut self, first: u64, last: u64) {
        self.ranges.remove(&first);
        self.count -= last - first + 1;
    }
}

#[cfg(test)]
mod tests;
