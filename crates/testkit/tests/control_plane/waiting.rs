//! What a wait finds, and what it says when it finds nothing.

use std::time::Duration;

use cloudkeel_testkit::cluster::{
    NodeBuilder, ServiceBuilder, TestNamespace, try_wait_for_node, try_wait_for_service,
    unique_name, wait_for_node, wait_for_node_gone, wait_for_service, wait_for_service_gone,
};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);

async fn record_event(client: &Client, namespace: &str, kind: &str, name: &str, message: &str) {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let event = serde_json::from_value(json!({
        "metadata": {"name": unique_name("event")},
        "involvedObject": {"kind": kind, "name": name, "namespace": if kind == "Node" { "" } else { namespace }},
        "type": "Warning",
        "reason": "SyncFailed",
        "message": message,
    }));
    events
        .create(&PostParams::default(), &event.unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wait_ends_when_someone_else_makes_the_condition_true() {
    let client = ControlPlane::shared().await.client();
    let name = unique_name("node");
    NodeBuilder::new(&name).create(&client).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    let initialise = async {
        let patch = Patch::Merge(json!({"spec": {"providerID": "cloud://7"}}));
        nodes
            .patch(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    let has_id = |node: &Node| {
        node.spec
            .as_ref()
            .is_some_and(|spec| spec.provider_id.is_some())
    };
    let (node, ()) = tokio::join!(wait_for_node(&client, &name, LONG, has_id), initialise);
    assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some("cloud://7"));

    let (_, ()) = tokio::join!(
        async { nodes.delete(&name, &DeleteParams::default()).await.unwrap() },
        wait_for_node_gone(&client, &name, LONG)
    );
}

#[tokio::test]
async fn a_service_is_waited_for_from_its_creation_to_its_end() {
    let client = ControlPlane::shared().await.client();
    let namespace = TestNamespace::create(&client, "waiting").await.unwrap();
    let builder = ServiceBuilder::new(namespace.name(), "web").port("http", 80);
    let (seen, created) = tokio::join!(
        wait_for_service(&client, namespace.name(), "web", LONG, |_| true),
        builder.create(&client)
    );
    assert_eq!(seen.metadata.uid, created.unwrap().metadata.uid);

    let services: Api<Service> = Api::namespaced(client.clone(), namespace.name());
    services
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    wait_for_service_gone(&client, namespace.name(), "web", LONG).await;
}

#[tokio::test]
async fn a_failed_wait_shows_the_node_and_its_events() {
    let client = ControlPlane::shared().await.client();
    let name = unique_name("node");
    NodeBuilder::new(&name)
        .label("rack", "r42")
        .create(&client)
        .await
        .unwrap();
    record_event(
        &client,
        "default",
        "Node",
        &name,
        "the cloud does not know this machine",
    )
    .await;
    record_event(
        &client,
        "default",
        "Node",
        &unique_name("other"),
        "about another node",
    )
    .await;

    let unmet = try_wait_for_node(&client, &name, SHORT, |_| false)
        .await
        .unwrap_err();
    let message = unmet.to_string();
    for part in [
        &format!("the wanted state of Node {name} did not come about within 200ms"),
        "waiting.rs:",
        r#""rack": "r42""#,
        "(50 images)",
        "Warning SyncFailed ×1: the cloud does not know this machine",
    ] {
        assert!(message.contains(part), "{part:?} is missing in: {message}");
    }
    assert!(
        !message.contains("about another node") && !message.contains("managedFields"),
        "{message}"
    );
}

#[tokio::test]
async fn a_failed_wait_for_a_service_says_whether_it_exists() {
    let client = ControlPlane::shared().await.client();
    let namespace = TestNamespace::create(&client, "waiting").await.unwrap();
    let elsewhere = TestNamespace::create(&client, "waiting").await.unwrap();
    let (kind, message) = ("Service", "about a namesake");
    record_event(&client, elsewhere.name(), kind, "web", message).await;
    let never = |_: &Service| false;
    let unmet = try_wait_for_service(&client, namespace.name(), "web", SHORT, never)
        .await
        .unwrap_err();
    let message = unmet.to_string();
    assert!(
        message.contains("Service web") && message.contains("it does not exist"),
        "{message}"
    );
    assert!(message.ends_with("events: none"), "{message}");

    let builder = ServiceBuilder::new(namespace.name(), "web").port("http", 80);
    builder.create(&client).await.unwrap();
    record_event(
        &client,
        namespace.name(),
        "Service",
        "web",
        "quota exceeded",
    )
    .await;
    let unmet = try_wait_for_service(&client, namespace.name(), "web", SHORT, never)
        .await
        .unwrap_err();
    let message = unmet.to_string();
    assert!(
        message.contains("\"clusterIP\"") && message.contains("quota exceeded"),
        "{message}"
    );
}

#[tokio::test]
#[should_panic(expected = "the end of Node")]
async fn a_node_that_stays_fails_the_wait_for_its_end() {
    let client = ControlPlane::shared().await.client();
    let name = unique_name("node");
    NodeBuilder::new(&name).create(&client).await.unwrap();
    wait_for_node_gone(&client, &name, SHORT).await;
}
