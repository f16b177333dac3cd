//! The API server is down, and comes back with old leases and without its watch cache.

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually, wait_for_node_gone};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::Operation;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Api;
use kube::api::ListParams;

use crate::cluster::{
    FAST_DELETION, SHORT_LEASE, count, events, join, report_ready, stop_reporting,
    wait_for_address, wait_for_initialized, world_of,
};
use crate::harness::{DEADLINE, World};

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
    wait_for_address(&world.client, namespace.name(), name).await;
}

#[tokio::test]
async fn a_leader_steps_down_waits_for_the_api_server_and_deletes_only_what_is_gone() {
    let mut plane = ControlPlane::start().await.expect("a control plane");
    let world = world_of(&plane).await;
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(join(&world).await);
    }
    let flags = [&SHORT_LEASE[..], &FAST_DELETION].concat();
    let mut first = world.start(&flags);
    for (name, _) in &nodes {
        wait_for_initialized(&world, name).await;
        report_ready(&world, name).await;
    }
    let namespace = TestNamespace::create(&world.client, "failures").await;
    let namespace = namespace.expect("the namespace is made");
    serve(&world, &namespace, "before").await;
    let before = world.cloud.balancers_of(&world.id);

    plane.stop_api_server();
    assert_eq!(first.ended().await.code(), Some(1), "{}", first.log());
    for words in [
        "failed to renew lease",
        "leaderelection lost",
        "the lease could not be renewed in time",
    ] {
        assert!(first.log().contains(words), "{words}: {}", first.log());
    }
    // As the kubelet does with a container that exited.
    let mut second = world.start(&flags);
    let waits = "waiting for the API server";
    second.wait_for_log(waits).await;
    let (gone, machine) = nodes.pop().expect("one of four");
    world.cloud.destroy(machine).expect("the machine is there");

    plane.start_api_server().await.expect("it is back");
    // After an outage every lease is old, and kube-controller-manager takes all kubelets for dead.
    for (name, _) in &nodes {
        stop_reporting(&world, name).await;
    }
    stop_reporting(&world, &gone).await;
    second.wait_for_log("successfully acquired lease").await;
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
    assert_eq!(kept, expected, "a Node with an instance stays");
    assert_eq!(
        events(&world.client, "default", &nodes[0].0, "DeletingNode").await,
        []
    );
    assert!(count(&second.log(), waits) <= 3, "{}", second.log());

    serve(&world, &namespace, "after").await;
    let after = world.cloud.balancers_of(&world.id);
    let same = after.iter().find(|it| it.id == before[0].id);
    let same = same.expect("the balancer of before is still there");
    assert_eq!(same.addresses, before[0].addresses);
    let new = after.iter().find(|it| it.id != before[0].id);
    let labels = &new.expect("a second balancer").labels;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let system = namespaces.get("kube-system").await.expect("it is there");
    let cluster_uid = labels.get("cloudkeel.dev/cluster-uid");
    assert_eq!(
        cluster_uid,
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
    wait_for_initialized(&world, &before).await;
    plane.stop_api_server();
    manager.wait_for_log("watch failed, retrying").await;
    plane.start_api_server().await.expect("it is back");
    let (after, _) = join(&world).await;
    wait_for_initialized(&world, &after).await;
    manager.wait_for_log("watch recovered").await;
    let log = manager.log();
    assert!(
        log.contains("410 Expired"),
        "what it saw last is forgotten: {log}"
    );
    assert!(count(&log, "watch failed") <= 30, "{log}");
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
