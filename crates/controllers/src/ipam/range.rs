//! A cluster CIDR, cut into one block per Node.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// How many bits of an IPv6 cluster CIDR may tell Nodes apart, as upstream has it.
const MOST_NODE_BITS_V6: u8 = 16;

/// A cluster CIDR and the size of the blocks that it is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterRange {
    cidr: IpNet,
    node_mask: u8,
}

/// Why a cluster CIDR cannot be cut into blocks of that size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The block is larger than the whole.
    #[error("a mask of at least {cluster_mask}, which is that of the cluster CIDR")]
    WiderThanCluster {
        /// The mask of the cluster CIDR.
        cluster_mask: u8,
    },
    /// Addresses of this family are not as long.
    #[error("a mask of at most {longest}, which is the length of an address")]
    LongerThanAddress {
        /// The length of an address.
        longest: u8,
    },
    /// Too many blocks.
    #[error(
        "a mask of at most {longest}, which is {MOST_NODE_BITS_V6} bits beyond the cluster CIDR"
    )]
    TooManyBlocks {
        /// The longest mask that will do.
        longest: u8,
    },
}

impl ClusterRange {
    /// Cuts `cidr` into blocks with the mask `node_mask`.
    pub fn new(cidr: IpNet, node_mask: u8) -> Result<Self, RangeError> {
        let cluster_mask = cidr.prefix_len();
        if node_mask > cidr.max_prefix_len() {
            let longest = cidr.max_prefix_len();
            return Err(RangeError::LongerThanAddress { longest });
        }
        if node_mask < cluster_mask {
            return Err(RangeError::WiderThanCluster { cluster_mask });
        }
        if matches!(cidr, IpNet::V6(_)) && node_mask - cluster_mask > MOST_NODE_BITS_V6 {
            let longest = cluster_mask + MOST_NODE_BITS_V6;
            return Err(RangeError::TooManyBlocks { longest });
        }
        Ok(Self {
            cidr: cidr.trunc(),
            node_mask,
        })
    }

    /// The cluster CIDR.
    pub const fn cidr(&self) -> IpNet {
        self.cidr
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        1 << (self.node_mask - self.cidr.prefix_len())
    }

    /// The block of this index, counted from 0. `None` if there are not as many.
    pub(super) fn block(&self, index: u64) -> Option<IpNet> {
        if index >= self.blocks() {
            return None;
        }
        // A shift by the whole width happens only where there is a single block.
        let offset = u128::from(index)
            .checked_shl(self.bits_inside_block())
            .unwrap_or(0);
        let bits = number(self.cidr.network()) + offset;
        let address = match self.cidr {
            IpNet::V4(_) => {
                let [.., a, b, c, d] = bits.to_be_bytes();
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            IpNet::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        IpNet::new(address, self.node_mask).ok()
    }

    /// The first and the last block that have something in common with `cidr`, if any have.
    pub(super) fn span(&self, cidr: &IpNet) -> Option<(u64, u64)> {
        if cidr.contains(&self.cidr) {
            return Some((0, self.blocks() - 1));
        }
        if !self.cidr.contains(cidr) {
            return None;
        }
        Some((self.index(cidr.network())?, self.index(cidr.broadcast())?))
    }

    /// The index of the block with this address, which is in the range.
    fn index(&self, address: IpAddr) -> Option<u64> {
        let offset = number(address).checked_sub(number(self.cidr.network()))?;
        let index = offset.checked_shr(self.bits_inside_block()).unwrap_or(0);
        u64::try_from(index).ok()
    }

    fn bits_inside_block(&self) -> u32 {
        u32::from(self.cidr.max_prefix_len() - self.node_mask)
    }
}

impl fmt::Display for ClusterRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in blocks of /{}", self.cidr, self.node_mask)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(cidr: &str, mask: u8) -> ClusterRange {
        ClusterRange::new(cidr.parse().unwrap(), mask).unwrap()
    }

    #[test]
    fn blocks_are_counted_and_numbered_from_the_start_of_the_range() {
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
            let range = range(cidr, mask);
            assert_eq!(range.blocks(), blocks, "{range}");
            let expected: IpNet = block.parse().unwrap();
            assert_eq!(range.block(index), Some(expected), "{range}");
            assert_eq!(range.span(&expected), Some((index, index)), "{range}");
            assert_eq!(range.block(blocks), None, "{range}");
        }
    }

    #[test]
    fn a_network_spans_every_block_that_it_touches() {
        let v4 = range("10.0.0.0/16", 24);
        for (case, cidr, span) in [
            ("a block", "10.0.5.0/24", Some((5, 5))),
            ("inside a block", "10.0.5.128/25", Some((5, 5))),
            ("several blocks", "10.0.4.0/22", Some((4, 7))),
            ("host bits set", "10.0.5.77/22", Some((4, 7))),
            ("the range", "10.0.0.0/16", Some((0, 255))),
            ("wider than the range", "10.0.0.0/8", Some((0, 255))),
            ("beside the range", "10.1.0.0/24", None),
            ("the other family", "fd00::/64", None),
        ] {
            assert_eq!(v4.span(&cidr.parse().unwrap()), span, "{case}");
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (cidr, mask, error) in [
            (
                "10.0.0.0/16",
                15,
                RangeError::WiderThanCluster { cluster_mask: 16 },
            ),
            (
                "10.0.0.0/16",
                33,
                RangeError::LongerThanAddress { longest: 32 },
            ),
            ("fd00::/48", 65, RangeError::TooManyBlocks { longest: 64 }),
            (
                "fd00::/127",
                129,
                RangeError::LongerThanAddress { longest: 128 },
            ),
        ] {
            let given = ClusterRange::new(cidr.parse().unwrap(), mask);
            assert_eq!(given, Err(error), "{cidr} with {mask}");
        }
    }
}
