//! Initialised Nodes follow their machines, and cost nothing while nothing changes.

use std::net::IpAddr;

use cloudkeel_testkit::simulated_cloud::Operation;
use cloudkeel_testkit::simulated_cloud::wire::MachineAddress;
use serde_json::json;

use crate::lab::{Lab, MINUTE};
use crate::support::gate::What;

/// Between two sweeps, with their jitter.
const UNTIL_THE_NEXT_SWEEP: tokio::time::Duration = tokio::time::Duration::from_mins(11);

#[tokio::test(start_paused = true)]
async fn other_addresses_are_written_once_after_the_next_sweep() {
    let lab = Lab::settled(10).await;
    let ip: IpAddr = "10.9.9.9".parse().unwrap();
    let addresses = vec![MachineAddress::private(ip)];
    lab.cloud
        .set_addresses(lab.machines[3].id, addresses)
        .unwrap();
    lab.pass(UNTIL_THE_NEXT_SWEEP).await;
    let node = lab.api.world().node(lab.name(3)).unwrap();
    let expected = json!([
        {"type": "Hostname", "address": lab.name(3)},
        {"type": "InternalIP", "address": "10.9.9.9"},
    ]);
    assert_eq!(node["status"]["addresses"], expected);
    lab.pass(UNTIL_THE_NEXT_SWEEP * 3).await;
    let writes = lab.api.writes();
    let writes: Vec<_> = writes.iter().map(|w| (w.what, w.name.as_str())).collect();
    assert_eq!(writes, [(What::WriteStatus, lab.name(3))]);
}

#[tokio::test(start_paused = true)]
async fn the_labels_of_a_resized_machine_follow() {
    let lab = Lab::settled(10).await;
    lab.cloud.resize(lab.machines[3].id, "huge-8").unwrap();
    lab.pass(UNTIL_THE_NEXT_SWEEP).await;
    let node = lab.api.world().node(lab.name(3)).unwrap();
    for key in [
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
    ] {
        assert_eq!(node["metadata"]["labels"][key], "huge-8", "{key}");
    }
    lab.pass(UNTIL_THE_NEXT_SWEEP * 3).await;
    let writes = lab.api.writes();
    let writes: Vec<_> = writes.iter().map(|w| (w.what, w.name.as_str())).collect();
    assert_eq!(writes, [(What::Write, lab.name(3))]);
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_changes_costs_no_write_and_only_the_sweeps() {
    let lab = Lab::settled(10).await;
    lab.pass(MINUTE * 60).await;
    assert_eq!(lab.api.writes(), []);
    let calls = lab.cloud.calls();
    let sweeps = calls.of(Operation::ListMachines);
    assert!((5..=7).contains(&sweeps), "{calls:?}");
    assert_eq!(calls.total(), sweeps, "{calls:?}");
}
