//! The few netlink messages about routes that are needed, as bytes. Pure.
//!
//! Three kinds of message with two attributes do not pay for a netlink stack and its ten crates.

use std::net::IpAddr;

use ipnet::IpNet;

/// The protocol of our routes, by which the kernel records their creator. No other program uses this
/// number by default.
pub(super) const MARK: u8 = 207;

pub(super) const NEW: u16 = 24;
const DELETE: u16 = 25;
const GET: u16 = 26;
pub(super) const ERROR: u16 = 2;
pub(super) const DONE: u16 = 3;

const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;

const DESTINATION: u16 = 1;
const GATEWAY: u16 = 5;

const INET: u8 = 2;
const INET6: u8 = 10;
const MAIN_TABLE: u8 = 254;
const UNIVERSE: u8 = 0;
const ANY_SCOPE: u8 = 255;
const UNICAST: u8 = 1;
const ANY_TYPE: u8 = 0;

const HEADER: usize = 16;
const ROUTE_HEADER: usize = 12;

/// Adds a route with our mark, unless there is any to that network.
pub(super) fn add(to: IpNet, via: IpAddr, sequence: u32) -> Vec<u8> {
    let flags = REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE;
    change((NEW, flags), (UNIVERSE, UNICAST), to, via, sequence)
}

/// Drops the route with our mark.
pub(super) fn remove(to: IpNet, via: IpAddr, sequence: u32) -> Vec<u8> {
    let flags = REQUEST | ACKNOWLEDGE;
    change((DELETE, flags), (ANY_SCOPE, ANY_TYPE), to, via, sequence)
}

/// Asks for all routes of a family.
pub(super) fn list(is_v4: bool, sequence: u32) -> Vec<u8> {
    let family = if is_v4 { INET } else { INET6 };
    let body = [family, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    message(GET, REQUEST | DUMP, sequence, &body)
}

fn change(
    (kind, flags): (u16, u16),
    (scope, route_type): (u8, u8),
    to: IpNet,
    via: IpAddr,
    sequence: u32,
) -> Vec<u8> {
    let family = if to.network().is_ipv4() { INET } else { INET6 };
    let length = to.prefix_len();
    let mut body = vec![
        family, length, 0, 0, MAIN_TABLE, MARK, scope, route_type, 0, 0, 0, 0,
    ];
    attribute(&mut body, DESTINATION, to.network());
    attribute(&mut body, GATEWAY, via);
    message(kind, flags, sequence, &body)
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// Addresses are 4 or 16 bytes long, so attributes need no padding.
fn attribute(body: &mut Vec<u8>, kind: u16, ip: IpAddr) {
    let octets = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let length = u16::try_from(4 + octets.len()).unwrap_or_default();
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(octets);
}

/// One message of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    pub(super) sequence: u32,
    pub(super) body: &'a [u8],
}

/// The messages of a datagram. What is cut short ends the list.
pub(super) fn messages(mut bytes: &[u8]) -> Vec<Message<'_>> {
    let mut found = Vec::new();
    while let (Some(length), Some(kind), Some(sequence)) =
        (u32_at(bytes, 0), u16_at(bytes, 4), u32_at(bytes, 8))
    {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(body) = bytes.get(HEADER..length) else {
            break;
        };
        found.push(Message {
            kind,
            sequence,
            body,
        });
        bytes = bytes.get(padded(length)..).unwrap_or_default();
    }
    found
}

/// The number in an error message; 0 is none.
pub(super) fn error_number(body: &[u8]) -> Option<i32> {
    let bytes = body.first_chunk::<4>()?;
    Some(i32::from_ne_bytes(*bytes).saturating_neg())
}

/// A route of the main table with our mark, if the message shows one.
pub(super) fn our_route(body: &[u8]) -> Option<(IpNet, IpAddr)> {
    let header = body.get(..ROUTE_HEADER)?;
    let (length, table, mark) = (header.get(1)?, header.get(4)?, header.get(5)?);
    if *table != MAIN_TABLE || *mark != MARK {
        return None;
    }
    let (mut to, mut via) = (None, None);
    let mut rest = body.get(ROUTE_HEADER..)?;
    while let (Some(size), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let size = usize::from(size);
        let value = rest.get(4..size)?;
        match kind {
            DESTINATION => to = address(value),
            GATEWAY => via = address(value),
            _ => {}
        }
        rest = rest.get(padded(size)..).unwrap_or_default();
    }
    Some((IpNet::new(to?, *length).ok()?, via?))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

const fn padded(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_can_be_read() {
        for (to, via) in [("10.244.1.0/24", "192.168.1.7"), ("fd00:1::/64", "fd00::7")] {
            let (to, via): (IpNet, IpAddr) = (to.parse().unwrap(), via.parse().unwrap());
            let bytes = add(to, via, 7);
            let [message] = &*messages(&bytes) else {
                panic!("one message: {bytes:?}");
            };
            assert_eq!((message.kind, message.sequence), (NEW, 7));
            assert_eq!(our_route(message.body), Some((to, via)));
        }
    }

    #[test]
    fn routes_of_others_and_broken_bytes_are_nothing() {
        let (to, via) = ("10.244.1.0/24".parse().unwrap(), [192, 168, 1, 7].into());
        let mut bytes = add(to, via, 7);
        bytes[HEADER + 5] = 4;
        assert_eq!(our_route(messages(&bytes)[0].body), None);
        let bytes = add(to, via, 7);
        for length in 0..bytes.len() {
            let found = messages(&bytes[..length]);
            assert!(
                found.iter().all(|m| our_route(m.body).is_none()),
                "{length}"
            );
        }
        assert!(
            messages(&[0; 64]).is_empty(),
            "a length of nothing is no message"
        );
    }

    #[test]
    fn an_error_tells_its_number() {
        assert_eq!(error_number(&(-17_i32).to_ne_bytes()), Some(17));
        assert_eq!(error_number(&[0, 0, 0, 0]), Some(0));
        assert_eq!(error_number(&[1]), None);
    }
}
