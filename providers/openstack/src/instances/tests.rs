use serde_json::{Value, json};

use super::*;

fn server(more: &Value) -> Server {
    let mut server = json!({
        "id": "s-1", "name": "node-1", "status": "ACTIVE", "accessIPv4": "", "accessIPv6": "", "metadata": {},
        "flavor": {"original_name": "m1"}, "addresses": {}, "OS-EXT-AZ:availability_zone": "nova",
    });
    for (key, value) in more.as_object().unwrap() {
        server[key] = value.clone();
    }
    let mut read: Server = serde_json::from_value(server).unwrap();
    read.ports =
        serde_json::from_value(more.get("ports").cloned().unwrap_or_else(|| json!([]))).unwrap();
    read
}

fn port(status: &str, ips: &[&str]) -> Value {
    let ips: Vec<_> = ips
        .iter()
        .map(|ip| json!({"subnet_id": "s", "ip_address": ip}))
        .collect();
    json!({"id": "p", "status": status, "device_id": "s-1", "network_id": "n", "fixed_ips": ips})
}

fn addresses(rules: Networking, server: &Server) -> Vec<String> {
    let rules = Rules {
        networking: rules,
        ..Rules::default()
    };
    let addresses = rules.instance(server).addresses;
    addresses
        .iter()
        .map(|address| format!("{} {}", address.kind, address.address))
        .collect()
}

/// Two ports, an access address, a hostname, and three networks, one of them with a floating IP.
fn example() -> Server {
    server(&json!({
        "ports": [port("ACTIVE", &["10.0.1.5", "fd00::5"]), port("ACTIVE", &["10.0.0.5"]), port("DOWN", &["10.9.9.9"])],
        "accessIPv4": "198.51.100.5",
        "metadata": {"hostname": "host-1"},
        "addresses": {
            "b-private": [
                {"addr": "10.0.1.5", "OS-EXT-IPS:type": "fixed"},
                {"addr": "fd00::5", "OS-EXT-IPS:type": "fixed"},
                {"addr": "203.0.113.5", "OS-EXT-IPS:type": "floating"},
            ],
            "a-storage": [{"addr": "10.0.0.5", "OS-EXT-IPS:type": "fixed"}],
        },
    }))
}

#[test]
fn addresses_come_in_the_order_of_the_go_ccm() {
    let expected = [
        "InternalIP 10.0.1.5",
        "InternalIP fd00::5",
        "InternalIP 10.0.0.5",
        "ExternalIP 198.51.100.5",
        "Hostname host-1",
        "ExternalIP 203.0.113.5",
    ];
    assert_eq!(addresses(Networking::default(), &example()), expected);
}

#[test]
fn networks_can_be_public_or_left_out_and_ipv6_too() {
    let storage_left_out = Networking {
        internal_networks: vec!["b-private".to_owned()],
        ipv6_disabled: true,
        ..Networking::default()
    };
    let expected = [
        "InternalIP 10.0.1.5",
        "ExternalIP 198.51.100.5",
        "Hostname host-1",
        "ExternalIP 203.0.113.5",
    ];
    assert_eq!(addresses(storage_left_out, &example()), expected);
    let public = Networking {
        public_networks: vec!["a-storage".to_owned()],
        ..Networking::default()
    };
    let found = addresses(public, &example());
    assert!(
        found.contains(&"ExternalIP 10.0.0.5".to_owned()),
        "{found:?}"
    );
    assert!(
        !found.contains(&"InternalIP 10.0.0.5".to_owned()),
        "{found:?}"
    );
}

#[test]
fn addresses_are_sorted_by_the_networks_that_are_given() {
    let rules = Networking {
        address_sort_order: ["10.0.0.0/24", "nonsense", "fd00::/8"]
            .map(str::to_owned)
            .to_vec(),
        ..Networking::default()
    };
    let found = addresses(rules, &example());
    assert_eq!(
        found[..3],
        [
            "InternalIP 10.0.0.5",
            "InternalIP fd00::5",
            "InternalIP 10.0.1.5"
        ]
    );
}

#[test]
fn states_zones_and_regions_are_those_of_the_go_ccm() {
    let rules = Rules::default();
    for (status, expected) in [
        ("ACTIVE", InstanceState::Running),
        ("SHUTOFF", InstanceState::ShutDown),
        ("REBOOT", InstanceState::Changing),
        ("ERROR", InstanceState::Unknown),
        ("SOFT_DELETED", InstanceState::Unknown),
    ] {
        assert_eq!(
            rules.instance(&server(&json!({"status": status}))).state,
            expected,
            "{status}"
        );
    }
    for (zone, expected) in [
        ("nova", "nova"),
        ("az 1 / west", "az-1-west"),
        (" -a- ", "a"),
    ] {
        assert_eq!(zone_label(zone), expected);
    }
    assert_eq!(zone_label(&"x".repeat(80)).len(), 63);
    let instance = rules.instance(&server(&json!({})));
    assert_eq!((instance.region, instance.labels.len()), (None, 0));
}
