//! Two accounts of a cloud whose IDs do not tell them apart.

use std::net::IpAddr;

use cloudkeel_testkit::simulated_cloud::wire::MachineAddress;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Settings, SimulatedCloud};
use serde_json::json;

use crate::lab::{Lab, MINUTE, TEN_MINUTES};
use crate::support::gate::What;

/// Three Nodes of one account and two of another, all Ready and initialised.
async fn lab() -> (Lab, SimulatedCloud) {
    let other = SimulatedCloud::new(Settings::default());
    // No machine of one account has the number of one of the other.
    let passing = other
        .add_machines(50, |i| MachineSpec::named(format!("passing-{i}")))
        .unwrap();
    for machine in passing {
        other.destroy(machine.id).unwrap();
    }
    let mut lab = Lab::beside(Settings::default(), &[&other]).await;
    lab.add_machines(3);
    let there = other
        .add_machines(2, |i| MachineSpec::named(format!("there-{i}")))
        .unwrap();
    lab.machines.extend(there);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "True");
    }
    lab.pass(MINUTE * 12).await;
    for machine in &lab.machines {
        assert!(!lab.is_tainted(&machine.name), "{}", machine.name);
    }
    lab.api.forget();
    (lab, other)
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_is_gone_from_both_is_deleted_and_the_others_are_kept() {
    let (lab, _other) = lab().await;
    lab.lose([0]);
    lab.silence(1);
    lab.silence(3);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [lab.name(0)]);
    assert!(!lab.are_deletions_stopped());
    assert_eq!(lab.api.world().nodes().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_missing_although_its_kubelet_is_alive_stops_only_its_own_cloud() {
    let (lab, other) = lab().await;
    lab.live(lab.name(3));
    lab.lose([0]);
    other.destroy(lab.machines[3].id).unwrap();
    other.destroy(lab.machines[4].id).unwrap();
    lab.silence(4);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [lab.name(0)]);
    assert!(lab.are_deletions_stopped());
}

#[tokio::test(start_paused = true)]
async fn nodes_of_either_follow_their_machines() {
    let (lab, other) = lab().await;
    let ip: IpAddr = "10.9.9.9".parse().unwrap();
    let addresses = || vec![MachineAddress::private(ip)];
    lab.cloud
        .set_addresses(lab.machines[0].id, addresses())
        .unwrap();
    other
        .set_addresses(lab.machines[3].id, addresses())
        .unwrap();
    lab.pass(MINUTE * 12).await;
    for index in [0, 3] {
        let node = lab.api.world().node(lab.name(index)).unwrap();
        let expected = json!([
            {"type": "Hostname", "address": lab.name(index)},
            {"type": "InternalIP", "address": "10.9.9.9"},
        ]);
        assert_eq!(node["status"]["addresses"], expected, "{index}");
    }
    assert_eq!(lab.written(What::WriteStatus), 2);
    assert_eq!(lab.api.events("MachineNotListed"), []);
}
