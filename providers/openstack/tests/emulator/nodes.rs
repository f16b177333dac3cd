//! Servers as Nodes.

use cloudkeel_api::{Existence, NodeFacts};
use cloudkeel_emulator_openstack::Kind;
use serde_json::json;

use crate::lab::Lab;

async fn found(lab: &Lab, node: &NodeFacts) -> cloudkeel_api::Instance {
    match lab.provider.instances().unwrap().find(node, None).await {
        Existence::Present(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_flavor_whose_name_cannot_be_a_label_is_shown_by_its_id() {
    let lab = Lab::new("").await;
    let node = lab.node("node-1");
    let id = lab.only(Kind::Server)["id"].as_str().unwrap().to_owned();
    lab.cloud
        .add(Kind::Flavor, json!({"id": "42", "name": "two words"}));
    for (flavor, expected) in [
        (json!({"original_name": "m1.small"}), "m1.small"),
        (json!({"original_name": "two words"}), "42"),
        // As Nova answers before version 2.47.
        (json!({"id": "1"}), "m1.small"),
        (json!({"id": "42"}), "42"),
    ] {
        lab.cloud.set(Kind::Server, &id, &json!({"flavor": flavor}));
        let instance = found(&lab, &node).await;
        assert_eq!(
            instance.instance_type.as_deref(),
            Some(expected),
            "{flavor}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ports_inside_of_trunks_have_addresses_of_their_networks() {
    let lab = Lab::new("[Networking]\npublic-network-name=vlan-7").await;
    let node = lab.node("node-1");
    lab.cloud.add(
        Kind::Network,
        json!({"id": "n-7", "name": "vlan-7", "subnets": []}),
    );
    let inner = json!({
        "device_id": "trunk", "network_id": "n-7", "status": "ACTIVE",
        "fixed_ips": [{"subnet_id": "s-7", "ip_address": "192.0.2.7"}],
    });
    let inner = lab.cloud.add(Kind::Port, inner);
    let ports = lab.cloud.all(Kind::Port);
    let own = ports
        .iter()
        .find(|port| port["device_id"] == lab.only(Kind::Server)["id"])
        .unwrap();
    let trunk = json!({"trunk_details": {"trunk_id": "t", "sub_ports": [{"port_id": inner}]}});
    lab.cloud
        .set(Kind::Port, own["id"].as_str().unwrap(), &trunk);
    let addresses: Vec<_> = found(&lab, &node)
        .await
        .addresses
        .iter()
        .map(|a| format!("{} {}", a.kind, a.address))
        .collect();
    assert!(
        addresses.contains(&"ExternalIP 192.0.2.7".to_owned()),
        "{addresses:?}"
    );
    assert_eq!(
        addresses[0],
        format!("InternalIP {}", node.addresses[0].address)
    );
}
