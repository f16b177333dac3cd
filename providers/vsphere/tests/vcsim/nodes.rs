//! Which machine is a Node's, and what it is given.

use cloudkeel_api::{CloudProvider as _, Existence, NodeFacts, Priority};
use cloudkeel_provider_vsphere::VmUuid;
use cloudkeel_testkit::vcsim::VCenterSpec;
use serde_json::json;

use crate::lab::{Lab, instances, names, node, present};

const UUID: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";
const SWAPPED: &str = "422e4956-ad22-1139-6d72-59cc8f26bc90";

fn new_node(name: &str, uuid: Option<&str>) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        uid: "uid".to_owned(),
        system_uuid: uuid.map(str::to_owned),
        ..NodeFacts::default()
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_machine_is_found_by_either_byte_order_and_by_its_guests_name() {
    let lab = Lab::new(2).await;
    let vm = json!({"name": "vm-in-inventory", "uuid": UUID, "hostName": "worker.example.com",
                    "nics": [{"network": "VM Network", "addresses": ["10.0.0.1"], "device": 4000}]});
    lab.vcenters[1].add(vm).await.unwrap();
    lab.add_nodes(0, 5..7).await;
    let provider = lab.connect().await;
    let upper = SWAPPED.to_uppercase();
    for (case, node) in [
        ("its ID", node("worker", UUID)),
        ("the other byte order", node("worker", SWAPPED)),
        ("its system UUID", new_node("worker", Some(UUID))),
        ("the guest's byte order", new_node("worker", Some(&upper))),
        ("its name", new_node("worker.example.com", None)),
        (
            "its name, with a UUID of the kubelet's own",
            new_node("worker.example.com", Some("7")),
        ),
    ] {
        let found = present(instances(&provider).find(&node, None).await);
        assert_eq!(found.id.as_str(), format!("vsphere://{UUID}"), "{case}");
        assert_eq!(found.addresses[0].address, "worker.example.com", "{case}");
    }
    for (case, node) in [
        (
            "its name in the inventory",
            new_node("vm-in-inventory", None),
        ),
        ("a part of its name", new_node("worker", None)),
        ("another case", new_node("Worker.example.com", None)),
    ] {
        let found = instances(&provider).find(&node, None).await;
        assert!(matches!(found, Existence::Unknown(_)), "{case}: {found:?}");
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn the_same_name_in_two_vcenters_is_no_answer() {
    let lab = Lab::new(2).await;
    for vcenter in [0, 1] {
        lab.add_nodes(vcenter, 1..2).await;
    }
    let provider = lab.connect().await;
    let found = instances(&provider)
        .find(&new_node("node-1", None), None)
        .await;
    assert!(matches!(found, Existence::Unknown(_)), "{found:?}");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn only_machines_of_the_configured_datacenters_are_seen() {
    let spec = VCenterSpec {
        datacenters: 3,
        folders: 1,
        ..VCenterSpec::default()
    };
    let mut lab = Lab::with(vec![spec]).await;
    for number in 0..3 {
        let vm = json!({"name": format!("vm-{number}"), "hostName": format!("node-{number}"),
                        "datacenter": format!("DC{number}"),
                        "nics": [{"network": "n", "addresses": ["10.0.0.1"], "device": 4000}]});
        lab.vcenters[0].add(vm).await.unwrap();
    }
    let all = names(&instances(&lab.connect().await).list().await.unwrap());
    assert_eq!(all, ["node-0", "node-1", "node-2"], "by default all");
    lab.settings["vcenter"]["vc0"]["datacenters"] = json!(["DC0", "DC2"]);
    let provider = lab.connect().await;
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(names(&list), ["node-0", "node-2"]);
    let described =
        instances(&provider).describe(list.instances().cloned().collect(), Priority::Normal);
    for instance in described.await {
        assert!(!instance.unwrap().is_summary);
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn addresses_follow_the_settings_and_a_machine_without_them_waits() {
    let mut lab = Lab::new(1).await;
    lab.settings["nodes"] = json!({
        "internalNetworkSubnetCidr": "10.1.0.0/16,fd01::/64", "externalVmNetworkName": "public",
        "excludeExternalNetworkSubnetCidr": "192.0.2.0/24",
    });
    lab.settings["global"] = json!({"ipFamily": ["ipv4", "ipv6"]});
    let nics = json!([
        {"network": "cni", "addresses": ["10.1.0.9"], "device": -1},
        {"network": "private", "addresses": ["fe80::1", "10.1.0.1", "fd01::1"], "device": 4000},
        {"network": "Public", "addresses": ["192.0.2.1", "198.51.100.1", "fd02::1"], "device": 4001},
    ]);
    let vm = json!({"name": "a", "hostName": "node-1", "nics": nics});
    let vm = lab.vcenters[0].add(vm).await.unwrap();
    let provider = lab.connect().await;
    let node = node("node-1", &vm.uuid);
    let found = present(instances(&provider).find(&node, None).await);
    let shown: Vec<_> = found
        .addresses
        .iter()
        .map(|it| format!("{} {}", it.kind, it.address))
        .collect();
    assert_eq!(
        shown,
        [
            "Hostname node-1",
            "InternalIP 10.1.0.1",
            "ExternalIP 198.51.100.1",
            "InternalIP fd01::1",
            "ExternalIP fd02::1",
        ]
    );
    assert_eq!(found.not_ready, None);
    let fewer = json!([{"network": "private", "addresses": ["10.1.0.1"], "device": 4000}]);
    lab.vcenters[0]
        .change(&vm.id, json!({"nics": fewer}))
        .await
        .unwrap();
    let found = present(instances(&provider).find(&node, None).await);
    let why = found.not_ready.unwrap();
    assert!(why.contains("no suitable IPv6 address"), "{why}");
    lab.vcenters[0]
        .change(&vm.id, json!({"hostName": ""}))
        .await
        .unwrap();
    let why = present(instances(&provider).find(&node, None).await)
        .not_ready
        .unwrap();
    assert!(why.contains("VMware Tools"), "{why}");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn an_address_that_cloud_init_gave_comes_first() {
    let lab = Lab::new(1).await;
    // network: {ethernets: {id0: {addresses: [10.0.0.5/24]}}}
    let metadata = "bmV0d29yazoge2V0aGVybmV0czoge2lkMDoge2FkZHJlc3NlczogWzEwLjAuMC41LzI0XX19fQo=";
    let vm = json!({"name": "a", "hostName": "node-1",
                    "extra": {"guestinfo.metadata": metadata, "guestinfo.metadata.encoding": "base64"},
                    "nics": [{"network": "n", "addresses": ["10.0.0.100", "10.0.0.5"], "device": 4000}]});
    let vm = lab.vcenters[0].add(vm).await.unwrap();
    let provider = lab.connect().await;
    let found = present(
        instances(&provider)
            .find(&node("node-1", &vm.uuid), None)
            .await,
    );
    assert_eq!(
        found.addresses[1].address, "10.0.0.5",
        "not the virtual one"
    );
    assert_eq!(provider.name(), "vsphere");
    assert!(VmUuid::parse(&vm.uuid).is_some());
}
