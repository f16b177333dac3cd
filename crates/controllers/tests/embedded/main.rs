//! The node and lifecycle controllers in a whole cluster in one thread: the embedded API through a real client and a
//! real watch, kubelets that live, the watch over their health, and a simulated cloud.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails loudly"
)]

mod cluster;
mod events;

use cloudkeel_embedded::{Health, Verb};

use crate::cluster::Cluster;

/// A cluster of three Nodes that are initialised and ready.
async fn initialised() -> Cluster {
    let cluster = Cluster::start(3).await;
    cluster.pass(60).await;
    for index in 0..3 {
        let node = cluster.node(index).await.expect("a node");
        let spec = node.spec.expect("a spec");
        assert_eq!(spec.taints, None, "node {index} is initialised and ready");
        let id = spec.provider_id.expect("a provider ID");
        assert!(id.starts_with("local://"), "{id}");
    }
    cluster
}

#[tokio::test(start_paused = true)]
async fn nodes_come_live_and_go_with_their_machines() {
    let cluster = initialised().await;
    cluster.kubelet(0).set_health(Health::Silent);
    cluster.pass(600).await;
    let silent = cluster
        .node(0)
        .await
        .expect("its machine is there, so it stays");
    let taints = silent.spec.and_then(|spec| spec.taints).unwrap_or_default();
    assert!(
        taints
            .iter()
            .any(|taint| taint.key == "node.kubernetes.io/unreachable")
    );

    cluster.destroy(0);
    cluster.pass(600).await;
    assert!(
        cluster.node(0).await.is_none(),
        "its machine is proven gone"
    );
    assert!(cluster.node(1).await.is_some() && cluster.node(2).await.is_some());
    let deletions: Vec<_> = cluster
        .changes()
        .into_iter()
        .filter(|change| change.resource == "nodes" && change.verb == Verb::Delete)
        .map(|change| (change.by.to_string(), change.name.clone()))
        .collect();
    assert_eq!(
        deletions,
        [("cloudkeel".to_owned(), cluster.name(0).to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn a_settled_cluster_is_left_alone() {
    let cluster = initialised().await;
    let before = cluster.changes().len();
    cluster.pass(1800).await;
    let changes = cluster.changes();
    let ours: Vec<_> = changes
        .iter()
        .skip(before)
        .filter(|change| &*change.by == "cloudkeel")
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
    assert!(changes.len() > before, "the kubelets still beat");
}
