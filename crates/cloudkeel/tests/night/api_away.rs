//! The API server is away, and back again with old leases and without the changes it remembered.

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually, wait_for_node_gone};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::Operation;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Api;
use kube::api::ListParams;

use crate::harness::{DEADLINE, World};
use crate::people::{
    HASTY, SHORT_LEASE, count, fall_silent, initialised, join, report_ready, served, told, world_of,
};

async fn names_of_nodes(world: &World) -> Vec<String> {
    let nodes: Api<Node> = Api::all(world.client.clone());
    let nodes = nodes.list(&ListParams::default()).await;
    let nodes = nodes.expect("nodes can be listed").into_iter();
    nodes.filter_map(|node| node.metadata.name).collect()
}

async fn serve(world: &World, namespace: &TestNamespace, name: &str) {
    let service = ServiceBuilder::new(namespace.name(), name).class(world.class());
    let service = service.port("main", 80).create(&world.client).await;
    service.expect("the service is made");
    served(&world.client, namespace.name(), name).await;
}

#[tokio::test]
async fn a_leader_steps_down_waits_for_the_api_server_and_deletes_only_what_is_gone() {
    let mut plane = ControlPlane::start().await.expect("a control plane");
    let world = world_of(&plane).await;
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(join(&world).await);
    }
    let flags = [&SHORT_LEASE[..], &HASTY].concat();
    let mut first = world.start(&flags);
    for (name, _) in &nodes {
        initialised(&world, name).await;
        report_ready(&world, name).await;
    }
    let namespace = TestNamespace::create(&world.client, "night").await;
    let namespace = namespace.expect("the namespace is made");
    serve(&world, &namespace, "before").await;
    let before = world.cloud.balancers_of(&world.id);

    plane.stop_api_server();
    assert_eq!(first.ended().await.code(), Some(1), "{}", first.log());
    for words in [
        "could not renew the lease",
        "leaderelection lost",
        "the lease could not be renewed in time",
    ] {
        assert!(first.log().contains(words), "{words}: {}", first.log());
    }
    // As the kubelet does with a container that ended.
    let mut second = world.start(&flags);
    let waits = "the API server does not answer; waiting for it";
    second.says(waits).await;
    let (gone, machine) = nodes.pop().expect("one of four");
    world.cloud.destroy(machine).expect("the machine is there");

    plane.start_api_server().await.expect("it is back");
    // After an outage every lease is old, and kube-controller-manager believes that nobody is there.
    for (name, _) in &nodes {
        fall_silent(&world, name).await;
    }
    fall_silent(&world, &gone).await;
    second.says("acquired the leader lease").await;
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
    world.cloud.reset_calls();
    eventually("further looks at the machines", DEADLINE, || async {
        world.cloud.calls().of(Operation::ListMachines) >= 1
    })
    .await;
    let mut kept = names_of_nodes(&world).await;
    kept.sort();
    let mut expected: Vec<_> = nodes.iter().map(|(name, _)| name.clone()).collect();
    expected.sort();
    assert_eq!(kept, expected, "whoever has a machine stays");
    assert_eq!(
        told(&world.client, "default", &nodes[0].0, "DeletingNode").await,
        []
    );
    assert!(count(&second.log(), waits) <= 3, "{}", second.log());

    serve(&world, &namespace, "after").await;
    let after = world.cloud.balancers_of(&world.id);
    let same = after.iter().find(|it| it.id == before[0].id);
    let same = same.expect("the balancer of before is still there");
    assert_eq!(same.addresses, before[0].addresses);
    let new = after.iter().find(|it| it.id != before[0].id);
    let marks = &new.expect("a second balancer").labels;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let system = namespaces.get("kube-system").await.expect("it is there");
    let mark = marks.get("cloudkeel.dev/cluster-uid");
    assert_eq!(
        mark,
        system.metadata.uid.as_ref(),
        "it waited to know its cluster"
    );
    second.signal("TERM");
    assert_eq!(second.ended().await.code(), Some(0), "{}", second.log());
}

#[tokio::test]
async fn a_manager_without_a_lease_goes_on_and_begins_its_watches_anew() {
    let mut plane = ControlPlane::start().await.expect("a control plane");
    let world = world_of(&plane).await;
    let (before, _) = join(&world).await;
    let mut manager = world.start(&["--leader-elect=false"]);
    initialised(&world, &before).await;
    plane.stop_api_server();
    manager.says("watch broken; it is being repaired").await;
    plane.start_api_server().await.expect("it is back");
    let (after, _) = join(&world).await;
    initialised(&world, &after).await;
    manager.says("watch works again").await;
    let log = manager.log();
    assert!(
        log.contains("410 Expired"),
        "what it saw last is forgotten: {log}"
    );
    assert!(count(&log, "watch broken") <= 30, "{log}");
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
