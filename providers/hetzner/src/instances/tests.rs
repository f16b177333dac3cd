use cloudkeel_api::{AddressKind, NodeAddress, NodeFacts, is_label_value};
use serde_json::{Value, json};

use super::address::{forwarded, of_cloud, of_robot};
use super::dedicated::as_label;
use super::*;
use crate::wire::RobotServer;

fn server(ipv4: &Value, ipv6: &Value) -> Server {
    serde_json::from_value(json!({
        "id": 1, "name": "node", "status": "running", "server_type": {"name": "cx22"},
        "location": {"name": "fsn1"},
        "public_net": {"ipv4": ipv4, "ipv6": ipv6},
        "private_net": [
            {"network": 7, "ip": "10.0.0.2", "alias_ips": ["10.0.0.3"]},
            {"network": 8, "ip": "10.8.0.2", "alias_ips": []},
        ],
    }))
    .unwrap()
}

fn texts(addresses: &[NodeAddress]) -> Vec<&str> {
    assert_eq!(addresses[0].kind, AddressKind::Hostname);
    let rest = addresses[1..].iter();
    rest.map(|address| address.address.as_str()).collect()
}

#[test]
fn addresses_of_a_cloud_server() {
    use AddressFamily::{DualStack, Ipv4, Ipv6};
    let v4 = || json!({"id": 1, "ip": "192.0.2.1", "blocked": false});
    let v6 = || json!({"id": 2, "ip": "2001:db8:1::/64", "blocked": false});
    for (case, ipv4, ipv6, family, network, expected) in [
        ("IPv4", v4(), v6(), Ipv4, None, vec!["192.0.2.1"]),
        ("IPv6", v4(), v6(), Ipv6, None, vec!["2001:db8:1::1"]),
        (
            "both",
            v4(),
            v6(),
            DualStack,
            None,
            vec!["192.0.2.1", "2001:db8:1::1"],
        ),
        (
            "no IPv4",
            Value::Null,
            v6(),
            DualStack,
            None,
            vec!["2001:db8:1::1"],
        ),
        (
            "no IPv6",
            v4(),
            Value::Null,
            DualStack,
            None,
            vec!["192.0.2.1"],
        ),
        ("neither", Value::Null, Value::Null, DualStack, None, vec![]),
        (
            "an IPv4 address that is none",
            json!({"ip": "0.0.0.0"}),
            v6(),
            Ipv4,
            None,
            vec![],
        ),
        (
            "the network",
            v4(),
            v6(),
            Ipv4,
            Some(7),
            vec!["192.0.2.1", "10.0.0.2"],
        ),
        (
            "no family filters the network",
            v4(),
            v6(),
            Ipv6,
            Some(8),
            vec!["2001:db8:1::1", "10.8.0.2"],
        ),
        (
            "another network",
            v4(),
            v6(),
            Ipv4,
            Some(9),
            vec!["192.0.2.1"],
        ),
    ] {
        let found = of_cloud(&server(&ipv4, &ipv6), family, network);
        assert_eq!(texts(&found), expected, "{case}");
    }
}

fn robot(ip: Option<&str>, net: Option<&str>) -> RobotServer {
    serde_json::from_value(json!({
        "server_number": 321, "server_name": "metal", "server_ip": ip, "server_ipv6_net": net,
        "product": "AX41-NVMe", "dc": "FSN1-DC8",
    }))
    .unwrap()
}

#[test]
fn addresses_of_a_dedicated_server_are_the_other_way_round() {
    let both = robot(Some("192.0.2.7"), Some("2a01:4f8:111:4221::"));
    for (family, expected) in [
        (AddressFamily::Ipv4, vec!["192.0.2.7"]),
        (AddressFamily::Ipv6, vec!["2a01:4f8:111:4221::1"]),
        (
            AddressFamily::DualStack,
            vec!["2a01:4f8:111:4221::1", "192.0.2.7"],
        ),
    ] {
        assert_eq!(texts(&of_robot(&both, family)), expected, "{family:?}");
    }
    let neither = robot(None, Some(""));
    assert!(texts(&of_robot(&neither, AddressFamily::DualStack)).is_empty());
}

#[test]
fn private_addresses_of_the_kubelet_are_kept_if_they_can_be() {
    let listed = [NodeAddress::external("192.0.2.7".parse().unwrap())];
    let node = |addresses: &[&str]| NodeFacts {
        addresses: addresses
            .iter()
            .map(|text| NodeAddress::new(AddressKind::InternalIp, *text))
            .collect(),
        ..NodeFacts::default()
    };
    for (case, family, given, kept, refused) in [
        ("one", AddressFamily::Ipv4, vec!["10.0.0.5"], 1, 0),
        (
            "twice the same",
            AddressFamily::Ipv4,
            vec!["10.0.0.5", "10.0.0.5"],
            1,
            0,
        ),
        ("wrong family", AddressFamily::Ipv6, vec!["10.0.0.5"], 0, 1),
        (
            "both families",
            AddressFamily::DualStack,
            vec!["10.0.0.5", "fd00::5"],
            2,
            0,
        ),
        (
            "a public one",
            AddressFamily::Ipv4,
            vec!["192.0.2.7", "10.0.0.5"],
            1,
            1,
        ),
        (
            "no address at all",
            AddressFamily::Ipv4,
            vec!["metal"],
            0,
            1,
        ),
        ("none", AddressFamily::Ipv4, vec![], 0, 0),
    ] {
        let found = forwarded(&listed, &node(&given), family);
        assert_eq!(
            (found.kept.len(), found.refused.len()),
            (kept, refused),
            "{case}"
        );
    }
}

#[test]
fn zones_are_those_of_the_first_labels() {
    for (location, zone) in [
        ("nbg1", "nbg1-dc3"),
        ("hel1", "hel1-dc2"),
        ("fsn1", "fsn1-dc14"),
        ("ash", "ash-dc1"),
        ("hil", "hil-dc1"),
        ("sin", "sin-dc1"),
        ("mars1", "mars1"),
    ] {
        assert_eq!(zone_of(location), zone, "{location}");
    }
}

#[test]
fn products_become_labels() {
    for (product, label) in [
        ("AX41-NVMe", "AX41-NVMe"),
        ("Dell PowerEdge R6415", "Dell-PowerEdge-R6415"),
        ("Server Auction (#12)", "Server-Auction-12"),
        ("Auction (EX41) #", "Auction-EX41"),
        ("(refurbished)", "refurbished"),
        ("...", ""),
        ("", ""),
    ] {
        assert_eq!(as_label(product), label);
        assert!(is_label_value(label), "{label}");
    }
    let long = "x".repeat(62) + "-y";
    assert_eq!(as_label(&long), "x".repeat(62));
}

#[test]
fn every_status_has_its_state() {
    let rules = Rules {
        family: AddressFamily::Ipv4,
        zone_label: true,
        network: None,
        forward_internal_ips: true,
        delete_renamed: false,
    };
    for (status, state) in [
        ("running", InstanceState::Running),
        ("off", InstanceState::ShutDown),
        ("initializing", InstanceState::Changing),
        ("starting", InstanceState::Changing),
        ("stopping", InstanceState::Changing),
        ("deleting", InstanceState::Changing),
        ("migrating", InstanceState::Changing),
        ("rebuilding", InstanceState::Changing),
        ("unknown", InstanceState::Unknown),
        ("something new", InstanceState::Unknown),
    ] {
        let mut server = server(&Value::Null, &Value::Null);
        server.status = status.to_owned();
        assert_eq!(rules.cloud(&server).state, state, "{status}");
    }
}
