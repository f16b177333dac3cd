use super::*;
use crate::wire::Tags;

fn interface(id: &str, status: &str, ips: &[&str], ipv6: &[&str]) -> Interface {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    Interface {
        id: id.to_owned(),
        status: status.to_owned(),
        private_ips: texts(ips),
        ipv6: texts(ipv6),
        ..Interface::default()
    }
}

fn machine() -> Ec2Instance {
    Ec2Instance {
        id: "i-1".to_owned(),
        private_dns_name: Some("ip-10-0-0-1.ec2.internal".to_owned()),
        public_dns_name: Some("ec2-1.example.com".to_owned()),
        public_ip: Some("192.0.2.1".to_owned()),
        interfaces: vec![
            interface(
                "eni-1",
                "in-use",
                &["10.0.0.1", "10.0.0.2"],
                &["2001:db8::1", "2001:db8::2"],
            ),
            interface("eni-2", "available", &["10.0.0.3"], &["2001:db8::3"]),
            interface("eni-3", "in-use", &["10.0.0.4"], &[]),
        ],
        tags: Tags::new(),
        ..Ec2Instance::default()
    }
}

#[test]
fn addresses_have_the_order_of_the_go_ccm() {
    let shown = |family| -> Vec<String> {
        let addresses = addresses(&machine(), family);
        addresses
            .iter()
            .map(|a| format!("{} {}", a.kind, a.address))
            .collect()
    };
    assert_eq!(
        shown(IpFamily::V4),
        [
            "InternalIP 10.0.0.1",
            "InternalIP 10.0.0.2",
            "InternalIP 10.0.0.4",
            "ExternalIP 192.0.2.1",
            "InternalDNS ip-10-0-0-1.ec2.internal",
            "Hostname ip-10-0-0-1.ec2.internal",
            "ExternalDNS ec2-1.example.com",
        ]
    );
    assert_eq!(shown(IpFamily::V6), ["InternalIP 2001:db8::1"]);
}

#[test]
fn a_node_may_be_called_by_its_id() {
    for (name, id) in [
        ("i-0abc", Some("i-0abc")),
        ("i-0abc.eu-west-1.compute.internal", Some("i-0abc")),
        ("ip-10-0-0-1.ec2.internal", None),
    ] {
        assert_eq!(id_in_name(name), id, "{name}");
    }
}
