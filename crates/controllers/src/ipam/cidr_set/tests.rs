use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn set(cidr: &str, mask: u8) -> CidrSet {
    CidrSet::new(net(cidr), mask).unwrap()
}

fn allocate(set: &mut CidrSet) -> Option<String> {
    set.allocate_next().map(|(block, _)| block.to_string())
}

#[test]
fn blocks_are_counted_and_numbered_from_the_start_of_the_cluster_cidr() {
    for (cidr, mask, blocks, index, block) in [
        ("10.0.0.0/16", 24, 256, 3, "10.0.3.0/24"),
        ("10.0.7.9/16", 24, 256, 0, "10.0.0.0/24"),
        ("10.0.0.0/24", 24, 1, 0, "10.0.0.0/24"),
        ("192.168.0.0/30", 32, 4, 3, "192.168.0.3/32"),
        ("0.0.0.0/0", 0, 1, 0, "0.0.0.0/0"),
        ("0.0.0.0/0", 32, 1 << 32, 0xffff_ffff, "255.255.255.255/32"),
        ("fd00::/48", 64, 65_536, 65_535, "fd00:0:0:ffff::/64"),
        ("fd00::/112", 128, 65_536, 17, "fd00::11/128"),
        ("::/0", 0, 1, 0, "::/0"),
    ] {
        let set = set(cidr, mask);
        assert_eq!(set.blocks(), blocks, "{set}");
        assert_eq!(set.block(index), Some(net(block)), "{set}");
        assert_eq!(set.span(&net(block)), Some((index, index)), "{set}");
        assert_eq!(set.block(blocks), None, "{set}");
    }
}

#[test]
fn a_network_spans_every_block_that_it_touches() {
    let v4 = set("10.0.0.0/16", 24);
    for (case, cidr, span) in [
        ("a block", "10.0.5.0/24", Some((5, 5))),
        ("inside a block", "10.0.5.128/25", Some((5, 5))),
        ("several blocks", "10.0.4.0/22", Some((4, 7))),
        ("host bits set", "10.0.5.77/22", Some((4, 7))),
        ("the cluster CIDR", "10.0.0.0/16", Some((0, 255))),
        ("wider", "10.0.0.0/8", Some((0, 255))),
        ("beside it", "10.1.0.0/24", None),
        ("the other family", "fd00::/64", None),
    ] {
        assert_eq!(v4.span(&net(cidr)), span, "{case}");
    }
}

#[test]
fn masks_that_cannot_be_are_refused() {
    for (cidr, mask, expected) in [
        ("10.0.0.0/16", 15, "at least 16"),
        ("10.0.0.0/16", 33, "at most 32"),
        ("fd00::/48", 65, "at most 64"),
        ("fd00::/127", 129, "at most 128"),
    ] {
        let error = CidrSet::new(net(cidr), mask).unwrap_err();
        assert!(error.contains(expected), "{cidr} with {mask}: {error}");
    }
}

#[test]
fn blocks_come_round_robin_and_not_lowest_first() {
    let mut set = set("10.0.0.0/22", 24);
    assert_eq!(allocate(&mut set).unwrap(), "10.0.0.0/24");
    assert_eq!(allocate(&mut set).unwrap(), "10.0.1.0/24");
    set.release(&net("10.0.0.0/24"));
    assert_eq!(allocate(&mut set).unwrap(), "10.0.2.0/24");
    assert_eq!(allocate(&mut set).unwrap(), "10.0.3.0/24");
    assert_eq!(allocate(&mut set).unwrap(), "10.0.0.0/24", "around once");
    assert_eq!(allocate(&mut set), None);
    set.release(&net("10.0.2.0/24"));
    assert_eq!(allocate(&mut set).unwrap(), "10.0.2.0/24");
}

#[test]
fn a_wide_network_takes_all_its_blocks_and_nothing_is_counted_twice() {
    let mut set = set("10.0.0.0/16", 24);
    for (case, cidr, new, allocated) in [
        ("a block", "10.0.1.0/24", 1, 1),
        ("the same again", "10.0.1.0/24", 0, 1),
        ("inside it", "10.0.1.64/26", 0, 1),
        ("four with it", "10.0.0.0/22", 3, 4),
        ("elsewhere", "10.1.0.0/24", 0, 4),
        ("everything", "10.0.0.0/8", 252, 256),
    ] {
        assert_eq!(set.occupy(&net(cidr)), new, "{case}");
        assert_eq!(set.allocated(), allocated, "{case}");
    }
    assert_eq!(set.allocate_next(), None);
    assert_eq!(set.release(&net("10.0.9.0/24")), 1);
    assert_eq!(set.release(&net("10.0.9.0/24")), 0, "already free");
    assert_eq!((set.allocated(), set.free()), (255, 1));
}

#[test]
fn allocated_blocks_are_skipped_and_counted() {
    let mut set = set("10.0.0.0/22", 24);
    set.occupy(&net("10.0.0.0/23"));
    assert_eq!(set.allocate_next(), Some((net("10.0.2.0/24"), 2)));
    set.occupy(&net("10.0.3.0/24"));
    set.release(&net("10.0.1.0/24"));
    assert_eq!(set.allocate_next(), Some((net("10.0.1.0/24"), 2)));
}

#[test]
fn sixteen_bits_of_nodes_are_allocated_to_the_last() {
    let mut set = set("fd00:1::/48", 64);
    let mut seen = BTreeSet::new();
    while let Some(block) = allocate(&mut set) {
        assert!(seen.insert(block));
    }
    assert_eq!(seen.len(), 65_536);
    assert_eq!((set.allocated(), set.free()), (65_536, 0));
    assert!(seen.contains("fd00:1:0:ffff::/64"));
}

#[test]
fn the_largest_cluster_cidr_costs_nothing_until_it_is_used() {
    let mut set = set("0.0.0.0/0", 32);
    assert_eq!(set.occupy(&net("0.0.0.0/1")), 1 << 31);
    assert_eq!(allocate(&mut set).unwrap(), "128.0.0.0/32");
    assert_eq!(set.free(), (1 << 31) - 1);
}

#[derive(Debug, Clone)]
enum Step {
    Allocate,
    Occupy(u64, u8),
    Release(u64, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Allocate),
        1 => (0_u64..32, 0_u8..=6).prop_map(|(block, wider)| Step::Occupy(block, wider)),
        2 => (0_u64..32, 0_u8..=1).prop_map(|(block, wider)| Step::Release(block, wider)),
    ]
}

/// The network that begins at a block and is so many bits wider, cut off at its own boundary.
fn around(set: &CidrSet, block: u64, wider: u8) -> IpNet {
    let block = set.block(block).unwrap();
    IpNet::new(block.network(), block.prefix_len() - wider)
        .unwrap()
        .trunc()
}

fn never_allocates_what_is_in_use(mut set: CidrSet, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let all: Vec<IpNet> = (0..32).map(|index| set.block(index).unwrap()).collect();
    let mut in_use: BTreeSet<IpNet> = BTreeSet::new();
    for step in steps {
        match step {
            Step::Allocate => {
                let Some((block, _)) = set.allocate_next() else {
                    prop_assert_eq!(in_use.len(), all.len(), "full too early");
                    continue;
                };
                prop_assert!(all.contains(&block), "{block} is elsewhere");
                prop_assert!(in_use.insert(block), "{block} is in use");
            }
            Step::Occupy(block, wider) => {
                let network = around(&set, block, wider);
                set.occupy(&network);
                in_use.extend(all.iter().filter(|block| network.contains(*block)));
            }
            Step::Release(block, wider) => {
                let network = around(&set, block, wider);
                set.release(&network);
                in_use.retain(|block| !network.contains(block));
            }
        }
        prop_assert_eq!(set.allocated(), in_use.len() as u64);
        prop_assert_eq!(set.free(), (all.len() - in_use.len()) as u64);
    }
    Ok(())
}

#[test]
fn neighbours_become_one_range_and_a_removal_splits_it() {
    let mut set = Ranges::default();
    for number in [0, 2, 1] {
        assert_eq!(set.insert(number, number), 1);
    }
    assert_eq!(set.ranges, BTreeMap::from([(0, 2)]));
    assert_eq!(set.remove(1, 1), 1);
    assert_eq!(set.ranges, BTreeMap::from([(0, 0), (2, 2)]));
    assert_eq!(set.first_gap_from(0), 1);
    assert_eq!(set.first_gap_from(2), 3);
}

proptest! {
    #[test]
    fn an_allocated_block_is_never_allocated_again_and_a_released_one_is(
        steps in prop::collection::vec(step(), 0..120),
    ) {
        never_allocates_what_is_in_use(set("10.0.0.0/19", 24), steps.clone())?;
        never_allocates_what_is_in_use(set("fd00::/59", 64), steps)?;
    }

    #[test]
    fn ranges_do_what_a_plain_set_does(
        steps in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 0..60),
    ) {
        let mut ranges = Ranges::default();
        let mut plain = BTreeSet::new();
        for (add, first, length) in steps {
            let numbers = first..=first + length;
            if add {
                let new = numbers.filter(|number| plain.insert(*number)).count() as u64;
                prop_assert_eq!(ranges.insert(first, first + length), new);
            } else {
                let gone = numbers.filter(|number| plain.remove(number)).count() as u64;
                prop_assert_eq!(ranges.remove(first, first + length), gone);
            }
            prop_assert_eq!(ranges.count, plain.len() as u64);
            for start in 0..60 {
                let gap = (start..100).find(|number| !plain.contains(number));
                prop_assert_eq!(Some(ranges.first_gap_from(start)), gap);
            }
        }
    }
}
