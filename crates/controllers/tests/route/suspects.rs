//! What leads nowhere is deleted only when a second look agrees, and what is others' never.

use cloudkeel_controllers::Controller as _;
use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewRoute};
use cloudkeel_testkit::simulated_cloud::{
    Fault, MachineSpec, Operation, Permission, Settings, SimulatedCloud,
};
use serde_json::json;

use crate::lab::{HOUR, Lab, MINUTE, OTHER, SECOND};

#[tokio::test(start_paused = true)]
async fn the_route_of_a_node_that_left_is_deleted_after_a_second_list() {
    let lab = Lab::settled(3).await;
    lab.api.world().remove("node-1");
    lab.pass(SECOND * 9).await;
    assert_eq!(lab.routes().len(), 3, "one look is not enough");
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.routes().len(), 2);
    let observed = lab.observed();
    assert_eq!(
        observed,
        [("noop", "node_change"), ("changed", "node_change")]
    );
    lab.forget();
    lab.pass(MINUTE * 30).await;
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_suspect_that_falls_due_while_other_routes_are_changed_is_listed_again() {
    let lab = Lab::settled(3).await;
    lab.api.world().remove("node-1");
    lab.pass(SECOND * 9).await;
    let slow = Fault::Slow { by: SECOND * 5 };
    lab.cloud.faults().once(Operation::BatchRoutes, slow);
    lab.join(5);
    lab.pass(MINUTE).await;
    assert!(lab.is_available("node-5"));
    assert_eq!(lab.routes().len(), 3, "{:?}", lab.routes());
}

#[tokio::test(start_paused = true)]
async fn a_network_is_free_when_the_foreign_node_that_has_it_goes() {
    let lab = Lab::settled(1).await;
    let foreign = lab.machine(8);
    let spec = json!({"providerID": "hcloud://8", "podCIDRs": ["10.244.3.0/24"]});
    lab.add_node(&foreign, &json!({"spec": spec}));
    lab.join(3);
    lab.pass(MINUTE).await;
    assert!(lab.is_unavailable("node-3"));
    lab.api.world().remove("node-8");
    lab.pass(SECOND * 10).await;
    assert!(lab.is_available("node-3"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_in_time_keeps_its_route() {
    let lab = Lab::settled(3).await;
    let before = lab.cloud.routes();
    let node = lab.api.world().node("node-1").unwrap();
    lab.api.world().remove("node-1");
    lab.pass(SECOND * 5).await;
    let again = json!({"spec": node["spec"], "status": node["status"]});
    lab.api.world().create("node-1", &again);
    lab.pass(MINUTE).await;
    assert_eq!(lab.cloud.routes(), before);
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_blackhole_in_the_cluster_cidr_is_deleted_and_one_outside_is_kept() {
    let lab = Lab::settled(2).await;
    let machine = lab.machine(9);
    lab.add_route("10.244.9.0/24", &machine);
    let outside = lab.add_route("10.99.0.0/24", &machine);
    lab.cloud.destroy(machine.id).unwrap();
    lab.pass(HOUR + MINUTE * 10).await;
    let routes = lab.cloud.routes();
    assert_eq!(routes.len(), 3, "{routes:?}");
    let kept = routes.iter().find(|route| route.id == outside.id).unwrap();
    assert!(kept.blackhole);
}

#[tokio::test(start_paused = true)]
async fn a_machine_replaced_under_its_node_gets_the_route_after_a_second_list() {
    let lab = Lab::settled(2).await;
    let old = lab.cloud.routes()[1].clone();
    let Hop::Machine(machine) = old.hop else {
        panic!("{old:?}");
    };
    lab.cloud.destroy(machine).unwrap();
    let new = lab.machine(1);
    lab.api.world().remove("node-1");
    lab.add_node(&new, &json!({}));
    lab.pass(SECOND * 5).await;
    assert!(lab.cloud.routes().iter().any(|route| route.id == old.id));
    assert_eq!(
        lab.network_unavailable("node-1"),
        None,
        "not events before it is known"
    );
    lab.pass(MINUTE).await;
    assert_eq!(
        lab.routes()[1],
        format!("10.244.1.0/24 via machine {}", new.id)
    );
    assert!(lab.is_available("node-1"));
    assert_eq!(
        lab.cloud.calls().mutations(),
        1,
        "deleted and made in one call"
    );
}

#[tokio::test(start_paused = true)]
async fn what_serves_a_node_that_is_not_ours_is_never_touched() {
    for (case, change) in [
        (
            "another kind of cloud",
            json!({"spec": {"providerID": "hcloud://9"}}),
        ),
        (
            "another account",
            json!({"spec": {"providerID": "local://elsewhere/9"}}),
        ),
        (
            "unmanaged",
            json!({"metadata": {"labels": {"cloudkeel.dev/unmanaged": "true"}}}),
        ),
        ("owner not known", json!({"spec": {"providerID": null}})),
    ] {
        let lab = Lab::settled(2).await;
        let machine = lab.machine(9);
        lab.add_node(&machine, &change);
        let theirs = lab.add_route("10.244.9.0/24", &machine);
        // Its hop looks dead to us.
        lab.cloud.destroy(machine.id).unwrap();
        lab.pass(HOUR * 3).await;
        assert!(
            lab.cloud.routes().iter().any(|r| r.id == theirs.id),
            "{case}"
        );
        assert_eq!(lab.network_unavailable("node-9"), None, "{case}");
        assert_eq!(
            (lab.written(), lab.cloud.calls().mutations()),
            (0, 0),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_given_up_keeps_its_route_and_is_left_alone() {
    let lab = Lab::settled(2).await;
    let unmanaged = json!({"metadata": {"labels": {"cloudkeel.dev/unmanaged": "true"}}});
    lab.api.world().change("node-1", &unmanaged);
    lab.pass(HOUR * 2).await;
    assert_eq!(lab.routes().len(), 2);
    assert_eq!((lab.written(), lab.cloud.calls().mutations()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_routes_of_another_project_are_left_alone() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let lab = Lab::with(settings, |_| {}).await;
    (0..2).for_each(|index| drop(lab.join(index)));
    lab.pass(MINUTE).await;
    // Another cluster, which has the same networks for its Pods.
    let machine = MachineSpec::named("theirs").in_project(OTHER);
    let machine = lab.cloud.add_machine(machine).unwrap();
    let destinations = ["10.244.0.0/24", "10.244.9.0/24"];
    let theirs = destinations.map(|destination| {
        let destination = destination.parse().unwrap();
        let hop = Hop::Machine(machine.id);
        let new = NewRoute { destination, hop };
        lab.cloud.add_route_to(OTHER, new).unwrap()
    });
    let swap = |project| {
        let token = SimulatedCloud::TOKEN;
        lab.cloud.grant(token, project, Permission::ReadWrite);
    };
    swap(OTHER);
    lab.join(7);
    lab.pass(HOUR * 2).await;
    assert_eq!(lab.cloud.routes_of(OTHER), theirs);
    assert_eq!(lab.network_unavailable("node-7"), None, "not known");
    let waits_for = lab.controller().report().waits_for;
    let why = "the cloud shows no machine of this cluster";
    assert!(waits_for[0].contains(why), "{waits_for:?}");
    swap(SimulatedCloud::PROJECT);
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.routes().len(), 3);
    assert!(lab.is_available("node-7"));
    assert!(lab.controller().report().waits_for.is_empty());
}
