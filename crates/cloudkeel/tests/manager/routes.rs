//! Routes for the networks of Pods.

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name, wait_for_node};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use cloudkeel_testkit::simulated_cloud::wire::{Hop, NewRoute};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;

use crate::harness::{DEADLINE, World};

on_both_apis![
    nodes_get_routes_and_say_so_and_what_is_others_stays,
    a_route_that_cannot_be_created_is_reported_and_created_when_it_can_be,
    without_a_cluster_cidr_it_stays_off_says_what_to_set_and_runs,
];

/// A machine and its Node, with this Pod network.
async fn join(world: &World, name: &str, network: &str) -> u64 {
    let machine = world.machine(name);
    let (key, value) = world.label();
    let node = NodeBuilder::new(name).label(key, value).pod_cidr(network);
    node.create(&world.client).await.expect("the node is made");
    machine
}

/// The routes of this world as `network via hop`, in order.
fn routes(world: &World) -> Vec<String> {
    let routes = world.cloud.routes_of(&world.id).into_iter();
    let mut routes: Vec<_> = routes
        .map(|route| format!("{} via {}", route.destination, route.hop))
        .collect();
    routes.sort();
    routes
}

/// Reason and status of the condition, once it is there.
fn network_unavailable(node: &Node) -> Option<(String, String)> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions
        .iter()
        .find(|c| c.type_ == "NetworkUnavailable")?;
    Some((condition.status.clone(), condition.reason.clone()?))
}

async fn has_its_network(world: &World, name: &str) {
    let expected = Some(("False".to_owned(), "RouteCreated".to_owned()));
    wait_for_node(&world.client, name, DEADLINE, |node| {
        network_unavailable(node) == expected
    })
    .await;
}

async fn nodes_get_routes_and_say_so_and_what_is_others_stays(on: EitherApi) {
    let world = World::on(on).await;
    let [one, two, foreign] = ["one", "two", "foreign"].map(unique_name);
    let stranger = NodeBuilder::new(&foreign)
        .provider_id("elsewhere://1")
        .pod_cidr("10.130.9.0/24")
        .initialized();
    stranger
        .create(&world.client)
        .await
        .expect("the node is made");
    let before = world.node(&foreign).await.metadata.resource_version;
    let relay = world.machine("relay");
    for network in ["10.130.9.0/24", "10.200.0.0/24"] {
        let route = NewRoute {
            destination: network.parse().expect("a network"),
            hop: Hop::Machine(relay),
        };
        let added = world.cloud.add_route_to(&world.id, route);
        added.expect("a route of another owner");
    }
    let first = join(&world, &one, "10.130.1.0/24").await;
    let mut manager = world.start(&["--cluster-cidr=10.130.0.0/16"]);
    has_its_network(&world, &one).await;
    let second = join(&world, &two, "10.130.2.0/24").await;
    has_its_network(&world, &two).await;
    let all = [
        format!("10.130.1.0/24 via machine {first}"),
        format!("10.130.2.0/24 via machine {second}"),
        format!("10.130.9.0/24 via machine {relay}"),
        format!("10.200.0.0/24 via machine {relay}"),
    ];
    assert_eq!(routes(&world), all);
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0));

    // Another one finds everything right.
    world.cloud.reset_calls();
    let written = world.node(&one).await.metadata.resource_version;
    let _manager = world.start(&["--cluster-cidr=10.130.0.0/16"]);
    eventually("a look at the routes", DEADLINE, || async {
        let calls = world.cloud.calls();
        calls.of(cloudkeel_testkit::simulated_cloud::Operation::ListRoutes) > 0
    })
    .await;

    let nodes: Api<Node> = Api::all(world.client.clone());
    let deleted = nodes.delete(&two, &DeleteParams::default()).await;
    deleted.expect("the node is deleted");
    eventually(
        "the route of the node that left is gone",
        DEADLINE,
        || async { routes(&world).len() == 3 },
    )
    .await;
    let kept = [&all[0], &all[2], &all[3]].map(String::as_str);
    assert_eq!(routes(&world), kept);
    assert_eq!(
        world.cloud.calls().mutations(),
        1,
        "nothing but the deletion"
    );
    let now = world.node(&one).await.metadata.resource_version;
    assert_eq!(now, written, "nothing was written to a node that was right");
    let now = world.node(&foreign).await.metadata.resource_version;
    assert_eq!(
        now, before,
        "nothing was written to a node that is not ours"
    );
}

async fn a_route_that_cannot_be_created_is_reported_and_created_when_it_can_be(on: EitherApi) {
    let world = World::on(on).await;
    let name = unique_name("node");
    // Another owner has a route for this network, which is not ours to change.
    let theirs = NewRoute {
        destination: "10.201.1.0/24".parse().expect("a network"),
        hop: Hop::Machine(world.machine("relay")),
    };
    let theirs = world.cloud.add_route_to(&world.id, theirs);
    let theirs = theirs.expect("a route of another owner");
    join(&world, &name, "10.201.1.0/24").await;
    let _manager = world.start(&["--cluster-cidr=10.131.0.0/16"]);
    let event = eventually("an event that says why", DEADLINE, || async {
        let events = world.events_about(&name, "FailedToCreateRoute").await;
        events.into_iter().next()
    })
    .await;
    let uid = world.node(&name).await.metadata.uid.unwrap_or_default();
    let message = event.message.unwrap_or_default();
    let beginning = format!("Could not create route {uid} 10.201.1.0/24 for node {name} after ");
    assert!(message.starts_with(&beginning), "{message}");
    let source = event.source.and_then(|source| source.component);
    assert_eq!(source.as_deref(), Some("route_controller"));
    wait_for_node(&world.client, &name, DEADLINE, |node| {
        network_unavailable(node) == Some(("True".to_owned(), "NoRouteCreated".to_owned()))
    })
    .await;
    world
        .cloud
        .drop_route(theirs.id)
        .expect("the route is there");
    has_its_network(&world, &name).await;
}

async fn without_a_cluster_cidr_it_stays_off_says_what_to_set_and_runs(on: EitherApi) {
    let world = World::on(on).await;
    let name = unique_name("node");
    join(&world, &name, "10.132.1.0/24").await;
    let mut manager = world.start(&[]);
    manager.wait_for_log("--cluster-cidr is not set").await;
    wait_for_node(&world.client, &name, DEADLINE, |node| {
        let spec = node.spec.as_ref();
        spec.is_some_and(|spec| spec.provider_id.is_some())
    })
    .await;
    assert_eq!(routes(&world), [""; 0]);
    assert_eq!(network_unavailable(&world.node(&name).await), None);
    assert_eq!(
        manager.log().matches("--cluster-cidr is not set").count(),
        1
    );
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_cluster_cidr_that_cannot_be_read_ends_it_at_the_start() {
    let world = World::new().await;
    let mut manager = world.start(&["--cluster-cidr=10.133.0.0"]);
    assert_ne!(manager.ended().await.code(), Some(0));
    let log = manager.log();
    assert!(log.contains("--cluster-cidr: \"10.133.0.0\""), "{log}");
}
