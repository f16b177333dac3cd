//! What happens to Nodes.

use cloudkeel_testkit::cluster::{
    Kubelet, LiveKubelet, NodeBuilder, NotReady, eventually, unique_name, wait_for_node,
    wait_for_node_gone,
};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use cloudkeel_testkit::simulated_cloud::{Fault, Operation};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;

use crate::harness::{DEADLINE, Manager, World};

on_both_apis![
    many_nodes_are_initialised_from_a_few_pages,
    a_new_node_is_initialised_and_one_of_another_cloud_is_left_alone,
    a_machine_that_is_shut_down_taints_its_node_until_it_is_ready_again,
    a_machine_that_is_gone_takes_its_node_along_and_no_other,
    a_kubelet_that_renews_its_lease_keeps_its_node,
    a_node_without_an_answering_cloud_stays_as_it_is,
    nodes_get_pod_networks_if_asked_for,
];

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Deletions with short grace periods, so that a test need not wait for minutes.
const FAST_DELETION: [&str; 4] = [
    "--node-monitor-period=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-confirmation-period=2s",
    "--node-deletion-proofs=2",
];

fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints
        .unwrap_or_default()
        .iter()
        .any(|taint| taint.key == key)
}

pub(crate) fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

pub(crate) fn builder(world: &World, name: &str) -> NodeBuilder {
    let (key, value) = world.label();
    NodeBuilder::new(name).label(key, value)
}

/// A machine and its Node, both of the same name.
async fn join(world: &World, name: &str) -> u64 {
    let machine = world.machine(name);
    builder(world, name)
        .create(&world.client)
        .await
        .expect("the node is made");
    machine
}

/// The same with a Node that was initialised before: no list of the manager is older than what happens next.
async fn joined_before(world: &World, name: &str) -> u64 {
    let machine = world.machine(name);
    let node = builder(world, name)
        .provider_id(format!("local://{}/{machine}", world.id))
        .initialized();
    node.create(&world.client).await.expect("the node is made");
    machine
}

async fn set_ready(world: &World, name: &str) {
    let kubelet = Kubelet::new(&world.client, name);
    kubelet.set_ready().await.expect("the status is written");
}

async fn set_silent(world: &World, name: &str) {
    let kubelet = Kubelet::new(&world.client, name);
    let written = kubelet.set_not_ready(NotReady::Unknown).await;
    written.expect("the status is written");
}

pub(crate) async fn wait_for_initialized(world: &World, name: &str) -> Node {
    wait_for_node(&world.client, name, DEADLINE, |node| {
        !has_taint(node, UNINITIALIZED)
    })
    .await
}

/// As if the kubelet had been silent for a while.
async fn forget_heartbeat(world: &World, name: &str) {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-node-lease");
    let deleted = leases.delete(name, &DeleteParams::default()).await;
    deleted.expect("the lease is deleted");
}

async fn many_nodes_are_initialised_from_a_few_pages(on: EitherApi) {
    let world = World::on(on).await;
    let names: Vec<_> = (0..30).map(|_| unique_name("node")).collect();
    for name in &names {
        join(&world, name).await;
    }
    let _manager = world.start(&[]);
    for name in &names {
        let node = wait_for_initialized(&world, name).await;
        assert!(
            provider_id(&node).is_some_and(|id| id.starts_with("local://")),
            "{node:?}"
        );
        let labels = node.metadata.labels.unwrap_or_default();
        for key in [
            "node.kubernetes.io/instance-type",
            "topology.kubernetes.io/zone",
            "topology.kubernetes.io/region",
        ] {
            assert!(labels.contains_key(key), "{name} has no {key}: {labels:?}");
        }
        let addresses = node
            .status
            .and_then(|status| status.addresses)
            .unwrap_or_default();
        assert!(
            addresses
                .iter()
                .any(|address| address.type_ == "InternalIP"),
            "{addresses:?}"
        );
    }
    let calls = world.cloud.calls();
    assert!(
        calls.reads() < 15,
        "one list for all, not a call for each: {}",
        calls.reads()
    );
    assert_eq!(calls.mutations(), 0);
}

async fn a_new_node_is_initialised_and_one_of_another_cloud_is_left_alone(on: EitherApi) {
    let world = World::on(on).await;
    let stranger = unique_name("stranger");
    NodeBuilder::new(&stranger)
        .create(&world.client)
        .await
        .expect("the node is made");
    let before = world.node(&stranger).await.metadata.resource_version;
    let _manager = world.start(&[]);
    let name = unique_name("node");
    join(&world, &name).await;
    wait_for_initialized(&world, &name).await;
    assert_eq!(
        world.node(&stranger).await.metadata.resource_version,
        before
    );
}

#[tokio::test]
async fn a_node_without_a_machine_gets_an_event_with_the_reason() {
    let world = World::new().await;
    let name = unique_name("lost");
    builder(&world, &name)
        .create(&world.client)
        .await
        .expect("the node is made");
    let _manager = world.start(&[]);
    let event = eventually("an event that says why", DEADLINE, || async {
        world
            .events_about(&name, "InitializationDelayed")
            .await
            .into_iter()
            .next()
    })
    .await;
    let message = event.message.unwrap_or_default();
    assert!(
        message.contains(&name) && message.contains("no machine"),
        "{message}"
    );
    world.machine(&name);
    wait_for_initialized(&world, &name).await;
}

async fn a_machine_that_is_shut_down_taints_its_node_until_it_is_ready_again(on: EitherApi) {
    let world = World::on(on).await;
    let name = unique_name("node");
    let machine = joined_before(&world, &name).await;
    let off = world.cloud.power_off(machine);
    off.expect("the machine is there");
    set_silent(&world, &name).await;
    let _manager = world.start(&FAST_DELETION);
    wait_for_node(&world.client, &name, DEADLINE, |node| {
        has_taint(node, SHUTDOWN)
    })
    .await;
    world.cloud.power_on(machine).expect("the machine is there");
    set_ready(&world, &name).await;
    wait_for_node(&world.client, &name, DEADLINE, |node| {
        !has_taint(node, SHUTDOWN)
    })
    .await;
}

/// A Ready Node with its machine, and a silent one that has lost its own.
async fn one_of_two_is_gone(world: &World) -> (String, String) {
    let (gone, stays) = (unique_name("gone"), unique_name("stays"));
    let machine = joined_before(world, &gone).await;
    joined_before(world, &stays).await;
    for name in [&gone, &stays] {
        set_ready(world, name).await;
    }
    world.cloud.destroy(machine).expect("the machine is there");
    set_silent(world, &gone).await;
    (gone, stays)
}

async fn a_machine_that_is_gone_takes_its_node_along_and_no_other(on: EitherApi) {
    let world = World::on(on).await;
    let (gone, stays) = one_of_two_is_gone(&world).await;
    forget_heartbeat(&world, &gone).await;
    let _manager = world.start(&FAST_DELETION);
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
    let event = eventually("an event that says so", DEADLINE, || async {
        let events = world.events_about(&gone, "DeletingNode").await;
        (!events.is_empty()).then_some(events)
    })
    .await;
    let counts: Vec<_> = event.iter().filter_map(|event| event.count).collect();
    assert_eq!(counts, [1]);
    let kept = world.node(&stays).await.metadata;
    assert_eq!(kept.deletion_timestamp, None);
}

/// Waits for the event that the kubelet of a Node without a machine still reports.
async fn kept_for_its_kubelet(world: &World, name: &str) {
    let kept = eventually("an event that says why it stays", DEADLINE, || async {
        let events = world.events_about(name, "NodeKept").await;
        events.into_iter().next()
    })
    .await;
    let message = kept.message.unwrap_or_default();
    // Which one is found first: this Node's own lease, or that of a Node without a machine.
    let whys = [
        "its kubelet still renews its lease",
        "but its kubelet still sends heartbeats",
    ];
    assert!(whys.iter().any(|why| message.contains(why)), "{message}");
}

/// The kubelet of a Node reports, more often than usual.
fn live(world: &World, name: &str) -> LiveKubelet {
    let kubelet = Kubelet::new(&world.client, name);
    kubelet.live(std::time::Duration::from_millis(200))
}

async fn a_kubelet_that_renews_its_lease_keeps_its_node(on: EitherApi) {
    let world = World::on(on).await;
    let (gone, _) = one_of_two_is_gone(&world).await;
    let _live = live(&world, &gone);
    let _manager = world.start(&FAST_DELETION);
    kept_for_its_kubelet(&world, &gone).await;
    let kept = world.node(&gone).await.metadata;
    assert_eq!(kept.deletion_timestamp, None);
    assert_eq!(world.events_about(&gone, "DeletingNode").await, []);
}

#[tokio::test]
async fn a_kubelet_that_falls_silent_after_all_loses_its_node() {
    let world = World::new().await;
    let (gone, _) = one_of_two_is_gone(&world).await;
    let live = live(&world, &gone);
    let _manager = world.start(&FAST_DELETION);
    kept_for_its_kubelet(&world, &gone).await;
    drop(live);
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
}

/// Unknown is not gone: only the cloud's own answer that there is no such instance may delete a Node.
async fn a_node_without_an_answering_cloud_stays_as_it_is(on: EitherApi) {
    let world = World::on(on).await;
    let (gone, _) = one_of_two_is_gone(&world).await;
    forget_heartbeat(&world, &gone).await;
    let before = world.node(&gone).await.metadata.resource_version;
    let faults = world.cloud.faults();
    faults.always(Operation::GetMachine, Fault::status(403));
    let _manager = world.start(&FAST_DELETION);
    eventually("several questions", DEADLINE, || async {
        world.cloud.calls().of(Operation::GetMachine) >= 3
    })
    .await;
    let after = world.node(&gone).await.metadata.resource_version;
    assert_eq!(after, before, "nothing is written to it");
    faults.clear();
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
}

#[tokio::test]
async fn a_swapped_credential_deletes_nothing_and_says_so() {
    let after_a_restart = swap_credential("cloud provider initialized", |world, manager| {
        drop(manager);
        world.write_config("other-token");
        world.start(&FAST_DELETION)
    });
    let while_it_runs = swap_credential("cloud settings reloaded", |world, manager| {
        world.write_config("other-token");
        manager
    });
    futures::join!(after_a_restart, while_it_runs);
}

async fn swap_credential(sign: &str, swap: impl FnOnce(&World, Manager) -> Manager) {
    let world = World::new().await;
    let names: Vec<_> = (0..3).map(|_| unique_name("node")).collect();
    for name in &names {
        join(&world, name).await;
    }
    let mut flags = FAST_DELETION.to_vec();
    flags.push("--cloud-reload-period=200ms");
    let manager = world.start(&flags);
    for name in &names {
        wait_for_initialized(&world, name).await;
    }
    // The credential now belongs to another project, in which other machines run.
    world.cloud.add_project("other");
    let permission = cloudkeel_testkit::simulated_cloud::Permission::ReadWrite;
    world.cloud.grant("other-token", "other", permission);
    let other =
        cloudkeel_testkit::simulated_cloud::MachineSpec::named("foreign").in_project("other");
    world.cloud.add_machine(other).expect("a machine");
    for name in &names {
        let kubelet = Kubelet::new(&world.client, name);
        kubelet
            .set_not_ready(NotReady::Unknown)
            .await
            .expect("the status is written");
        forget_heartbeat(&world, name).await;
    }
    let manager = swap(&world, manager);
    manager.wait_for_log("controller started").await;
    manager.wait_for_log(sign).await;
    for name in &names {
        eventually("an Event that the Node is kept", DEADLINE, || async {
            !world.events_about(name, "NodeKept").await.is_empty()
        })
        .await;
    }
    for name in &names {
        assert!(
            provider_id(&world.node(name).await).is_some(),
            "{name} is still there"
        );
        assert_eq!(world.events_about(name, "DeletingNode").await, []);
    }
}

async fn nodes_get_pod_networks_if_asked_for(on: EitherApi) {
    // Every Node of a cluster gets one, also those of other tests.
    let world = World::with(on.run_alone().await).await;
    let name = unique_name("node");
    join(&world, &name).await;
    let _manager = world.start(&[
        "--controllers=nodeipam,cloud-node",
        "--allocate-node-cidrs",
        "--cluster-cidr=10.96.0.0/12",
    ]);
    let node = wait_for_node(&world.client, &name, DEADLINE, |node| {
        node.spec
            .as_ref()
            .is_some_and(|spec| spec.pod_cidr.is_some())
    })
    .await;
    let cidr = node.spec.and_then(|spec| spec.pod_cidr).unwrap_or_default();
    assert!(cidr.ends_with("/24"), "{cidr}");
}
