//! A Node that is written back whole ends as one that is patched.

use cloudkeel_controllers::node::plan::NodeChanges;
use cloudkeel_controllers::runtime::{NodeWriter, WriteError, watch_nodes};
use cloudkeel_controllers::view::NodeView;
use cloudkeel_testkit::control_plane::ControlPlane;
use futures::StreamExt as _;
use http::Method;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::fixtures::{listed, make, rich};
use crate::wire::Wire;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Waits to be initialised, and has fields that cloudkeel does not know.
fn waiting(name: &str) -> Node {
    let mut node = rich(name);
    node.metadata.owner_references = serde_json::from_value(json!([
        {"apiVersion": "v1", "kind": "Machine", "name": "m", "uid": "7", "controller": true},
    ]))
    .expect("owners");
    let spec = node.spec.get_or_insert_default();
    spec.provider_id = None;
    spec.external_id = Some("of old".to_owned());
    spec.taints.get_or_insert_default().push(Taint {
        key: UNINITIALIZED.to_owned(),
        value: Some("true".to_owned()),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    });
    node
}

fn initialised(node: &NodeView) -> NodeChanges {
    let mut taints = node.taints.clone();
    taints.retain(|taint| taint.key != UNINITIALIZED);
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    NodeChanges {
        provider_id: Some("local://p/1".parse().expect("an ID")),
        labels: [label("zone", "z1"), label("a", "changed")].into(),
        taints: Some(taints),
    }
}

/// The Nodes as a watch in protobuf shows them.
async fn seen(client: Client, name: &str) -> NodeView {
    let mut events = watch_nodes(client, watcher::Config::default(), 0).boxed();
    let mut all = listed(&mut events).await;
    all.remove(name).expect("it is listed")
}

/// All of a Node but what no two have in common.
async fn whole(nodes: &Api<Node>, name: &str) -> Value {
    let node = nodes.get(name).await.expect("it is there");
    let mut node = serde_json::to_value(node).expect("a Node");
    for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
        node["metadata"][field] = Value::Null;
    }
    let managers = node["metadata"]["managedFields"].as_array_mut();
    let managers = managers.expect("managed fields");
    for manager in managers.iter_mut() {
        manager["time"] = Value::Null;
    }
    // They stand in the order of their times, which differ by a second on a slow machine.
    managers.sort_by_key(Value::to_string);
    node
}

#[tokio::test]
async fn a_node_that_is_replaced_ends_as_one_that_is_patched() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let nodes: Api<Node> = Api::all(plane.client());
    for name in ["replaced", "patched"] {
        make(&nodes, &waiting(name)).await;
    }
    let wire = Wire::new(plane.client());
    let writer = NodeWriter::new(wire.client());

    let node = seen(plane.client(), "replaced").await;
    assert!(node.original.is_some(), "it waits to be initialised");
    let version = writer.write_changes(&node, &initialised(&node)).await;
    let version = version.expect("replaced");
    let in_json = nodes.get("patched").await.expect("it is there");
    let twin = NodeView::from(&in_json);
    let patched = writer.write_changes(&twin, &initialised(&twin)).await;
    patched.expect("patched");

    let sent = wire.take();
    let methods: Vec<&Method> = sent.iter().map(|exchange| &exchange.method).collect();
    assert_eq!(methods, [&Method::PUT, &Method::PATCH]);
    let (replaced, patched) = (
        whole(&nodes, "replaced").await,
        whole(&nodes, "patched").await,
    );
    assert_eq!(replaced, patched);
    assert_eq!(replaced["spec"]["providerID"], "local://p/1");
    assert_eq!(replaced["metadata"]["labels"]["a"], "changed");
    assert_eq!(replaced["status"]["images"][0]["names"][1], "y");
    assert_eq!(replaced["metadata"]["ownerReferences"][0]["name"], "m");
    assert_eq!(replaced["spec"]["externalID"], "of old");
    let taints = replaced["spec"]["taints"].to_string();
    assert!(taints.contains("2026-01-02T03:04:05Z") && !taints.contains(UNINITIALIZED));

    let after = seen(plane.client(), "replaced").await;
    assert_eq!((after.original, after.resource_version), (None, version));
}

#[tokio::test]
async fn what_has_changed_since_or_was_made_anew_is_not_replaced() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let nodes: Api<Node> = Api::all(plane.client());
    let writer = NodeWriter::new(plane.client());
    let mut node = waiting("n");
    node.metadata.finalizers = None;
    make(&nodes, &node).await;
    let stale = seen(plane.client(), "n").await;
    let change = Patch::Merge(json!({"metadata": {"labels": {"of": "another-client"}}}));
    let changed = nodes.patch("n", &PatchParams::default(), &change).await;
    changed.expect("changed");
    let refused = writer.write_changes(&stale, &initialised(&stale)).await;
    assert!(matches!(refused, Err(WriteError::Conflict)), "{refused:?}");

    let before = seen(plane.client(), "n").await;
    let deleted = nodes.delete("n", &DeleteParams::default()).await;
    deleted.expect("deleted");
    let refused = writer.write_changes(&before, &initialised(&before)).await;
    assert!(matches!(refused, Err(WriteError::Gone)), "{refused:?}");
    make(&nodes, &node).await;
    let refused = writer.write_changes(&before, &initialised(&before)).await;
    assert!(
        matches!(refused, Err(WriteError::Conflict | WriteError::Gone)),
        "{refused:?}"
    );
    let node = nodes.get("n").await.expect("it is there");
    assert_eq!(node.spec.and_then(|spec| spec.provider_id), None);
}

#[tokio::test]
async fn an_id_that_is_there_stays_as_it_is() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let nodes: Api<Node> = Api::all(plane.client());
    let writer = NodeWriter::new(plane.client());
    for (name, id) in [("ours", "local://p/1"), ("strange", "no scheme at all")] {
        let mut node = waiting(name);
        node.spec.get_or_insert_default().provider_id = Some(id.to_owned());
        make(&nodes, &node).await;
        let seen = seen(plane.client(), name).await;
        let changes = NodeChanges {
            provider_id: None,
            ..initialised(&seen)
        };
        let written = writer.write_changes(&seen, &changes).await;
        written.expect("replaced");
        let node = nodes.get(name).await.expect("it is there");
        let kept = node.spec.and_then(|spec| spec.provider_id);
        assert_eq!(kept.as_deref(), Some(id));
    }
}

#[tokio::test]
async fn a_role_that_allows_patches_only_gets_patches() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let nodes: Api<Node> = Api::all(plane.client());
    let wire = Wire::new(plane.client()).forbidding(Method::PUT);
    let writer = NodeWriter::new(wire.client());
    for name in ["first", "second"] {
        make(&nodes, &waiting(name)).await;
        let node = seen(plane.client(), name).await;
        let written = writer.write_changes(&node, &initialised(&node)).await;
        written.expect("patched");
        let node = nodes.get(name).await.expect("it is there");
        let id = node.spec.and_then(|spec| spec.provider_id);
        assert_eq!(id.as_deref(), Some("local://p/1"));
    }
    let methods: Vec<Method> = wire.take().into_iter().map(|seen| seen.method).collect();
    assert_eq!(
        methods,
        [Method::PUT, Method::PATCH, Method::PATCH],
        "it is tried once"
    );
}
