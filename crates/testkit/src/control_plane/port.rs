//! Ports for programs that a test starts and that get theirs by a flag.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux gives to clients and to whatever binds port 0, and below node ports: none of them takes one
/// before the program has started.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;
/// Test programs that run side by side begin so far apart.
const PER_PROCESS: u32 = 97;

/// A port of 127.0.0.1 that is free, and that no other test is given soon.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(PER_PROCESS);
    for _ in 0..COUNT {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from(number % u32::from(COUNT)).unwrap_or(0);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_and_given_once() {
        let (first, second) = (free_port().unwrap(), free_port().unwrap());
        assert_ne!(first, second);
        for port in [first, second] {
            assert!((FIRST..FIRST + COUNT).contains(&port), "{port}");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }
}
