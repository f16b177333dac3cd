//! The checks. Each succeeds, fails with the reason, or says why it cannot be tried.

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::cluster::{Cluster, EXCLUDED, NAME};
use crate::traffic::request;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The ports of the Service: the first, and the one that is added.
const PORTS: [u16; 2] = [18080, 18081];

/// What the Service says when its targets have changed.
const TARGETS_CHANGED: &str = "UpdatedLoadBalancer";

/// How many requests in a row must succeed.
const REQUESTS: usize = 20;

/// What is checked on a Service that has an address.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Reach,
    NewPort,
    Targets,
}

pub(crate) async fn nodes(cluster: &Cluster) -> Result<Option<String>> {
    cluster
        .eventually(|| async {
            let nodes = cluster.all_nodes().await?;
            if nodes.is_empty() {
                bail!("the cluster has no Node");
            }
            let missing: Vec<_> = nodes.iter().filter_map(what_is_missing).collect();
            if !missing.is_empty() {
                bail!("{}", missing.join("; "));
            }
            Ok(None)
        })
        .await
}

fn what_is_missing(node: &Node) -> Option<String> {
    let spec = node.spec.clone().unwrap_or_default();
    let taints = spec.taints.unwrap_or_default();
    let addresses = node.status.clone().and_then(|status| status.addresses);
    let missing = if taints.iter().any(|taint| taint.key == UNINITIALIZED) {
        "has the taint of a Node that is not initialized"
    } else if spec.provider_id.is_none_or(|id| id.is_empty()) {
        "has no provider ID"
    } else if addresses.is_none_or(|addresses| addresses.is_empty()) {
        "has no address"
    } else {
        return None;
    };
    Some(format!("Node {} {missing}", node.name_any()))
}

pub(crate) async fn start(cluster: &Cluster) -> Result<Option<String>> {
    cluster.create().await?;
    cluster.eventually(|| cluster.address()).await?;
    Ok(None)
}

pub(crate) async fn step(cluster: &Cluster, step: Step) -> Result<Option<String>> {
    match step {
        Step::Reach => {
            let [first, _] = PORTS;
            answers(cluster, first).await?;
            Ok(None)
        }
        Step::NewPort => new_port(cluster).await,
        Step::Targets => targets(cluster).await,
    }
}

/// Waits for the first answer; after that, every request has one.
async fn answers(cluster: &Cluster, port: u16) -> Result<()> {
    let host = cluster.address().await?;
    cluster.eventually(|| request(&host, port)).await?;
    for _ in 0..REQUESTS {
        request(&host, port).await?;
    }
    Ok(())
}

async fn new_port(cluster: &Cluster) -> Result<Option<String>> {
    let [first, second] = PORTS;
    let ports = json!([
        {"name": "first", "port": first, "targetPort": 8080, "protocol": "TCP"},
        {"name": "second", "port": second, "targetPort": 8080, "protocol": "TCP"},
    ]);
    cluster
        .patch_service(&json!({"spec": {"ports": ports}}))
        .await?;
    answers(cluster, second).await?;
    answers(cluster, first).await?;
    Ok(None)
}

/// Without one of its Nodes, the load balancer still answers, and says that its targets have changed.
async fn targets(cluster: &Cluster) -> Result<Option<String>> {
    let nodes = cluster.all_nodes().await?;
    let targets: Vec<_> = nodes
        .iter()
        .filter(|node| !node.labels().contains_key(EXCLUDED))
        .map(ResourceExt::name_any)
        .collect();
    let [first, _, ..] = targets.as_slice() else {
        return Ok(Some("it needs two Nodes that are targets".to_owned()));
    };
    let before = changes_of_targets(cluster).await?;
    cluster.exclude(first, "".into()).await?;
    let followed = follows(cluster, before).await;
    // Taken off, whatever happened.
    cluster.exclude(first, Value::Null).await?;
    followed?;
    let [port, _] = PORTS;
    answers(cluster, port).await?;
    Ok(None)
}

async fn follows(cluster: &Cluster, before: i64) -> Result<()> {
    cluster
        .eventually(|| async {
            if changes_of_targets(cluster).await? <= before {
                bail!("the Service has no new Event {TARGETS_CHANGED}");
            }
            Ok(())
        })
        .await?;
    let [port, _] = PORTS;
    answers(cluster, port).await
}

async fn changes_of_targets(cluster: &Cluster) -> Result<i64> {
    let events = cluster.events.list(&ListParams::default()).await?;
    let changes = events.items.iter().filter(|event| {
        event.reason.as_deref() == Some(TARGETS_CHANGED)
            && event.involved_object.name.as_deref() == Some(NAME)
    });
    Ok(changes
        .map(|event| i64::from(event.count.unwrap_or(1)))
        .sum())
}

/// Deletes the Service, which is only gone when its load balancer is.
pub(crate) async fn clean_up(cluster: &Cluster) -> Result<Option<String>> {
    let address = cluster.address().await.ok();
    cluster.delete_service().await?;
    let gone = cluster
        .eventually(|| async {
            if cluster.services.get_opt(NAME).await?.is_some() {
                bail!("the Service still waits for its load balancer to be deleted");
            }
            let [port, _] = PORTS;
            if let Some(host) = &address
                && request(host, port).await.is_ok()
            {
                bail!("{host}:{port} still answers");
            }
            Ok(None)
        })
        .await;
    cluster.delete_namespace().await?;
    gone
}
