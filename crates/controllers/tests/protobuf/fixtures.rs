//! Nodes, and how they are seen.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_controllers::view::{NodeView, SlimNode, View as _};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use serde_json::json;

/// Every part that is kept of a Node is there.
pub(crate) fn rich(name: &str) -> Node {
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

pub(crate) fn status() -> serde_json::Value {
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
pub(crate) async fn in_json(nodes: &Api<Node>) -> BTreeMap<String, NodeView> {
    let list = nodes
        .list(&ListParams::default())
        .await
        .expect("Nodes are listed");
    list.items
        .iter()
        .map(|node| {
            let view = NodeView::from(node);
            (view.key(), view)
        })
        .collect()
}

/// Makes a Node with all of that.
pub(crate) async fn make(nodes: &Api<Node>, node: &Node) {
    let made = nodes.create(&PostParams::default(), node).await;
    let name = made.expect("made").metadata.name.expect("a name");
    let patch = Patch::Merge(status());
    let how = PatchParams::default();
    let patched = nodes.patch_status(&name, &how, &patch).await;
    patched.expect("patched");
}

/// The first list of a watch.
pub(crate) async fn listed(
    events: &mut (impl futures::Stream<Item = watcher::Result<Event<SlimNode>>> + Unpin),
) -> BTreeMap<String, NodeView> {
    let mut listed = BTreeMap::new();
    loop {
        match next(events).await {
            Event::Init => {}
            Event::InitApply(node) => {
                let view = NodeView::of(&node);
                listed.insert(view.key(), view);
            }
            Event::InitDone => return listed,
            other => panic!("{other:?} while Nodes are listed"),
        }
    }
}

pub(crate) async fn next(
    events: &mut (impl futures::Stream<Item = watcher::Result<Event<SlimNode>>> + Unpin),
) -> Event<SlimNode> {
    let event = tokio::time::timeout(Duration::from_mins(1), events.next()).await;
    let event = event.expect("an event comes").expect("the watch goes on");
    event.expect("the watch is whole")
}
