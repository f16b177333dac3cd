//! A Node that another client changes all the time while it waits for its cloud.

use std::time::Duration;

use cloudkeel_testkit::cluster::unique_name;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::harness::World;
use crate::nodes::builder;

/// How long the cloud takes, and how often the Node changes meanwhile.
const THINKING: Duration = Duration::from_secs(2);
const CHANGING: Duration = Duration::from_millis(200);

/// A new Node with the right addresses, so that its taints are all there is to write. What is known of it
/// when the cloud answers is always out of date.
pub(crate) struct Contended {
    name: String,
    changing: JoinHandle<()>,
}

impl Contended {
    pub(crate) async fn new(world: &World) -> Self {
        let name = unique_name("contended");
        let machine = world.machine(&name);
        let machine = world.cloud.machine(machine).expect("it was just made");
        let address = machine.addresses.first().expect("an address").ip;
        world
            .cloud
            .change_settings(|cloud| cloud.latency.fixed = THINKING);
        let node = builder(world, &name).node_ip(address);
        node.create(&world.client).await.expect("the node is made");
        let nodes: Api<Node> = Api::all(world.client.clone());
        let changing = tokio::spawn(change(nodes, name.clone()));
        Self { name, changing }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Contended {
    fn drop(&mut self) {
        self.changing.abort();
    }
}

async fn change(nodes: Api<Node>, name: String) {
    for count in 0_u64.. {
        let annotation = json!({"cloudkeel.test/count": count.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotation}}));
        let changed = nodes.patch(&name, &PatchParams::default(), &patch).await;
        changed.expect("the node is there");
        tokio::time::sleep(CHANGING).await;
    }
}
