//! Loopback addresses that no other demo on this host is likely to use.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use ipnet::Ipv4Net;

/// Instances have the lower half of a /24, load balancers the upper one.
const FIRST_OF_BALANCERS: u8 = 128;

/// How many instances fit in the lower half: its ends, and the router of a network, are not used.
const MOST_MACHINES: u8 = 125;

/// A /24 of loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block([u8; 3]);

impl Block {
    /// The block of a process.
    pub(crate) const fn of_process(id: u32) -> Self {
        let [_, _, high, low] = id.to_be_bytes();
        Self([127, 128 | (high & 0x3f), low])
    }

    /// The address of a machine.
    pub(crate) fn machine(self, number: u8) -> Result<IpAddr, String> {
        if number == 0 || number > MOST_MACHINES {
            return Err(format!(
                "a demo has room for {MOST_MACHINES} machines, counted from its start"
            ));
        }
        Ok(self.address(number + 1))
    }

    /// The addresses of load balancers.
    pub(crate) fn balancers(self) -> Ipv4Net {
        self.net(FIRST_OF_BALANCERS, 25)
    }

    /// The addresses of instances.
    #[cfg(feature = "hetzner")]
    pub(crate) fn machines(self) -> Ipv4Net {
        self.net(0, 25)
    }

    /// The whole block.
    #[cfg(feature = "hetzner")]
    pub(crate) fn all(self) -> Ipv4Net {
        self.net(0, 24)
    }

    fn net(self, first: u8, length: u8) -> Ipv4Net {
        let [a, b, c] = self.0;
        Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, first), length)
    }

    /// Checks that this host has these addresses. On failure: what to do.
    pub(crate) fn check(self) -> Result<(), String> {
        let address = self.address(1);
        TcpListener::bind(SocketAddr::new(address, 0))
            .map(drop)
            .map_err(|error| {
                format!(
                    "{address} cannot be used ({error}). The demo gives every machine an address of \
                     127.0.0.0/8 of its own. Linux has them all; on macOS only 127.0.0.1 is there, \
                     so run the demo in a Linux container or virtual machine"
                )
            })
    }

    const fn address(self, last: u8) -> IpAddr {
        let [a, b, c] = self.0;
        IpAddr::V4(Ipv4Addr::new(a, b, c, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_balancers_of_a_block_do_not_meet() {
        let block = Block::of_process(0x0001_4207);
        assert_eq!(
            block.machine(1).unwrap().to_string(),
            "127.130.7.2",
            "loopback, away from 127.0.0.1"
        );
        assert!(block.machine(0).is_err());
        assert!(block.machine(126).is_err());
        let last = block.machine(125).unwrap();
        assert!(!IpAddr::V4(block.balancers().network()).eq(&last));
        assert!(matches!(last, IpAddr::V4(last) if !block.balancers().contains(&last)));
    }
}
