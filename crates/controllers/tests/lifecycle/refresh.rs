//! Initialised Nodes follow their machines, and cost nothing while nothing changes.

use std::net::IpAddr;

use cloudkeel_testkit::simulated_cloud::wire::MachineAddress;
use cloudkeel_testkit::simulated_cloud::{
    MachineSpec, Operation, Permission, Settings, SimulatedCloud,
};
use serde_json::json;

use crate::lab::{Lab, MINUTE};
use crate::support::gate::What;

/// Between two lists, with their jitter.
const UNTIL_THE_NEXT_LIST: tokio::time::Duration = tokio::time::Duration::from_mins(11);

#[tokio::test(start_paused = true)]
async fn other_addresses_are_written_once_after_the_next_list() {
    let lab = Lab::settled(10).await;
    let ip: IpAddr = "10.9.9.9".parse().unwrap();
    let addresses = vec![MachineAddress::private(ip)];
    lab.cloud
        .set_addresses(lab.machines[3].id, addresses)
        .unwrap();
    lab.pass(UNTIL_THE_NEXT_LIST).await;
    let node = lab.api.world().node(lab.name(3)).unwrap();
    let expected = json!([
        {"type": "Hostname", "address": lab.name(3)},
        {"type": "InternalIP", "address": "10.9.9.9"},
    ]);
    assert_eq!(node["status"]["addresses"], expected);
    lab.pass(UNTIL_THE_NEXT_LIST * 3).await;
    let writes = lab.api.writes();
    let writes: Vec<_> = writes.iter().map(|w| (w.what, w.name.as_str())).collect();
    assert_eq!(writes, [(What::WriteStatus, lab.name(3))]);
}

#[tokio::test(start_paused = true)]
async fn the_labels_of_a_resized_machine_follow() {
    let lab = Lab::settled(10).await;
    lab.cloud.resize(lab.machines[3].id, "huge-8").unwrap();
    lab.pass(UNTIL_THE_NEXT_LIST).await;
    let node = lab.api.world().node(lab.name(3)).unwrap();
    for key in [
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
    ] {
        assert_eq!(node["metadata"]["labels"][key], "huge-8", "{key}");
    }
    lab.pass(UNTIL_THE_NEXT_LIST * 3).await;
    let writes = lab.api.writes();
    let writes: Vec<_> = writes.iter().map(|w| (w.what, w.name.as_str())).collect();
    assert_eq!(writes, [(What::Write, lab.name(3))]);
}

#[tokio::test(start_paused = true)]
async fn a_node_ip_that_the_cloud_no_longer_knows_is_reported_and_keeps_no_label_from_following() {
    let lab = Lab::settled(10).await;
    let node = || lab.api.world().node(lab.name(3)).unwrap();
    let addresses = node()["status"]["addresses"].clone();
    lab.annotate(3, "alpha.kubernetes.io/provided-node-ip", "10.9.9.9");
    lab.cloud.resize(lab.machines[3].id, "huge-8").unwrap();
    lab.pass(UNTIL_THE_NEXT_LIST).await;
    let key = "node.kubernetes.io/instance-type";
    assert_eq!(node()["metadata"]["labels"][key], "huge-8");
    assert_eq!(node()["status"]["addresses"], addresses);
    lab.pass(UNTIL_THE_NEXT_LIST * 3).await;
    let events = lab.api.events("InvalidNodeIP");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].message.contains("matches ip: 10.9.9.9"));
    assert_eq!(lab.written(What::WriteStatus), 0);
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_changes_costs_no_write_and_only_the_lists() {
    let lab = Lab::settled(10).await;
    lab.pass(MINUTE * 60).await;
    assert_eq!(lab.api.writes(), []);
    let calls = lab.cloud.calls();
    let lists = calls.of(Operation::ListMachines);
    assert!((5..=7).contains(&lists), "{calls:?}");
    assert_eq!(calls.total(), lists, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_id_follows_no_namesake_in_another_project() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let lab = Lab::settled_on(settings, 3).await;
    let swap = |project| {
        let token = SimulatedCloud::TOKEN;
        lab.cloud.grant(token, project, Permission::ReadWrite);
    };
    lab.cloud.add_project("other");
    let namesake = MachineSpec::named("plain").in_project("other");
    let namesake = lab.cloud.add_machine(namesake).unwrap();
    lab.cloud.power_off(namesake.id).unwrap();
    swap("other");
    let labels = json!({"cloudkeel.dev/cloud": "local"});
    lab.add_node_with("plain", "False", &json!({"metadata": {"labels": labels}}));
    lab.pass(UNTIL_THE_NEXT_LIST).await;
    assert_eq!(lab.api.writes(), []);
    lab.cloud.add_machine(MachineSpec::named("plain")).unwrap();
    swap(SimulatedCloud::PROJECT);
    lab.pass(UNTIL_THE_NEXT_LIST).await;
    assert_eq!(lab.written(What::WriteStatus), 1, "its own machine");
}
