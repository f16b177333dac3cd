//! Nodes that come in protobuf are the same as those that come in JSON.

use cloudkeel_controllers::runtime::watch_nodes;
use cloudkeel_controllers::view::{NodeView, View as _};
use cloudkeel_testkit::control_plane::ControlPlane;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use serde_json::json;

use crate::fixtures::{in_json, listed, make, next, rich};
use crate::wire::Wire;

#[tokio::test]
async fn a_node_is_the_same_in_protobuf_and_in_json() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let nodes: Api<Node> = Api::all(plane.client());
    for name in ["rich", "second"] {
        make(&nodes, &rich(name)).await;
    }
    let bare: Node = serde_json::from_value(json!({"metadata": {"name": "bare"}})).expect("a Node");
    nodes
        .create(&PostParams::default(), &bare)
        .await
        .expect("made");

    let ready = json!({"type": "Ready", "status": "False", "message": "node is shutting down"});
    let patch = Patch::Merge(json!({"status": {"conditions": [ready]}}));
    let how = PatchParams::default();
    let patched = nodes.patch_status("second", &how, &patch).await;
    patched.expect("patched");

    let wire = Wire::new(plane.client());
    let mut events = watch_nodes(wire.client(), watcher::Config::default(), 0).boxed();
    let listed = listed(&mut events).await;
    assert_eq!(listed, in_json(&nodes).await);
    assert_eq!(listed.len(), 3);
    assert!(listed["rich"].facts.system_uuid.is_some());
    assert!(listed["second"].shutting_down);

    nodes
        .delete("rich", &DeleteParams::default())
        .await
        .expect("deleted");
    let Event::Apply(deleting) = next(&mut events).await else {
        panic!("the Node has a finalizer and stays");
    };
    let deleting = NodeView::of(&deleting);
    assert!(deleting.deleting);
    assert_eq!(Some(&deleting), in_json(&nodes).await.get("rich"));

    nodes
        .delete("bare", &DeleteParams::default())
        .await
        .expect("deleted");
    let Event::Delete(gone) = next(&mut events).await else {
        panic!("the Node has no finalizer and goes");
    };
    assert_eq!(NodeView::of(&gone).key(), "bare");

    let forms: Vec<String> = wire.take().into_iter().map(|seen| seen.answered).collect();
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(
        forms,
        [protobuf.to_owned(), format!("{protobuf};stream=watch")]
    );
}
