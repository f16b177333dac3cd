//! What users, kubelets and the rest of the cluster do in a test.

use cloudkeel_testkit::cluster::{
    Kubelet, NodeBuilder, NotReady, eventually, unique_name, wait_for_node, wait_for_service,
};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};

use crate::harness::{DEADLINE, World};

/// A short lease, so that tests need not wait for its expiry.
pub(crate) const SHORT_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
];

/// Deletions with short grace periods.
pub(crate) const FAST_DELETION: [&str; 4] = [
    "--node-monitor-period=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-confirmation-period=2s",
    "--node-deletion-proofs=2",
];

/// A world in this cluster.
pub(crate) async fn world_of(plane: &ControlPlane) -> World {
    let access = |id: &str| {
        let file = plane.kubeconfig_for(id, &["system:masters"]);
        std::fs::read_to_string(file).expect("the kubeconfig")
    };
    World::reached_by(plane.client(), access).await
}

/// An instance, and a Node that waits to be initialized. Returns the name and the ID.
pub(crate) async fn join(world: &World) -> (String, u64) {
    let name = unique_name("node");
    let machine = world.machine(&name);
    register(world, &name).await;
    (name, machine)
}

/// The Node alone.
pub(crate) async fn register(world: &World, name: &str) {
    let (key, value) = world.label();
    let node = NodeBuilder::new(name).label(key, value);
    node.create(&world.client).await.expect("the node is made");
}

pub(crate) async fn wait_for_initialized(world: &World, name: &str) -> Node {
    wait_for_node(&world.client, name, DEADLINE, is_initialized).await
}

pub(crate) fn is_initialized(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref());
    let is_tainted = taints
        .unwrap_or_default()
        .iter()
        .any(|taint| taint.key.ends_with("/uninitialized"));
    !is_tainted && spec.is_some_and(|spec| spec.provider_id.is_some())
}

/// The kubelet reports that the Node is ready.
pub(crate) async fn report_ready(world: &World, name: &str) {
    let kubelet = Kubelet::new(&world.client, name);
    kubelet.set_ready().await.expect("the status is written");
}

/// The kubelet has not reported for long: its lease is gone, and the Node is not ready.
pub(crate) async fn stop_reporting(world: &World, name: &str) {
    let kubelet = Kubelet::new(&world.client, name);
    let written = kubelet.set_not_ready(NotReady::Unknown).await;
    written.expect("the status is written");
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-node-lease");
    match leases.delete(name, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn address(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    balancer.ingress.as_ref()?.first()?.ip.clone()
}

/// Waits until a Service has its address.
pub(crate) async fn wait_for_address(client: &Client, namespace: &str, name: &str) -> Service {
    wait_for_service(client, namespace, name, DEADLINE, |service| {
        address(service).is_some()
    })
    .await
}

/// The events about an object, by reason; any if it is empty.
pub(crate) async fn events(
    client: &Client,
    namespace: &str,
    name: &str,
    reason: &str,
) -> Vec<Event> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let mut about = format!("involvedObject.name={name}");
    if !reason.is_empty() {
        about = format!("{about},reason={reason}");
    }
    let found = events.list(&ListParams::default().fields(&about)).await;
    found.expect("events can be listed").items
}

/// Waits for an event, and returns its message.
pub(crate) async fn wait_for_event(
    client: &Client,
    namespace: &str,
    name: &str,
    reason: &str,
) -> String {
    let what = format!("{reason} about {name}");
    eventually(&what, DEADLINE, || async {
        let events = events(client, namespace, name, reason).await;
        events.into_iter().next()
    })
    .await
    .message
    .unwrap_or_default()
}

/// How many log lines contain this.
pub(crate) fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}
