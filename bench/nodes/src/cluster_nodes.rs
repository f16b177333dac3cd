//! Instances and their Nodes, as heavy as real ones.

use anyhow::{Context as _, Result, ensure};
use cloudkeel_testkit::cluster::NodeBuilder;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, SimulatedCloud};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::ListParams;
use kube::{Api, Client};

/// How many Nodes are created at once.
const AT_ONCE: usize = 32;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Creates so many instances and tainted Nodes.
pub(crate) async fn create(client: &Client, cloud: &SimulatedCloud, nodes: usize) -> Result<()> {
    for number in 0..nodes {
        let added = cloud.add_machine(MachineSpec::named(name(number)));
        added.map_err(|refusal| anyhow::anyhow!("instance not created: {refusal:?}"))?;
    }
    futures::stream::iter((0..nodes).map(|number| async move {
        let created = NodeBuilder::new(name(number)).create(client).await;
        created
            .map(drop)
            .with_context(|| format!("node {number} was not created"))
    }))
    .buffer_unordered(AT_ONCE)
    .try_collect::<()>()
    .await
}

fn name(number: usize) -> String {
    format!("node-{number:05}")
}

/// Whether any Node still waits. Only one is listed, so that polling costs nothing beside what is measured.
pub(crate) async fn any_uninitialized(client: &Client) -> Result<bool> {
    let nodes: Api<Node> = Api::all(client.clone());
    // The label comes in the same write that takes the taint off, and labels can be selected by.
    let one_unlabelled = ListParams::default()
        .labels("!node.kubernetes.io/instance-type")
        .limit(1);
    Ok(!nodes.list_metadata(&one_unlabelled).await?.items.is_empty())
}

/// How many Events there are. Only one is listed.
pub(crate) async fn count_events(client: &Client) -> Result<i64> {
    let events: Api<Event> = Api::all(client.clone());
    let list = events
        .list_metadata(&ListParams::default().limit(1))
        .await?;
    let more = list.metadata.remaining_item_count.unwrap_or(0);
    Ok(more + i64::try_from(list.items.len())?)
}

/// Fails unless every Node has lost its taint and knows its addresses.
pub(crate) async fn verify(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut page = ListParams::default().limit(500);
    loop {
        let list = nodes.list(&page).await?;
        for node in &list.items {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            ensure!(!is_tainted(node), "{name} still has its taint");
            ensure!(has_address(node), "{name} has no address");
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

fn has_address(node: &Node) -> bool {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_deref());
    addresses
        .unwrap_or_default()
        .iter()
        .any(|address| address.type_ == "InternalIP")
}

fn is_tainted(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints
        .unwrap_or_default()
        .iter()
        .any(|taint| taint.key == UNINITIALIZED)
}
