//! Several clouds: each has the routes of its own Nodes.

use cloudkeel_testkit::simulated_cloud::MachineSpec;
use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewRoute};
use serde_json::json;

use crate::lab::{HOUR, Lab, MINUTE, OTHER, described};

#[tokio::test(start_paused = true)]
async fn each_cloud_gets_the_routes_of_its_own_nodes() {
    let lab = Lab::new().await;
    let here = lab.join(1);
    let there = MachineSpec::named("node-2").in_project(OTHER);
    let there = lab.cloud.add_machine(there).unwrap();
    lab.add_node_in(OTHER, &there, &json!({}));
    lab.pass(MINUTE).await;
    assert_eq!(
        lab.routes(),
        [format!("10.244.1.0/24 via machine {}", here.id)]
    );
    assert_eq!(
        described(lab.cloud.routes_of(OTHER)),
        [format!("10.244.2.0/24 via machine {}", there.id)]
    );
    assert!(lab.is_available("node-1") && lab.is_available("node-2"));
    assert_eq!(lab.written(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_leaves_the_networks_of_another_clouds_nodes_alone() {
    let lab = Lab::settled(1).await;
    let there = MachineSpec::named("node-2").in_project(OTHER);
    let there = lab.cloud.add_machine(there).unwrap();
    // Another client routes the other cloud's network through this one.
    let relay = lab.machine(9);
    let through = NewRoute {
        destination: "10.244.2.0/24".parse().unwrap(),
        hop: Hop::Machine(relay.id),
    };
    let through = lab.cloud.add_route(through).unwrap();
    lab.add_node_in(OTHER, &there, &json!({}));
    lab.pass(HOUR * 2).await;
    assert!(lab.cloud.routes().contains(&through));
    assert_eq!(lab.cloud.routes_of(OTHER).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_cloud_in_trouble_holds_back_no_other() {
    use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, SimulatedCloud};
    let lab = Lab::new().await;
    let broken = FaultMatch::any().with_token(SimulatedCloud::TOKEN);
    lab.cloud.faults().always(broken, Fault::status(503));
    lab.join(1);
    let there = MachineSpec::named("node-2").in_project(OTHER);
    let there = lab.cloud.add_machine(there).unwrap();
    lab.add_node_in(OTHER, &there, &json!({}));
    lab.pass(MINUTE).await;
    assert!(lab.is_available("node-2"));
    assert_eq!(lab.network_unavailable("node-1"), None, "not known");
    lab.cloud.faults().clear();
    lab.pass(MINUTE * 5).await;
    assert!(lab.is_available("node-1"));
}
