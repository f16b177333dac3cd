//! Machines and their Nodes, as heavy as real ones.

use anyhow::{Context as _, Result};
use cloudkeel_testkit::cluster::NodeBuilder;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, SimulatedCloud};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};

/// How many Nodes are made at once.
const AT_ONCE: usize = 32;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Makes so many machines and tainted Nodes.
pub(crate) async fn gather(client: &Client, cloud: &SimulatedCloud, nodes: usize) -> Result<()> {
    for number in 0..nodes {
        let machine = cloud.add_machine(MachineSpec::named(name(number)));
        machine.map_err(|refusal| anyhow::anyhow!("no machine: {refusal:?}"))?;
    }
    futures::stream::iter((0..nodes).map(|number| async move {
        let made = NodeBuilder::new(name(number)).create(client).await;
        made.map(drop)
            .with_context(|| format!("node {number} was not made"))
    }))
    .buffer_unordered(AT_ONCE)
    .try_collect::<()>()
    .await
}

fn name(number: usize) -> String {
    format!("node-{number:05}")
}

/// How many Nodes still wait, and how often all of them were written since they were made.
pub(crate) async fn waiting(client: &Client) -> Result<usize> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut waiting = 0;
    let mut page = ListParams::default().limit(500);
    loop {
        let list = nodes.list(&page).await?;
        waiting += list.items.iter().filter(|node| is_tainted(node)).count();
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(waiting),
        }
    }
}

fn is_tainted(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints
        .unwrap_or_default()
        .iter()
        .any(|taint| taint.key == UNINITIALIZED)
}
