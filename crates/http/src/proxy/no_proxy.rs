//! `NO_PROXY`: which hosts are reached directly.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

use super::port_of;

/// The hosts that are reached directly, by the rules of Go's `net/http`, so that one environment means the same to
/// every program of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NoProxy {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// `*`
    Everything,
    /// `10.0.0.0/8`
    Network(IpNet),
    /// `10.0.0.1`, `10.0.0.1:6443`, `[fd00::1]:6443`
    Address(IpAddr, Option<u16>),
    /// `example.com` with its subdomains; `.example.com` and `*.example.com` without the domain itself.
    Domain {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl NoProxy {
    /// Reads a comma-separated list. An invalid entry matches nothing, as in Go.
    pub(super) fn parse(list: &str) -> Self {
        let entries = list.split(',').filter_map(Entry::parse).collect();
        Self { entries }
    }

    /// Whether a destination is reached without a proxy.
    pub(super) fn covers(&self, destination: &Uri) -> bool {
        let Some(host) = destination.host() else {
            return true;
        };
        let host = unbracketed(host).to_ascii_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|ip| ip.is_loopback()) {
            return true;
        }
        let port = port_of(destination);
        let mut entries = self.entries.iter();
        entries.any(|entry| entry.matches(&host, address, port))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Some(Self::Everything);
        }
        if let Ok(network) = text.parse() {
            return Some(Self::Network(network));
        }
        let (host, port) = split_port(&text);
        if let Ok(address) = unbracketed(host).parse() {
            return Some(Self::Address(address, port));
        }
        let host = host
            .strip_prefix('*')
            .filter(|rest| rest.starts_with('.'))
            .unwrap_or(host);
        let name = host.strip_prefix('.').unwrap_or(host);
        (!name.is_empty()).then(|| Self::Domain {
            name: name.to_owned(),
            itself: !host.starts_with('.'),
            port,
        })
    }

    fn matches(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        let is_port = |wanted: &Option<u16>| wanted.is_none() || *wanted == port;
        match self {
            Self::Everything => true,
            Self::Network(network) => address.is_some_and(|ip| network.contains(&ip)),
            Self::Address(wanted, at) => address == Some(*wanted) && is_port(at),
            Self::Domain {
                name,
                itself,
                port: at,
            } => {
                let subdomain = host.strip_suffix(name.as_str());
                let is_below = subdomain.is_some_and(|rest| rest.ends_with('.'));
                (is_below || *itself && host == name) && is_port(at)
            }
        }
    }
}

/// `host:443` in two. An IPv6 address without brackets has no port.
fn split_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (text, None),
        },
        _ => (text, None),
    }
}

fn unbracketed(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_excepted_by_the_rules_of_go() {
        for (list, url, direct) in [
            ("", "https://example.com/", false),
            ("example.com", "https://example.com/", true),
            ("example.com", "https://api.EXAMPLE.com:6443/", true),
            ("example.com", "https://notexample.com/", false),
            (".example.com", "https://api.example.com/", true),
            (".example.com", "https://example.com/", false),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("example.com:6443", "https://example.com:6443/", true),
            ("example.com:6443", "https://example.com/", false),
            ("example.com:443", "https://example.com/", true),
            ("example.com:80", "http://example.com/", true),
            ("10.0.0.1", "https://10.0.0.1:6443/", true),
            ("10.0.0.1", "https://10.0.0.10:6443/", false),
            ("10.0.0.1:6443", "https://10.0.0.1:6443/", true),
            ("10.0.0.1:6443", "https://10.0.0.1:443/", false),
            ("10.0.0.0/8", "https://10.96.0.1/", true),
            ("10.0.0.0/8", "https://11.96.0.1/", false),
            ("fd00::/8", "https://[fd00::1]:6443/", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443/", true),
            ("fd00::1", "https://[fd00::1]/", true),
            ("a.test, 10.0.0.0/8 ,b.test", "https://b.test/", true),
            (",, :80,[", "https://example.com/", false),
            ("*", "https://example.com/", true),
            ("a.test,*", "https://10.0.0.1/", true),
            ("", "http://localhost:80/", true),
            ("", "https://127.0.0.2:6443/", true),
            ("", "https://[::1]/", true),
            ("", "https://localhost.example/", false),
        ] {
            let covered = NoProxy::parse(list).covers(&url.parse().unwrap());
            assert_eq!(covered, direct, "NO_PROXY={list} {url}");
        }
    }
}
