//! Which addresses a Node gets. Pure.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use cloudkeel_api::{AddressKind, IpFamily, NodeAddress, NodeFacts};

use crate::wellknown::PROVIDED_NODE_IP;

/// Why no addresses can be chosen. The Node then keeps its taint and what it has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    /// The annotation cannot be read.
    #[error(
        "annotation {PROVIDED_NODE_IP}: {value:?}: expected one IP, or two of different families, separated by a comma"
    )]
    BadAnnotation {
        /// What it says.
        value: String,
    },
    /// The cloud does not know the address of the kubelet's `--node-ip`.
    #[error("failed to get node address from cloud provider that matches ip: {ip}")]
    NoMatch {
        /// The address.
        ip: IpAddr,
    },
}

/// The addresses for the Node's status: the cloud's, with those of the kubelet's `--node-ip` first.
///
/// If the cloud gives no hostname, those that the kubelet reported are kept. With the node-IP
/// annotation, each of its addresses comes first, and other addresses of the same type are left out.
pub fn choose(cloud: &[NodeAddress], node: &NodeFacts) -> Result<Vec<NodeAddress>, AddressProblem> {
    // The API server refuses a Node that has an address twice.
    let mut seen = BTreeSet::new();
    let unique = cloud.iter().filter(|address| seen.insert(*address));
    let mut offered: Vec<_> = unique.cloned().collect();
    let is_hostname = |address: &&NodeAddress| address.kind == AddressKind::Hostname;
    if !offered.iter().any(|address| is_hostname(&address)) {
        let own = node.addresses.iter().filter(is_hostname);
        offered.extend(own.cloned());
    }
    match node.annotations.get(PROVIDED_NODE_IP) {
        Some(value) => prefer(&offered, &parse_node_ips(value)?),
        None => Ok(offered),
    }
}

fn prefer(
    offered: &[NodeAddress],
    node_ips: &[IpAddr],
) -> Result<Vec<NodeAddress>, AddressProblem> {
    let mut chosen = Vec::new();
    let mut matched = BTreeSet::new();
    for ip in node_ips {
        let matching: Vec<_> = offered
            .iter()
            .filter(|address| parse_ip(&address.address) == Some(*ip))
            .cloned()
            .collect();
        if matching.is_empty() {
            return Err(AddressProblem::NoMatch { ip: *ip });
        }
        matched.extend(matching.iter().map(|address| address.kind));
        chosen.extend(matching);
    }
    let rest = offered
        .iter()
        .filter(|address| !matched.contains(&address.kind));
    chosen.extend(rest.cloned());
    Ok(chosen)
}

fn parse_node_ips(value: &str) -> Result<Vec<IpAddr>, AddressProblem> {
    let bad = || AddressProblem::BadAnnotation {
        value: value.to_owned(),
    };
    let ips: Option<Vec<IpAddr>> = value.split(',').map(parse_ip).collect();
    let is_allowed = |ips: &Vec<IpAddr>| match ips.as_slice() {
        [_] => true,
        [first, second] => {
            let are_specified = !first.is_unspecified() && !second.is_unspecified();
            are_specified && IpFamily::of(*first) != IpFamily::of(*second)
        }
        _ => false,
    };
    ips.filter(is_allowed).ok_or_else(bad)
}

/// Reads an IP as the Go framework does, which takes leading zeros in IPv4.
pub(crate) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let octets: Vec<u8> = text
            .split('.')
            .map(|part| {
                let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                digits.then(|| part.parse().ok()).flatten()
            })
            .collect::<Option<_>>()?;
        let octets: [u8; 4] = octets.try_into().ok()?;
        Some(IpAddr::V4(Ipv4Addr::from(octets)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> NodeAddress {
        let (kind, address) = text.split_once(' ').unwrap();
        let kind = match kind {
            "H" => AddressKind::Hostname,
            "I" => AddressKind::InternalIp,
            "E" => AddressKind::ExternalIp,
            "D" => AddressKind::InternalDns,
            other => panic!("{other}"),
        };
        NodeAddress::new(kind, address)
    }

    fn addresses(list: &[&str]) -> Vec<NodeAddress> {
        list.iter().map(|text| address(text)).collect()
    }

    fn node(own: &[&str], desired: Option<&str>) -> NodeFacts {
        NodeFacts {
            addresses: addresses(own),
            annotations: desired
                .map(|desired| (PROVIDED_NODE_IP.to_owned(), desired.to_owned()))
                .into_iter()
                .collect(),
            ..NodeFacts::default()
        }
    }

    #[test]
    fn hostnames_of_the_kubelet_are_kept_only_if_the_cloud_has_none() {
        let own = node(&["H kubelet", "I 10.0.0.9"], None);
        let chosen = choose(&addresses(&["I 10.0.0.1"]), &own).unwrap();
        assert_eq!(chosen, addresses(&["I 10.0.0.1", "H kubelet"]));
        let chosen = choose(&addresses(&["H cloud", "I 10.0.0.1"]), &own).unwrap();
        assert_eq!(chosen, addresses(&["H cloud", "I 10.0.0.1"]));
    }

    #[test]
    fn an_address_that_the_cloud_gives_twice_is_chosen_once() {
        let cloud = addresses(&["I 10.0.0.1", "E 10.0.0.1", "I 10.0.0.1"]);
        let expected = addresses(&["I 10.0.0.1", "E 10.0.0.1"]);
        assert_eq!(choose(&cloud, &node(&[], None)).unwrap(), expected);
        let provided = node(&[], Some("10.0.0.1"));
        assert_eq!(choose(&cloud, &provided).unwrap(), expected);
    }

    /// The upstream table: name, what the cloud offers, the annotation, what is chosen.
    const CHOICES: &[(&str, &[&str], &str, &[&str])] = &[
        (
            "external matched",
            &["I 10.0.0.1", "E 1.2.3.4", "E 1.2.3.5"],
            "1.2.3.5",
            &["E 1.2.3.5", "I 10.0.0.1"],
        ),
        (
            "same IP internal and external",
            &["I 1.1.1.1", "E 1.1.1.1"],
            "1.1.1.1",
            &["I 1.1.1.1", "E 1.1.1.1"],
        ),
        (
            "names are kept",
            &["I 10.0.0.1", "H n", "D n.local"],
            "10.0.0.1",
            &["I 10.0.0.1", "H n", "D n.local"],
        ),
        (
            "several internal reduced to one",
            &["I 10.0.0.1", "I 10.0.0.2", "E 1.1.1.1"],
            "10.0.0.2",
            &["I 10.0.0.2", "E 1.1.1.1"],
        ),
        (
            "another spelling of IPv6",
            &["I 2001:db8:0::1"],
            "2001:db8::1",
            &["I 2001:db8:0::1"],
        ),
        (
            "leading zeros",
            &["I 10.0.0.1"],
            "010.000.0.01",
            &["I 10.0.0.1"],
        ),
        (
            "both, v4 first",
            &["I fd00::1", "I 10.0.0.1", "I 10.0.0.2"],
            "10.0.0.1,fd00::1",
            &["I 10.0.0.1", "I fd00::1"],
        ),
        (
            "both, v6 first",
            &["I 10.0.0.1", "I fd00::1"],
            "fd00::1,10.0.0.1",
            &["I fd00::1", "I 10.0.0.1"],
        ),
        (
            "one internal, one external",
            &["I 10.0.0.1", "E fd00::1", "E 1.1.1.1"],
            "10.0.0.1,fd00::1",
            &["I 10.0.0.1", "E fd00::1"],
        ),
    ];

    #[test]
    fn provided_addresses_come_first_and_others_of_their_type_go() {
        for (case, cloud, desired, expected) in CHOICES {
            let chosen = choose(&addresses(cloud), &node(&[], Some(desired))).unwrap();
            assert_eq!(chosen, addresses(expected), "{case}");
        }
    }

    #[test]
    fn an_address_that_the_cloud_does_not_know_is_an_error() {
        let cloud = addresses(&["I 10.0.0.1"]);
        for desired in ["10.0.0.2", "10.0.0.1,fd00::1"] {
            let problem = choose(&cloud, &node(&[], Some(desired))).unwrap_err();
            assert!(
                matches!(problem, AddressProblem::NoMatch { .. }),
                "{desired}: {problem}"
            );
        }
    }

    #[test]
    fn an_annotation_that_cannot_be_meant_is_an_error() {
        let cloud = addresses(&["I 10.0.0.1"]);
        for desired in [
            "",
            "x",
            "10.0.0.1, fd00::1",
            "10.0.0.1,10.0.0.2",
            "10.0.0.1,::",
            "10.0.0.1,fd00::1,1.1.1.1",
            "10.0.0.256",
            "1.2.3",
        ] {
            let problem = choose(&cloud, &node(&[], Some(desired))).unwrap_err();
            assert!(
                matches!(problem, AddressProblem::BadAnnotation { .. }),
                "{desired:?}: {problem}"
            );
        }
    }
}
