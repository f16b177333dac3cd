//! The PROXY protocol, as it is written in front of a connection.

use std::net::{IpAddr, SocketAddr};

use cloudkeel_provider_local::wire::ProxyProtocol;

/// What every header of version 2 begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Version 2 with the command PROXY, and with LOCAL.
const PROXY: u8 = 0x21;
const LOCAL: u8 = 0x20;

/// A stream over IPv4, and over IPv6.
const TCP_V4: u8 = 0x11;
const TCP_V6: u8 = 0x21;

/// The header of a client's connection.
pub(super) fn header(version: ProxyProtocol, client: SocketAddr, frontend: SocketAddr) -> Vec<u8> {
    let (from, to) = same_family(client, frontend);
    match version {
        ProxyProtocol::V1 => {
            let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
            let (source, destination) = (client.port(), frontend.port());
            format!("PROXY {family} {from} {to} {source} {destination}\r\n").into_bytes()
        }
        ProxyProtocol::V2 => {
            let mut addresses = Vec::with_capacity(36);
            let family = match (from, to) {
                (IpAddr::V4(from), IpAddr::V4(to)) => {
                    addresses.extend(from.octets());
                    addresses.extend(to.octets());
                    TCP_V4
                }
                (from, to) => {
                    addresses.extend(wide(from));
                    addresses.extend(wide(to));
                    TCP_V6
                }
            };
            addresses.extend(client.port().to_be_bytes());
            addresses.extend(frontend.port().to_be_bytes());
            binary(PROXY, family, &addresses)
        }
    }
}

/// The header of a connection that the balancer makes for itself, such as a health check.
pub(super) fn own_header(version: ProxyProtocol) -> Vec<u8> {
    match version {
        ProxyProtocol::V1 => b"PROXY UNKNOWN\r\n".to_vec(),
        ProxyProtocol::V2 => binary(LOCAL, 0, &[]),
    }
}

fn binary(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend([command, family]);
    // At most 36 bytes.
    let length = u16::try_from(addresses.len()).unwrap_or_default();
    header.extend(length.to_be_bytes());
    header.extend(addresses);
    header
}

/// Both as IPv4 if both are, also if one of them came in the clothes of IPv6.
fn same_family(client: SocketAddr, frontend: SocketAddr) -> (IpAddr, IpAddr) {
    let (from, to) = (client.ip().to_canonical(), frontend.ip().to_canonical());
    if from.is_ipv4() == to.is_ipv4() {
        (from, to)
    } else {
        (IpAddr::from(wide(from)), IpAddr::from(wide(to)))
    }
}

fn wide(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: (&str, &str) = ("192.0.2.7:40000", "127.0.10.1:443");
    const V6: (&str, &str) = ("[2001:db8::7]:40000", "[2001:db8::1]:443");
    const MAPPED: (&str, &str) = ("[::ffff:192.0.2.7]:40000", "127.0.10.1:443");
    const MIXED: (&str, &str) = ("192.0.2.7:40000", "[2001:db8::1]:443");

    fn of(version: ProxyProtocol, (client, frontend): (&str, &str)) -> Vec<u8> {
        header(version, client.parse().unwrap(), frontend.parse().unwrap())
    }

    #[test]
    fn version_1_is_a_line_of_text() {
        for (case, ends, expected) in [
            ("v4", V4, "PROXY TCP4 192.0.2.7 127.0.10.1 40000 443\r\n"),
            ("v6", V6, "PROXY TCP6 2001:db8::7 2001:db8::1 40000 443\r\n"),
            (
                "mapped",
                MAPPED,
                "PROXY TCP4 192.0.2.7 127.0.10.1 40000 443\r\n",
            ),
            (
                "mixed",
                MIXED,
                "PROXY TCP6 ::ffff:192.0.2.7 2001:db8::1 40000 443\r\n",
            ),
        ] {
            let line = String::from_utf8(of(ProxyProtocol::V1, ends)).unwrap();
            assert_eq!(line, expected, "{case}");
        }
        assert_eq!(own_header(ProxyProtocol::V1), b"PROXY UNKNOWN\r\n");
    }

    #[test]
    fn version_2_is_binary() {
        let v4 = of(ProxyProtocol::V2, V4);
        let (start, rest) = v4.split_at(16);
        assert_eq!(start, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
        assert_eq!(rest, [192, 0, 2, 7, 127, 0, 10, 1, 0x9c, 0x40, 0x01, 0xbb]);
        for (case, ends) in [("v6", V6), ("mixed", MIXED)] {
            let v6 = of(ProxyProtocol::V2, ends);
            assert_eq!(&v6[12..16], b"\x21\x21\0\x24", "{case}");
            assert_eq!(v6.len(), 16 + 36, "{case}");
        }
        assert_eq!(
            own_header(ProxyProtocol::V2),
            b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
        );
    }
}
