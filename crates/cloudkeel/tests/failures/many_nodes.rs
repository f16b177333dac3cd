//! Thousands of Nodes join at once.

use std::time::{Duration, Instant};

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::MachineSpec;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

use crate::cluster::{is_initialized, world_of};
use crate::harness::World;
use crate::scrape::{free_port, get, listen_on};

/// How many Nodes are created at a time.
const AT_ONCE: usize = 32;

/// The Nodes of this test that wait. A Node gets the label in the write that removes the taint.
async fn waiting(world: &World) -> usize {
    let (key, value) = world.label();
    let selector = format!("{key}={value},!node.kubernetes.io/instance-type");
    let nodes: Api<Node> = Api::all(world.client.clone());
    let found = nodes
        .list_metadata(&ListParams::default().labels(&selector))
        .await;
    found.expect("nodes can be listed").items.len()
}

/// This many instances, and their Nodes, all of which wait.
async fn join_at_once(world: &World, count: usize) {
    let names: Vec<_> = (0..count).map(|_| unique_name("node")).collect();
    for name in &names {
        let spec = MachineSpec::named(name).in_project(&world.id);
        world.cloud.add_machine(spec).expect("a machine");
    }
    let (key, value) = world.label();
    let make = |name: &String| {
        let node = NodeBuilder::new(name).label(key, value);
        async move { node.create(&world.client).await.expect("the node is made") }
    };
    let made = futures::stream::iter(names.iter().map(make)).buffer_unordered(AT_ONCE);
    assert_eq!(made.count().await, count);
}

async fn many_nodes_join(world: &World, count: usize) {
    join_at_once(world, count).await;
    let port = free_port();
    let [secure_port, bind] = listen_on(port);
    let open = "--authorization-always-allow-paths=/metrics";
    let began = Instant::now();
    let manager = world.start(&[&secure_port, &bind, open]);
    eventually("no Node waits", Duration::from_mins(5), || async {
        waiting(world).await == 0
    })
    .await;
    eprintln!(
        "{count} Nodes initialised after {:.1?}, with {} reads of the cloud",
        began.elapsed(),
        world.cloud.calls().reads()
    );
    let (key, value) = world.label();
    let nodes: Api<Node> = Api::all(world.client.clone());
    let ours = ListParams::default().labels(&format!("{key}={value}"));
    let all = nodes.list(&ours).await.expect("nodes can be listed").items;
    assert_eq!(all.len(), count);
    assert!(all.iter().all(is_initialized));
    let calls = world.cloud.calls();
    assert!(calls.reads() < 60.max(count as u64 / 25), "{calls:?}");
    assert_eq!(calls.mutations(), 0);
    let expected = format!("node_controller_initial_node_sync_delay_seconds_count {count}");
    eventually(&expected, Duration::from_mins(1), || async {
        let (_, metrics) = get(port, "/metrics", None).await;
        metrics.lines().any(|line| line == expected)
    })
    .await;
    let (code, _) = get(port, "/readyz", None).await;
    assert_eq!(code, 200);
    assert!(!manager.log().contains(" ERROR "), "{}", manager.log());
}

#[tokio::test]
async fn a_few_hundred_nodes_that_join_at_once_are_initialised_from_a_few_pages() {
    many_nodes_join(&World::new().await, 300).await;
}

#[tokio::test]
#[ignore = "takes minutes: cargo xtask test --tier long"]
async fn five_thousand_nodes_that_join_at_once_are_initialised_from_a_few_pages() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let world = world_of(&plane).await;
    many_nodes_join(&world, 5_000).await;
}
