//! Routes and conditions follow the Nodes, and stay alone when they are right.

use cloudkeel_testkit::simulated_cloud::Operation;
use serde_json::json;

use crate::lab::{HOUR, Lab, MINUTE, SECOND};

#[tokio::test(start_paused = true)]
async fn every_node_gets_its_route_and_its_condition_in_one_call() {
    let lab = Lab::new().await;
    let machines: Vec<_> = (0..20).map(|index| lab.join(index)).collect();
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.routes().len(), 20);
    let first = format!("10.244.0.0/24 via machine {}", machines[0].id);
    assert!(lab.routes().contains(&first), "{:?}", lab.routes());
    for machine in &machines {
        assert!(lab.is_available(&machine.name), "{}", machine.name);
    }
    let calls = lab.cloud.calls();
    assert_eq!(calls.of(Operation::BatchRoutes), 1);
    assert_eq!(calls.mutations(), 1, "{calls:?}");
    assert_eq!(lab.written(), 20);
    assert_eq!(lab.observed(), [("changed", "node_change")]);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_stay_and_the_words_are_upstreams() {
    let lab = Lab::new().await;
    let machine = lab.machine(1);
    let calico = json!({
        "type": "NetworkUnavailable", "status": "False", "reason": "CalicoIsUp", "message": "up",
    });
    let ready = json!({"type": "Ready", "status": "True"});
    lab.add_node(
        &machine,
        &json!({"status": {"conditions": [ready, calico]}}),
    );
    lab.pass(MINUTE).await;
    let node = lab.api.world().node("node-1").unwrap();
    let conditions = &node["status"]["conditions"];
    assert_eq!(conditions[0], ready);
    assert_eq!(conditions[1]["reason"], "RouteCreated");
    assert_eq!(conditions[1]["message"], "RouteController created a route");
    assert_eq!(conditions[1]["lastTransitionTime"], "2026-01-01T00:00:01Z");
    assert_eq!(lab.written(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_day_without_changes_costs_no_write_and_a_list_an_hour() {
    let lab = Lab::settled(10).await;
    lab.pass(HOUR * 24).await;
    assert_eq!(lab.written(), 0);
    let calls = lab.cloud.calls();
    let lists = calls.of(Operation::ListRoutes);
    assert!((21..=27).contains(&lists), "{calls:?}");
    assert_eq!(calls.total(), lists, "{calls:?}");
    assert!(
        lab.observed()
            .iter()
            .all(|observed| *observed == ("noop", "periodic"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_changes_nothing_that_is_right() {
    let mut lab = Lab::settled(10).await;
    let routes = lab.cloud.routes();
    lab.restart().await;
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.cloud.routes(), routes);
    assert_eq!(lab.written(), 0);
    assert_eq!(lab.cloud.calls().mutations(), 0);
    assert_eq!(lab.observed(), [("noop", "node_change")]);
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_gets_its_route_and_the_others_keep_theirs() {
    let lab = Lab::settled(3).await;
    let before = lab.cloud.routes();
    lab.join(7);
    lab.pass(SECOND * 2).await;
    assert!(lab.is_available("node-7"));
    let after = lab.cloud.routes();
    assert!(before.iter().all(|route| after.contains(route)));
    assert_eq!((after.len(), lab.written()), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn the_routes_of_a_paused_node_stay_as_they_are() {
    let lab = Lab::settled(3).await;
    let pause = |value: &str| json!({"metadata": {"annotations": {"cloudkeel.dev/paused": value}}});
    lab.api.world().change("node-1", &pause("true"));
    let its = lab.cloud.routes()[1].id;
    lab.cloud.drop_route(its).unwrap();
    lab.pass(HOUR * 3).await;
    assert_eq!((lab.routes().len(), lab.written()), (2, 0));
    assert_eq!(lab.cloud.calls().mutations(), 0);
    lab.api.world().change("node-1", &pause("false"));
    lab.pass(SECOND * 15).await;
    assert_eq!(lab.routes().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_node_waits_for_its_network_and_for_its_machine() {
    let lab = Lab::settled(1).await;
    let machine = lab.machine(2);
    let taint = json!([{"key": "node.cloudprovider.kubernetes.io/uninitialized",
        "value": "true", "effect": "NoSchedule"}]);
    let bare = json!({"spec": {"providerID": null, "podCIDRs": null, "taints": taint},
        "metadata": {"labels": {"cloudkeel.dev/cloud": "first"}}});
    lab.add_node(&machine, &bare);
    lab.pass(MINUTE).await;
    lab.api
        .world()
        .change("node-2", &json!({"spec": {"podCIDRs": ["10.244.2.0/24"]}}));
    lab.pass(MINUTE).await;
    assert_eq!(
        (lab.routes().len(), lab.written()),
        (1, 0),
        "not initialised"
    );
    assert!(lab.api.events("FailedToCreateRoute").is_empty());
    let id = cloudkeel_testkit::simulated_cloud::LocalId::new("demo", machine.id).provider_id();
    lab.api.world().change(
        "node-2",
        &json!({"spec": {"providerID": id, "taints": null}}),
    );
    lab.pass(SECOND * 2).await;
    assert_eq!(lab.routes().len(), 2);
    assert!(lab.is_available("node-2"));
}

#[tokio::test(start_paused = true)]
async fn a_dual_stack_node_gets_a_route_for_each_family() {
    let lab = Lab::new().await;
    let machine = lab.machine(1);
    let networks = ["10.244.1.0/24", "fd00:244:0:1::/64"];
    lab.add_node(&machine, &json!({"spec": {"podCIDRs": networks}}));
    lab.pass(MINUTE).await;
    let expected = networks.map(|net| format!("{net} via machine {}", machine.id));
    assert_eq!(lab.routes(), expected);
    assert!(lab.is_available("node-1"));
}

#[tokio::test(start_paused = true)]
async fn a_route_that_vanished_is_created_again_at_the_next_resync() {
    let lab = Lab::settled(2).await;
    let route = lab.cloud.routes()[0].clone();
    lab.cloud.drop_route(route.id).unwrap();
    lab.pass(HOUR + MINUTE * 10).await;
    assert_eq!(lab.routes().len(), 2);
    assert_eq!(lab.written(), 0, "the condition still stands");
    assert!(lab.observed().contains(&("changed", "periodic")));
}

#[tokio::test(start_paused = true)]
async fn a_node_recreated_with_another_network_gets_another_route() {
    let lab = Lab::settled(2).await;
    let machine = lab.cloud.routes()[1].hop;
    let node = lab.api.world().node("node-1").unwrap();
    lab.api.world().remove("node-1");
    let spec = json!({"providerID": node["spec"]["providerID"], "podCIDRs": ["10.244.9.0/24"]});
    let again = json!({"spec": spec, "status": node["status"]});
    lab.api.world().create("node-1", &again);
    lab.pass(MINUTE).await;
    let expected = format!("10.244.9.0/24 via {machine}");
    assert_eq!(lab.routes()[1], expected);
    assert_eq!(lab.routes().len(), 2, "the old one is gone");
}
