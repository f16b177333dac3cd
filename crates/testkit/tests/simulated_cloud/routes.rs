//! Routes through the provider.

use cloudkeel_api::{
    CloudError, ErrorKind, IpFamily, NodeFacts, Route, RouteChange, RouteTarget, Shared,
};
use cloudkeel_provider_local::wire::{Hop, NewRoute};
use cloudkeel_testkit::simulated_cloud::{Fault, Limits, Operation, Settings};

use crate::support::Lab;

fn route(net: &str, node: &NodeFacts) -> Route {
    Route {
        name: String::new(),
        destination: net.parse().unwrap(),
        target: RouteTarget::node(node),
        blackhole: false,
        follows_addresses: false,
    }
}

fn nodes(lab: &Lab) -> Vec<NodeFacts> {
    (0..lab.machines.len())
        .map(|index| lab.node(index))
        .collect()
}

fn creations(lab: &Lab) -> Vec<RouteChange> {
    let nodes = nodes(lab);
    let routes = nodes.iter().enumerate();
    routes
        .map(|(i, node)| RouteChange::Create(route(&format!("10.244.{i}.0/24"), node)))
        .collect()
}

fn kinds(results: &[Result<(), CloudError>]) -> Vec<Option<ErrorKind>> {
    let results = results.iter();
    results
        .map(|r| r.as_ref().err().map(CloudError::kind))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn routes_are_made_in_one_call_and_only_once() {
    let lab = Lab::with(3).await;
    let changes = creations(&lab);
    for (case, mutations) in [("first", 1), ("again", 0)] {
        lab.cloud.reset_calls();
        let results = lab.routes().apply(&changes).await;
        assert_eq!(kinds(&results), [None; 3], "{case}");
        let calls = lab.cloud.calls();
        assert_eq!((calls.mutations(), calls.reads()), (mutations, 1), "{case}");
    }
    assert_eq!(lab.cloud.routes().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn routes_are_listed_with_their_nodes_and_others_with_their_hop() {
    let lab = Lab::with(2).await;
    let ids: Vec<u64> = lab.machines.iter().map(|m| m.id).collect();
    let hop = lab.machines[1].addresses[0].ip;
    for (net, hop) in [
        ("10.244.0.0/24", Hop::Machine(ids[0])),
        ("10.244.1.0/24", Hop::Ip(hop)),
    ] {
        let destination = net.parse().unwrap();
        lab.cloud.add_route(NewRoute { destination, hop }).unwrap();
    }
    let listed = lab
        .routes()
        .list(&Shared::of_each(&nodes(&lab)))
        .await
        .unwrap();
    let names: Vec<_> = listed.iter().map(|r| r.target.node_name()).collect();
    assert_eq!(names, [Some("node-0"), Some("node-1")]);
    let follows: Vec<_> = listed.iter().map(|r| r.follows_addresses).collect();
    assert_eq!(follows, [false, true]);

    lab.cloud.destroy(ids[0]).unwrap();
    let listed = lab.routes().list(&[]).await.unwrap();
    assert!(listed[0].blackhole && !listed[1].blackhole);
    let elsewhere = RouteTarget::Elsewhere {
        hop: format!("machine {}", ids[0]),
    };
    assert_eq!(listed[0].target, elsewhere);
}

#[tokio::test(start_paused = true)]
async fn a_route_moves_to_another_node_in_one_call() {
    let lab = Lab::with(2).await;
    lab.routes().apply(&creations(&lab)[..1]).await;
    let old = lab
        .routes()
        .list(&Shared::of_each(&nodes(&lab)))
        .await
        .unwrap()
        .remove(0);
    lab.cloud.reset_calls();
    let moved = [
        RouteChange::Create(route("10.244.0.0/24", &lab.node(1))),
        RouteChange::Delete(old),
    ];
    let results = lab.routes().apply(&moved).await;
    assert_eq!(kinds(&results), [None; 2]);
    assert_eq!(lab.cloud.calls().mutations(), 1);
    let listed = lab
        .routes()
        .list(&Shared::of_each(&nodes(&lab)))
        .await
        .unwrap();
    assert_eq!(listed[0].target.node_name(), Some("node-1"));
}

#[tokio::test(start_paused = true)]
async fn a_route_that_goes_and_comes_again_is_there_in_the_end() {
    let lab = Lab::with(1).await;
    let create = creations(&lab);
    lab.routes().apply(&create).await;
    let old = lab
        .routes()
        .list(&Shared::of_each(&nodes(&lab)))
        .await
        .unwrap()
        .remove(0);
    let renewed = [RouteChange::Delete(old), create[0].clone()];
    assert_eq!(kinds(&lab.routes().apply(&renewed).await), [None; 2]);
    assert_eq!(lab.cloud.routes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn deleting_what_is_not_there_succeeds_without_a_mutating_call() {
    let lab = Lab::with(1).await;
    lab.routes().apply(&creations(&lab)).await;
    let listed = lab
        .routes()
        .list(&Shared::of_each(&nodes(&lab)))
        .await
        .unwrap()
        .remove(0);
    let change = [RouteChange::Delete(listed)];
    for (case, mutations) in [("first", 1), ("again", 0)] {
        lab.cloud.reset_calls();
        assert_eq!(kinds(&lab.routes().apply(&change).await), [None], "{case}");
        assert_eq!(lab.cloud.calls().mutations(), mutations, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_change_has_its_own_result() {
    let settings = Settings {
        limits: Limits {
            routes: 2,
            ..Limits::default()
        },
        ..Settings::default()
    };
    let lab = Lab::set_up(2, settings).await;
    let foreign = NewRoute {
        destination: "10.244.1.0/24".parse().unwrap(),
        hop: Hop::Machine(lab.machines[0].id),
    };
    lab.cloud.add_route(foreign).unwrap();
    let nowhere = Route {
        target: RouteTarget::Elsewhere { hop: "x".into() },
        ..route("10.244.9.0/24", &lab.node(0))
    };
    let foreign = NodeFacts {
        provider_id: "hcloud://1".parse().ok(),
        addresses: vec![],
        ..lab.node(0)
    };
    let changes = [
        RouteChange::Create(route("10.244.0.0/24", &lab.node(0))),
        RouteChange::Create(route("10.244.1.0/24", &lab.node(1))),
        RouteChange::Create(route("10.244.2.0/24", &lab.node(1))),
        RouteChange::Create(nowhere),
        RouteChange::Create(route("10.244.3.0/24", &foreign)),
    ];
    let results = lab.routes().apply(&changes).await;
    assert_eq!(
        kinds(&results),
        [
            None,
            Some(ErrorKind::Conflict),
            Some(ErrorKind::LimitExceeded),
            Some(ErrorKind::Invalid),
            Some(ErrorKind::Invalid),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_batch_fails_only_what_needed_it() {
    for (fault, kind) in [
        (Fault::status(423), ErrorKind::Busy),
        (Fault::status(409), ErrorKind::Conflict),
        (Fault::status(503), ErrorKind::Unavailable),
    ] {
        let lab = Lab::with(2).await;
        let changes = creations(&lab);
        lab.routes().apply(&changes[..1]).await;
        lab.cloud.faults().always(Operation::BatchRoutes, fault);
        let results = lab.routes().apply(&changes).await;
        assert_eq!(kinds(&results), [None, Some(kind)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_batch_is_made_good_by_the_next_try() {
    let lab = Lab::with(3).await;
    let changes = creations(&lab);
    lab.cloud
        .faults()
        .once(Operation::BatchRoutes, Fault::BrokenAfter);
    let results = lab.routes().apply(&changes).await;
    assert_eq!(kinds(&results), [Some(ErrorKind::Unavailable); 3]);
    lab.cloud.reset_calls();
    let results = lab.routes().apply(&changes).await;
    assert_eq!(kinds(&results), [None; 3]);
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_short_list_of_routes_is_an_error_for_all() {
    let lab = Lab::with(2).await;
    let changes = creations(&lab);
    lab.routes().apply(&changes).await;
    lab.cloud
        .faults()
        .times(Operation::ListRoutes, 2, Fault::TruncatedPage);
    let error = lab
        .routes()
        .list(&Shared::of_each(&nodes(&lab)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    let results = lab.routes().apply(&changes).await;
    assert_eq!(kinds(&results), [Some(ErrorKind::Incomplete); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_cloud_is_reached_by_its_address_of_the_right_family() {
    let lab = Lab::with(1).await;
    let address = lab.machines[0].addresses[0].ip;
    let node = NodeFacts {
        provider_id: "hcloud://1".parse().ok(),
        ..lab.node(0)
    };
    assert_eq!(IpFamily::of(address), IpFamily::V4);
    let change = [RouteChange::Create(route("10.244.0.0/24", &node))];
    assert_eq!(kinds(&lab.routes().apply(&change).await), [None]);
    assert_eq!(lab.cloud.routes()[0].hop, Hop::Ip(address));
    let change = [RouteChange::Create(route("fd00:244::/64", &node))];
    assert_eq!(
        kinds(&lab.routes().apply(&change).await),
        [Some(ErrorKind::Invalid)]
    );
}
