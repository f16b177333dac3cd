//! New Nodes get what their cloud knows of them, with few writes and few calls.

use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Operation, Settings};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND};
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn a_hundred_new_nodes_cost_two_writes_each_and_one_list() {
    let mut lab = Lab::empty(Settings::default()).await;
    lab.add_machines(100);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "False");
    }
    lab.pass(MINUTE).await;
    let writes = lab.api.writes();
    for machine in &lab.machines {
        let name = &machine.name;
        assert!(!lab.is_tainted(name), "{name}");
        let own = writes.iter().filter(|write| write.name == *name);
        let own: Vec<_> = own.map(|write| (write.what, write.status)).collect();
        assert_eq!(
            own,
            [(What::WriteStatus, 200), (What::Write, 200)],
            "{name}"
        );
    }
    let pages = 100_u64.div_ceil(Settings::default().page_size);
    let calls = lab.cloud.calls();
    let lists = calls.of(Operation::ListMachines);
    assert!((pages..=pages + 2).contains(&lists), "{calls:?}");
    assert_eq!(calls.total(), lists, "{calls:?}");
    assert_eq!(lab.api.events("Synced").len(), 100);
}

#[tokio::test(start_paused = true)]
async fn an_initialised_node_has_the_data_of_its_machine() {
    let lab = Lab::settled(1).await;
    let node = lab.api.world().node(lab.name(0)).unwrap();
    let machine = &lab.machines[0];
    let id = format!("local://demo/{}", machine.id);
    assert_eq!(node["spec"]["providerID"], id);
    let labels = &node["metadata"]["labels"];
    for (key, value) in [
        ("node.kubernetes.io/instance-type", &machine.kind),
        ("beta.kubernetes.io/instance-type", &machine.kind),
        ("topology.kubernetes.io/zone", &machine.zone),
        ("topology.kubernetes.io/region", &machine.region),
    ] {
        assert_eq!(labels[key], **value, "{key}");
    }
    let addresses = node["status"]["addresses"].as_array().unwrap();
    assert_eq!(
        addresses.len(),
        machine.addresses.len() + 1,
        "{addresses:?}"
    );
    let hostname = json!({"type": "Hostname", "address": machine.name});
    assert!(addresses.contains(&hostname), "{addresses:?}");
    assert_eq!(node["status"]["conditions"][0]["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_at_the_taint_is_read_again_and_settled_at_once() {
    let mut lab = Lab::empty(Settings::default()).await;
    lab.add_machines(1);
    let name = lab.name(0).to_owned();
    lab.api.before(What::Write, move |world| {
        let theirs = json!({"spec": {"taints": [
            {"key": "theirs", "effect": "NoExecute"},
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"},
        ]}});
        world.change(&name, &theirs);
    });
    lab.add_node(lab.name(0), "True");
    lab.pass(SECOND).await;
    let writes = lab.api.writes();
    let writes: Vec<_> = writes.iter().map(|w| (w.what, w.status)).collect();
    let expected = [
        (What::WriteStatus, 200),
        (What::Write, 409),
        (What::Write, 200),
    ];
    assert_eq!(writes, expected);
    let node = lab.api.world().node(lab.name(0)).unwrap();
    let taints = json!([{"key": "theirs", "effect": "NoExecute"}]);
    assert_eq!(node["spec"]["taints"], taints);
}

#[tokio::test(start_paused = true)]
async fn a_node_recreated_between_the_two_writes_gets_its_own() {
    let mut lab = Lab::empty(Settings::default()).await;
    lab.add_machines(1);
    let name = lab.name(0).to_owned();
    lab.api.before(What::Write, move |world| {
        world.remove(&name);
        world.create(&name, &crate::lab::tainted());
    });
    lab.add_node(lab.name(0), "True");
    lab.pass(MINUTE).await;
    assert!(!lab.is_tainted(lab.name(0)));
    let refused = lab.api.writes().iter().any(|w| w.status == 409);
    assert!(refused, "what was meant for its predecessor");
    let node = lab.api.world().node(lab.name(0)).unwrap();
    assert!(node["status"]["addresses"].is_array(), "{node}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_cloud_delays_new_nodes_with_an_event_until_it_ends() {
    let mut lab = Lab::empty(Settings::default()).await;
    lab.add_machines(20);
    let trouble = Fault::status(503);
    lab.cloud.faults().always(FaultMatch::any(), trouble);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "False");
    }
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.api.writes(), []);
    assert_eq!(lab.api.events("InitializationDelayed").len(), 20);
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.written(What::WriteStatus), 20);
    assert_eq!(lab.written(What::Write), 20);
}
