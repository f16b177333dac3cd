//! Nodes that come in protobuf from a real API server are the same as those that come in JSON.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use cloudkeel_controllers::runtime::{GivenClient, watch_nodes};
use cloudkeel_controllers::view::{NodeView, View as _};
use cloudkeel_testkit::control_plane::ControlPlane;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::json;
use tower_service::Service;

/// Remembers in which form the answers came.
#[derive(Clone)]
struct Forms {
    inner: GivenClient,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Service<Request<Body>> for Forms {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<kube::Result<()>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, seen) = (self.inner.call(request), Arc::clone(&self.seen));
        async move {
            let answer = answer.await?;
            let form = answer
                .headers()
                .get(CONTENT_TYPE)
                .expect("answers say what they are");
            let form = form.to_str().expect("in plain words").to_owned();
            seen.lock().expect("nobody panicked").push(form);
            Ok(answer)
        }
        .boxed()
    }
}

/// Every part that is kept of a Node is there.
fn rich(name: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "labels": {"a": "b", "empty": ""},
            "annotations": {"c": "d"},
            // So that it can be seen while it is deleted.
            "finalizers": ["test.cloudkeel.dev/stay"],
        },
        "spec": {
            "providerID": "local://p/1",
            "podCIDR": "10.0.0.0/24",
            "podCIDRs": ["10.0.0.0/24", "fd00::/64"],
            "unschedulable": true,
            "taints": [
                {"key": "k", "value": "v", "effect": "NoSchedule"},
                {"key": "t", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
            ],
        },
    }))
    .expect("a Node")
}

fn status() -> serde_json::Value {
    json!({"status": {
        "addresses": [
            {"type": "InternalIP", "address": "10.1.1.1"},
            {"type": "Hostname", "address": "n"},
        ],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady",
             "lastHeartbeatTime": "2026-01-02T03:04:07Z", "lastTransitionTime": "2026-01-02T03:04:06Z"},
            {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
             "lastTransitionTime": "2026-01-02T03:04:08Z"},
        ],
        "capacity": {"cpu": "4"},
        "images": [{"names": ["x", "y"], "sizeBytes": 7}],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "r",
            "kernelVersion": "k", "kubeProxyVersion": "", "kubeletVersion": "v",
            "machineID": "m", "operatingSystem": "linux", "osImage": "i", "systemUUID": "4c4c",
        },
    }})
}

/// All Nodes as a client sees them that knows nothing but JSON.
async fn in_json(nodes: &Api<Node>) -> BTreeMap<String, NodeView> {
    let list = nodes
        .list(&ListParams::default())
        .await
        .expect("Nodes are listed");
    list.items
        .iter()
        .map(|node| {
            let view = NodeView::of(node);
            (view.key(), view)
        })
        .collect()
}

#[tokio::test]
async fn a_node_is_the_same_in_protobuf_and_in_json() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let nodes: Api<Node> = Api::all(plane.client());
    for name in ["rich", "second"] {
        nodes
            .create(&PostParams::default(), &rich(name))
            .await
            .expect("made");
        let patch = Patch::Merge(status());
        nodes
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .expect("patched");
    }
    let bare: Node = serde_json::from_value(json!({"metadata": {"name": "bare"}})).expect("a Node");
    nodes
        .create(&PostParams::default(), &bare)
        .await
        .expect("made");

    let seen = Arc::new(Mutex::new(Vec::new()));
    let forms = Forms {
        inner: GivenClient::new(plane.client()),
        seen: Arc::clone(&seen),
    };
    let mut events =
        watch_nodes(Client::new(forms, "default"), watcher::Config::default(), 0).boxed();
    let mut listed = BTreeMap::new();
    loop {
        match next(&mut events).await {
            Event::Init => {}
            Event::InitApply(node) => {
                let view = NodeView::of(&node);
                listed.insert(view.key(), view);
            }
            Event::InitDone => break,
            other => panic!("{other:?} while Nodes are listed"),
        }
    }
    assert_eq!(listed, in_json(&nodes).await);
    assert_eq!(listed.len(), 3);
    assert!(listed["rich"].facts.system_uuid.is_some());

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

    let seen = seen.lock().expect("nobody panicked").clone();
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(
        seen,
        [protobuf.to_owned(), format!("{protobuf};stream=watch")]
    );
}

async fn next(
    events: &mut (impl futures::Stream<Item = watcher::Result<Event<Node>>> + Unpin),
) -> Event<Node> {
    let event = tokio::time::timeout(Duration::from_mins(1), events.next()).await;
    let event = event.expect("an event comes").expect("the watch goes on");
    event.expect("the watch is whole")
}
