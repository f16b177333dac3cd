//! Nodes and Services as the helpers make them and the API server keeps them.

use cloudkeel_testkit::cluster::{
    Kubelet, NodeBuilder, NotReady, PROVIDED_NODE_IP, ServiceBuilder, TestNamespace,
    UNINITIALIZED_TAINT, unique_name,
};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// The status, reason, heartbeat and transition of the condition Ready.
fn ready(node: &Node) -> (String, String, jiff::Timestamp, jiff::Timestamp) {
    let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .unwrap();
    (
        ready.status.clone(),
        ready.reason.clone().unwrap(),
        ready.last_heartbeat_time.as_ref().unwrap().0,
        ready.last_transition_time.as_ref().unwrap().0,
    )
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node
        .spec
        .as_ref()
        .unwrap()
        .taints
        .clone()
        .unwrap_or_default();
    taints
        .iter()
        .map(|taint| format!("{}:{}", taint.key, taint.effect))
        .collect()
}

async fn lease(client: &Client, name: &str) -> Lease {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    leases.get(name).await.unwrap()
}

#[tokio::test]
async fn a_registered_node_is_what_a_kubelet_leaves_for_the_cloud() {
    let client = ControlPlane::shared().await.client();
    let name = unique_name("node");
    let node = NodeBuilder::new(&name)
        .node_ip("192.0.2.7".parse().unwrap())
        .pod_cidr("10.244.7.0/24")
        .create(&client)
        .await
        .unwrap();
    assert_eq!(taints(&node), [format!("{UNINITIALIZED_TAINT}:NoSchedule")]);
    assert_eq!(
        node.metadata.annotations.as_ref().unwrap()[PROVIDED_NODE_IP],
        "192.0.2.7"
    );
    assert_eq!(
        node.metadata.labels.as_ref().unwrap()["kubernetes.io/hostname"],
        name
    );
    assert_eq!(
        node.spec.as_ref().unwrap().pod_cidr.as_deref(),
        Some("10.244.7.0/24")
    );
    assert_eq!(ready(&node).0, "True");

    let status = node.status.as_ref().unwrap();
    let kinds = |kind: &str| {
        let addresses = status.addresses.as_ref().unwrap().iter();
        addresses
            .filter(|address| address.type_ == kind)
            .map(|address| address.address.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (kinds("InternalIP"), kinds("Hostname")),
        (vec!["192.0.2.7".to_owned()], vec![name])
    );
    assert_eq!(status.images.as_ref().unwrap().len(), 50);
    assert_eq!(status.conditions.as_ref().unwrap().len(), 4);
    assert!(status.capacity.as_ref().unwrap().contains_key("memory"));
    assert_eq!(
        status.node_info.as_ref().unwrap().kubelet_version,
        "v1.35.4"
    );
}

#[tokio::test]
async fn readiness_comes_and_goes_with_heartbeats_and_leases() {
    let client = ControlPlane::shared().await.client();
    let name = unique_name("node");
    let born = NodeBuilder::new(&name)
        .initialized()
        .create(&client)
        .await
        .unwrap();
    let kubelet = Kubelet::new(&client, &name);
    let renewed = || async {
        lease(&client, &name)
            .await
            .spec
            .unwrap()
            .renew_time
            .unwrap()
            .0
    };
    let at_birth = renewed().await;

    let reported = kubelet.set_not_ready(NotReady::False).await.unwrap();
    assert_eq!(
        (ready(&reported).0.as_str(), ready(&reported).1.as_str()),
        ("False", "KubeletNotReady")
    );
    let key = "node.kubernetes.io/not-ready";
    assert_eq!(
        taints(&reported),
        [format!("{key}:NoSchedule"), format!("{key}:NoExecute")]
    );
    let while_reporting = renewed().await;
    assert!(
        while_reporting > at_birth,
        "a kubelet that reports also renews"
    );

    let silent = kubelet.set_not_ready(NotReady::Unknown).await.unwrap();
    assert_eq!(
        (ready(&silent).0.as_str(), ready(&silent).1.as_str()),
        ("Unknown", "NodeStatusUnknown")
    );
    assert_eq!(
        ready(&silent).2,
        ready(&reported).2,
        "no heartbeat from a silent kubelet"
    );
    assert_eq!(renewed().await, while_reporting, "nor a renewal");
    let key = "node.kubernetes.io/unreachable";
    assert_eq!(
        taints(&silent),
        [format!("{key}:NoSchedule"), format!("{key}:NoExecute")]
    );

    let back = kubelet.set_ready().await.unwrap();
    assert_eq!((ready(&back).0.as_str(), taints(&back)), ("True", vec![]));
    assert!(renewed().await > while_reporting);

    let lease = lease(&client, &name).await;
    assert_eq!(lease.spec.unwrap().holder_identity, Some(name));
    assert_eq!(
        lease.metadata.owner_references.unwrap()[0].uid,
        born.metadata.uid.unwrap()
    );
}

#[tokio::test]
async fn a_heartbeat_leaves_what_the_cloud_wrote() {
    let client = ControlPlane::shared().await.client();
    let name = unique_name("node");
    NodeBuilder::new(&name).create(&client).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    let written = json!({"status": {
        "addresses": [{"type": "ExternalIP", "address": "198.51.100.1"}],
        "conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}],
    }});
    nodes
        .patch_status(&name, &PatchParams::default(), &Patch::Strategic(written))
        .await
        .unwrap();
    let node = Kubelet::new(&client, &name).set_ready().await.unwrap();
    let status = node.status.unwrap();
    let addresses: Vec<_> = status
        .addresses
        .unwrap()
        .into_iter()
        .map(|address| address.type_)
        .collect();
    let conditions: Vec<_> = status
        .conditions
        .unwrap()
        .into_iter()
        .map(|condition| condition.type_)
        .collect();
    assert!(
        addresses.contains(&"ExternalIP".to_owned()),
        "{addresses:?}"
    );
    assert!(
        conditions.contains(&"NetworkUnavailable".to_owned()),
        "{conditions:?}"
    );
    assert_eq!(conditions.len(), 5, "{conditions:?}");
}

#[tokio::test]
async fn a_kubelet_of_its_own_identity_may_register_and_beat() {
    let plane = ControlPlane::shared().await;
    let name = unique_name("node");
    let kubelet = plane.client_for(&format!("system:node:{name}"), &["system:nodes"]);
    NodeBuilder::new(&name).create(&kubelet).await.unwrap();
    let beating = Kubelet::new(&kubelet, &name);
    let node = beating.set_not_ready(NotReady::False).await.unwrap();
    assert_eq!(node.metadata.name, Some(name.clone()));
    let nodes: Api<Node> = Api::all(plane.client());
    nodes.delete(&name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_service_gets_an_address_and_a_node_port() {
    let client = ControlPlane::shared().await.client();
    let namespace = TestNamespace::create(&client, "services").await.unwrap();
    let service = ServiceBuilder::new(namespace.name(), "web")
        .port("http", 80)
        .udp_port("quic", 443)
        .annotation("example.com/size", "small")
        .external_traffic_local()
        .create(&client)
        .await
        .unwrap();
    assert_eq!(
        service.metadata.annotations.unwrap()["example.com/size"],
        "small"
    );
    let spec = service.spec.unwrap();
    assert_eq!(spec.type_.as_deref(), Some("LoadBalancer"));
    assert!(
        spec.cluster_ip.as_ref().unwrap().starts_with("10.0."),
        "{:?}",
        spec.cluster_ip
    );
    let ports = spec.ports.unwrap();
    let protocols: Vec<_> = ports
        .iter()
        .map(|port| port.protocol.as_deref().unwrap())
        .collect();
    assert_eq!(protocols, ["TCP", "UDP"]);
    for port in ports {
        let node_port = port.node_port.unwrap();
        assert!((30_000..32_768).contains(&node_port), "{node_port}");
    }
    assert!(spec.health_check_node_port.unwrap() >= 30_000);
}

#[tokio::test]
async fn the_choices_for_a_service_reach_the_api_server() {
    let client = ControlPlane::shared().await.client();
    let namespace = TestNamespace::create(&client, "services").await.unwrap();
    let service = ServiceBuilder::new(namespace.name(), "web")
        .port("http", 80)
        .label("team", "red")
        .class("example.com/internal")
        .finalizer("service.kubernetes.io/load-balancer-cleanup")
        .without_node_ports()
        .client_ip_affinity()
        .create(&client)
        .await
        .unwrap();
    assert_eq!(service.metadata.labels.unwrap()["team"], "red");
    assert_eq!(
        service.metadata.finalizers.unwrap(),
        ["service.kubernetes.io/load-balancer-cleanup"]
    );
    let spec = service.spec.unwrap();
    assert_eq!(
        spec.load_balancer_class.as_deref(),
        Some("example.com/internal")
    );
    assert_eq!(spec.ports.unwrap()[0].node_port, None);
    assert_eq!(spec.session_affinity.as_deref(), Some("ClientIP"));
}

#[tokio::test]
async fn a_service_can_ask_for_its_node_port_and_change_its_type() {
    let client = ControlPlane::shared().await.client();
    let namespace = TestNamespace::create(&client, "services").await.unwrap();
    let service = ServiceBuilder::new(namespace.name(), "web")
        .service_type("NodePort")
        .port_through("http", 80, 32_107, 8080)
        .create(&client)
        .await
        .unwrap();
    let spec = service.spec.unwrap();
    assert_eq!(spec.type_.as_deref(), Some("NodePort"));
    let port = &spec.ports.unwrap()[0];
    let target = port.target_port.clone().unwrap();
    assert_eq!(
        (port.node_port, serde_json::to_value(target).unwrap()),
        (Some(32_107), json!(8080))
    );
}
