//! Machines and their Nodes.

use cloudkeel_testkit::cluster::{
    Kubelet, NodeBuilder, NotReady, UNINITIALIZED_TAINT, eventually, wait_for_node,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::harness::{DEADLINE, World};

pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Deletions with short grace periods, so that a test need not wait for minutes.
pub(crate) const FAST_DELETION: [&str; 4] = [
    "--node-monitor-period=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-confirmation-period=2s",
    "--node-deletion-proofs=2",
];

/// A Node of this world.
pub(crate) fn builder(world: &World, name: &str) -> NodeBuilder {
    let (key, value) = world.label();
    NodeBuilder::new(name).label(key, value)
}

/// A machine and its new Node.
pub(crate) async fn join(world: &World, name: &str) -> u64 {
    let machine = world.machine(name);
    let made = builder(world, name).create(&world.client).await;
    made.expect("the node is made");
    machine
}

/// A machine and its Node, initialised long ago.
pub(crate) async fn member(world: &World, name: &str) -> u64 {
    let machine = world.machine(name);
    let node = builder(world, name)
        .provider_id(format!("local://{}/{machine}", world.id))
        .initialized();
    node.create(&world.client).await.expect("the node is made");
    machine
}

pub(crate) async fn wait_for_initialized(world: &World, name: &str) -> Node {
    wait_for_node(&world.client, name, DEADLINE, |node| {
        !has_taint(node, UNINITIALIZED_TAINT)
    })
    .await
}

/// Taints a Node as a kubelet does that registers it again.
pub(crate) async fn create_uninitialized(world: &World, name: &str) {
    let taint = json!({"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"});
    let patch = Patch::Merge(json!({"spec": {"taints": [taint]}}));
    let nodes: Api<Node> = Api::all(world.client.clone());
    let patched = nodes.patch(name, &PatchParams::default(), &patch).await;
    patched.expect("the node is there");
}

pub(crate) fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    let mut taints = taints.unwrap_or_default().iter();
    taints.any(|taint| taint.key == key)
}

/// The instance is gone, and its kubelet has not reported for a while.
pub(crate) async fn lose(world: &World, name: &str, machine: u64) {
    forget_heartbeat(world, name).await;
    world.cloud.destroy(machine).expect("the machine is there");
    stop_reporting(world, name).await;
}

/// The machine is off, and so is its kubelet.
pub(crate) async fn shut_down(world: &World, name: &str, machine: u64) {
    let off = world.cloud.power_off(machine);
    off.expect("the machine is there");
    stop_reporting(world, name).await;
}

pub(crate) async fn stop_reporting(world: &World, name: &str) {
    let kubelet = Kubelet::new(&world.client, name);
    let written = kubelet.set_not_ready(NotReady::Unknown).await;
    written.expect("the status is written");
}

pub(crate) async fn is_tainted_as_shut_down(world: &World, name: &str) {
    wait_for_node(&world.client, name, DEADLINE, |node| {
        has_taint(node, SHUTDOWN)
    })
    .await;
}

async fn forget_heartbeat(world: &World, name: &str) {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-node-lease");
    let deleted = leases.delete(name, &DeleteParams::default()).await;
    deleted.expect("the lease is there");
}

/// Waits for an event of this reason about an object, counted at least so often.
pub(crate) async fn wait_for_event(
    world: &World,
    namespace: &str,
    name: &str,
    reason: &str,
    times: i32,
) {
    let events: Api<Event> = Api::namespaced(world.client.clone(), namespace);
    let about = format!("involvedObject.name={name},reason={reason}");
    let about = ListParams::default().fields(&about);
    let what = format!("{reason} about {name}, {times} times");
    eventually(&what, DEADLINE, || async {
        let found = events.list(&about).await?;
        let counts = found.items.iter().filter_map(|event| event.count);
        Ok::<_, kube::Error>(counts.sum::<i32>() >= times)
    })
    .await;
}
