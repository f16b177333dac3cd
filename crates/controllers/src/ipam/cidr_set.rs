//! Which blocks of one cluster CIDR are in use, and which is next.

use ipnet::IpNet;

use super::range::ClusterRange;
use super::runs::Runs;

/// A free block that may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The block.
    pub(super) cidr: IpNet,
    /// How many blocks were passed over because they are in use.
    pub(super) passed_over: u64,
    index: u64,
}

/// Which blocks of one cluster CIDR are in use.
#[derive(Debug, Clone)]
pub(super) struct CidrSet {
    range: ClusterRange,
    used: Runs,
    /// Where the next search starts: behind the block that was taken last. So a block that was given
    /// back rests as long as possible, and whoever still remembers its last owner has time to forget.
    cursor: u64,
}

impl CidrSet {
    /// All blocks of a range, none in use.
    pub(super) fn new(range: ClusterRange) -> Self {
        Self {
            range,
            used: Runs::default(),
            cursor: 0,
        }
    }

    /// The range that is handed out.
    pub(super) const fn range(&self) -> &ClusterRange {
        &self.range
    }

    /// How many blocks are in use.
    pub(super) const fn used(&self) -> u64 {
        self.used.count()
    }

    /// How many blocks are free.
    pub(super) fn free(&self) -> u64 {
        self.range.blocks() - self.used()
    }

    /// How many blocks a network touches; none if it lies elsewhere.
    pub(super) fn touched_by(&self, cidr: &IpNet) -> u64 {
        self.range
            .span(cidr)
            .map_or(0, |(first, last)| last - first + 1)
    }

    /// Counts every block that a network touches as used. Returns how many were free before.
    pub(super) fn occupy(&mut self, cidr: &IpNet) -> u64 {
        self.range
            .span(cidr)
            .map_or(0, |(first, last)| self.used.insert(first, last))
    }

    /// Counts every block that a network touches as free. Returns how many were in use before.
    pub(super) fn release(&mut self, cidr: &IpNet) -> u64 {
        self.range
            .span(cidr)
            .map_or(0, |(first, last)| self.used.remove(first, last))
    }

    /// The next free block, round robin from the one that was taken last. It is not taken yet. `None`
    /// if all are in use.
    pub(super) fn next_free(&self) -> Option<Candidate> {
        let blocks = self.range.blocks();
        let gap = self.used.first_gap_from(self.cursor);
        let (index, passed_over) = if gap < blocks {
            (gap, gap - self.cursor)
        } else {
            let gap = self.used.first_gap_from(0);
            (gap, blocks - self.cursor + gap)
        };
        let cidr = self.range.block(index)?;
        Some(Candidate {
            cidr,
            passed_over,
            index,
        })
    }

    /// Takes a block that [`next_free`](Self::next_free) offered.
    pub(super) fn take(&mut self, candidate: &Candidate) {
        self.used.insert(candidate.index, candidate.index);
        self.cursor = (candidate.index + 1) % self.range.blocks();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn set(cidr: &str, mask: u8) -> CidrSet {
        CidrSet::new(ClusterRange::new(net(cidr), mask).unwrap())
    }

    fn take(set: &mut CidrSet) -> Option<String> {
        let candidate = set.next_free()?;
        set.take(&candidate);
        Some(candidate.cidr.to_string())
    }

    #[test]
    fn blocks_come_round_robin_and_not_lowest_first() {
        let mut set = set("10.0.0.0/22", 24);
        assert_eq!(take(&mut set).unwrap(), "10.0.0.0/24");
        assert_eq!(take(&mut set).unwrap(), "10.0.1.0/24");
        set.release(&net("10.0.0.0/24"));
        assert_eq!(take(&mut set).unwrap(), "10.0.2.0/24");
        assert_eq!(take(&mut set).unwrap(), "10.0.3.0/24");
        assert_eq!(take(&mut set).unwrap(), "10.0.0.0/24", "around once");
        assert_eq!(take(&mut set), None);
        set.release(&net("10.0.2.0/24"));
        assert_eq!(take(&mut set).unwrap(), "10.0.2.0/24");
    }

    #[test]
    fn a_wide_network_uses_all_its_blocks_and_nothing_is_counted_twice() {
        let mut set = set("10.0.0.0/16", 24);
        for (case, cidr, new, used) in [
            ("a block", "10.0.1.0/24", 1, 1),
            ("the same again", "10.0.1.0/24", 0, 1),
            ("inside it", "10.0.1.64/26", 0, 1),
            ("four with it", "10.0.0.0/22", 3, 4),
            ("elsewhere", "10.1.0.0/24", 0, 4),
            ("everything", "10.0.0.0/8", 252, 256),
        ] {
            assert_eq!(set.occupy(&net(cidr)), new, "{case}");
            assert_eq!(set.used(), used, "{case}");
        }
        assert_eq!(set.next_free(), None);
        assert_eq!(set.release(&net("10.0.9.0/24")), 1);
        assert_eq!(set.release(&net("10.0.9.0/24")), 0, "already free");
        assert_eq!((set.used(), set.free()), (255, 1));
    }

    #[test]
    fn blocks_in_use_are_passed_over_and_counted() {
        let mut set = set("10.0.0.0/22", 24);
        set.occupy(&net("10.0.0.0/23"));
        let candidate = set.next_free().unwrap();
        assert_eq!(
            (candidate.cidr, candidate.passed_over),
            (net("10.0.2.0/24"), 2)
        );
        set.take(&candidate);
        set.occupy(&net("10.0.3.0/24"));
        set.release(&net("10.0.1.0/24"));
        let around = set.next_free().unwrap();
        assert_eq!((around.cidr, around.passed_over), (net("10.0.1.0/24"), 2));
    }

    #[test]
    fn sixteen_bits_of_nodes_are_handed_out_to_the_last() {
        let mut set = set("fd00:1::/48", 64);
        let mut seen = BTreeSet::new();
        while let Some(block) = take(&mut set) {
            assert!(seen.insert(block));
        }
        assert_eq!(seen.len(), 65_536);
        assert_eq!((set.used(), set.free()), (65_536, 0));
        assert!(seen.contains("fd00:1:0:ffff::/64"));
    }

    #[test]
    fn the_largest_range_costs_nothing_until_it_is_used() {
        let mut set = set("0.0.0.0/0", 32);
        assert_eq!(set.occupy(&net("0.0.0.0/1")), 1 << 31);
        assert_eq!(take(&mut set).unwrap(), "128.0.0.0/32");
        assert_eq!(set.free(), (1 << 31) - 1);
    }

    #[derive(Debug, Clone)]
    enum Deed {
        Take,
        Occupy(u64, u8),
        Release(u64, u8),
    }

    fn deed() -> impl Strategy<Value = Deed> {
        prop_oneof![
            3 => Just(Deed::Take),
            1 => (0_u64..32, 0_u8..=6).prop_map(|(block, wider)| Deed::Occupy(block, wider)),
            2 => (0_u64..32, 0_u8..=1).prop_map(|(block, wider)| Deed::Release(block, wider)),
        ]
    }

    /// The network that begins at a block and is so many bits wider, cut off at its own boundary.
    fn around(set: &CidrSet, block: u64, wider: u8) -> IpNet {
        let block = set.range().block(block).unwrap();
        IpNet::new(block.network(), block.prefix_len() - wider)
            .unwrap()
            .trunc()
    }

    fn never_hands_out_what_is_in_use(
        mut set: CidrSet,
        deeds: Vec<Deed>,
    ) -> Result<(), TestCaseError> {
        let all: Vec<IpNet> = (0..32)
            .map(|index| set.range().block(index).unwrap())
            .collect();
        let mut in_use: BTreeSet<IpNet> = BTreeSet::new();
        for deed in deeds {
            match deed {
                Deed::Take => {
                    let Some(candidate) = set.next_free() else {
                        prop_assert_eq!(in_use.len(), all.len(), "full too early");
                        continue;
                    };
                    let cidr = candidate.cidr;
                    prop_assert!(all.contains(&cidr), "{cidr} is elsewhere");
                    prop_assert!(in_use.insert(cidr), "{cidr} is in use");
                    set.take(&candidate);
                }
                Deed::Occupy(block, wider) => {
                    let network = around(&set, block, wider);
                    set.occupy(&network);
                    in_use.extend(all.iter().filter(|block| network.contains(*block)));
                }
                Deed::Release(block, wider) => {
                    let network = around(&set, block, wider);
                    set.release(&network);
                    in_use.retain(|block| !network.contains(block));
                }
            }
            prop_assert_eq!(set.used(), in_use.len() as u64);
            prop_assert_eq!(set.free(), (all.len() - in_use.len()) as u64);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_block_in_use_is_never_handed_out_and_a_released_one_is(
            deeds in prop::collection::vec(deed(), 0..120),
        ) {
            never_hands_out_what_is_in_use(set("10.0.0.0/19", 24), deeds.clone())?;
            never_hands_out_what_is_in_use(set("fd00::/59", 64), deeds)?;
        }
    }
}
