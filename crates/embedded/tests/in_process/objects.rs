//! Nodes and Services for the tests.

use std::sync::Arc;

use cloudkeel_api::TokioClock;
use cloudkeel_embedded::EmbeddedApi;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

/// An API on the runtime's clock.
pub(crate) fn api(seed: u64) -> EmbeddedApi {
    let epoch = "2026-01-01T00:00:00Z".parse().expect("a moment");
    let clock = TokioClock::starting_at(epoch);
    EmbeddedApi::builder()
        .clock(Arc::new(clock))
        .seed(seed)
        .keep_journal()
        .build()
}

pub(crate) fn nodes(client: &Client) -> Api<Node> {
    Api::all(client.clone())
}

pub(crate) async fn add_node(client: &Client, name: &str) -> Node {
    let node = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a node");
    let created = nodes(client).create(&PostParams::default(), &node).await;
    created.expect("the node is created")
}

pub(crate) async fn add_balancer(client: &Client, name: &str) -> Service {
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let service = json!({
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "externalTrafficPolicy": "Local"},
    });
    let service = serde_json::from_value(service).expect("a service");
    let created = services.create(&PostParams::default(), &service).await;
    created.expect("the service is created")
}
