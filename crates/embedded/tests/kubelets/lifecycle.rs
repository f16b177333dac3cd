//! The life of a Node, on a clock that the test turns.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Clock, TokioClock};
use cloudkeel_embedded::{EmbeddedApi, Health, Kubelet, KubeletConfig, NodeMonitor};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::DeleteParams;
use kube::{Api, Client};

const EPOCH: &str = "2026-01-01T00:00:00Z";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

struct Cluster {
    client: Client,
    clock: Arc<TokioClock>,
    api: EmbeddedApi,
    _monitor: NodeMonitor,
}

impl Cluster {
    fn new() -> Self {
        let epoch = EPOCH.parse().expect("a moment");
        let clock = Arc::new(TokioClock::starting_at(epoch));
        let shared: Arc<dyn Clock> = Arc::<TokioClock>::clone(&clock);
        let api = EmbeddedApi::builder()
            .clock(Arc::clone(&shared))
            .keep_journal()
            .build();
        let monitor = NodeMonitor::start(&api.client("kube-controller-manager"), shared);
        let client = api.client("test");
        Self {
            client,
            clock,
            api,
            _monitor: monitor,
        }
    }

    fn kubelet(&self, config: KubeletConfig) -> Kubelet {
        self.kubelet_on(Arc::<TokioClock>::clone(&self.clock), config)
    }

    fn kubelet_on(&self, clock: Arc<TokioClock>, config: KubeletConfig) -> Kubelet {
        Kubelet::start(&self.api.client("kubelet"), clock, config)
    }

    async fn node(&self) -> Node {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.get("n1").await.expect("the node")
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

fn config() -> KubeletConfig {
    KubeletConfig::new("n1", "127.1.0.1".parse().expect("an address"))
}

fn condition(node: &Node) -> NodeCondition {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    ready.expect("the condition Ready").clone()
}

fn ready(node: &Node) -> String {
    condition(node).status
}

/// When the condition Ready last changed, in seconds since the beginning.
fn turned(node: &Node) -> i64 {
    let epoch: Timestamp = EPOCH.parse().expect("a moment");
    let turned = condition(node).last_transition_time.expect("a moment").0;
    turned.duration_since(epoch).as_secs()
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut shown: Vec<_> = taints
        .into_iter()
        .flatten()
        .map(|taint| {
            format!(
                "{}:{}",
                taint.key.rsplit('/').next().unwrap_or_default(),
                taint.effect
            )
        })
        .collect();
    shown.sort();
    shown
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_registers_a_node_that_waits_for_its_cloud() {
    let cluster = Cluster::new();
    let kubelet = cluster.kubelet(config().label("zone", "a"));
    cluster.pass(1).await;
    let node = cluster.node().await;
    let spec_taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .expect("taints");
    assert!(spec_taints.iter().any(|taint| taint.key == UNINITIALIZED));
    assert_eq!(ready(&node), "True");
    let annotations = node.metadata.annotations.as_ref().expect("annotations");
    let provided = annotations.get("alpha.kubernetes.io/provided-node-ip");
    assert_eq!(provided.map(String::as_str), Some("127.1.0.1"));
    assert_eq!(
        node.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("zone"))
            .map(String::as_str),
        Some("a")
    );

    cluster.pass(60).await;
    assert_eq!(
        taints(&cluster.node().await),
        ["uninitialized:NoSchedule"],
        "it was seen ready"
    );
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let lease = leases
        .get("n1")
        .await
        .expect("a lease")
        .spec
        .expect("a spec");
    let age = cluster
        .clock
        .now()
        .duration_since(lease.renew_time.expect("a renewal").0);
    assert!(age.as_secs() <= 10, "{age:?}");
    kubelet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_kubelet_is_noticed_and_may_come_back() {
    let cluster = Cluster::new();
    let kubelet = cluster.kubelet(config().without_cloud());
    cluster.pass(10).await;
    assert_eq!(taints(&cluster.node().await), Vec::<String>::new());

    kubelet.set_health(Health::Silent);
    cluster.pass(40).await;
    assert_eq!(
        ready(&cluster.node().await),
        "True",
        "nothing has noticed it yet"
    );
    cluster.pass(25).await;
    let node = cluster.node().await;
    assert_eq!(ready(&node), "Unknown");
    assert_eq!(
        taints(&node),
        ["unreachable:NoExecute", "unreachable:NoSchedule"]
    );

    let noticed = turned(&node);
    assert!((50..75).contains(&noticed), "after {noticed} s");

    kubelet.set_health(Health::Ready);
    cluster.pass(10).await;
    let node = cluster.node().await;
    assert_eq!((ready(&node).as_str(), taints(&node)), ("True", vec![]));
    assert_eq!(turned(&node), 75, "it is ready since it came back");

    kubelet.set_health(Health::Unwell);
    cluster.pass(10).await;
    let node = cluster.node().await;
    assert_eq!(ready(&node), "False");
    assert_eq!(
        taints(&node),
        ["not-ready:NoExecute", "not-ready:NoSchedule"]
    );
    cluster.pass(120).await;
    assert_eq!(ready(&cluster.node().await), "False", "it still beats");
    kubelet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_comes_back_elsewhere_and_registers_what_was_deleted() {
    let cluster = Cluster::new();
    let kubelet = cluster.kubelet(config().without_cloud());
    cluster.pass(5).await;
    let first = cluster.node().await.metadata.uid;
    kubelet.move_to("127.1.0.9".parse().expect("an address"));
    cluster.pass(1).await;
    let addresses = cluster
        .node()
        .await
        .status
        .and_then(|status| status.addresses);
    let moved = addresses
        .into_iter()
        .flatten()
        .any(|address| address.address == "127.1.0.9");
    assert!(moved);

    kubelet.set_health(Health::Silent);
    cluster.pass(1).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes
        .delete("n1", &DeleteParams::default())
        .await
        .expect("a deletion");
    cluster.pass(60).await;
    assert!(
        nodes.get_opt("n1").await.expect("an answer").is_none(),
        "the dead do not register"
    );
    kubelet.set_health(Health::Ready);
    cluster.pass(5).await;
    assert_ne!(cluster.node().await.metadata.uid, first);
    kubelet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_was_stopped_writes_nothing() {
    let cluster = Cluster::new();
    let kubelet = cluster.kubelet(config());
    cluster.pass(60).await;
    kubelet.stop().await;
    let by_kubelet = || {
        let journal = cluster.api.journal();
        journal
            .iter()
            .filter(|commit| &*commit.by == "kubelet")
            .count()
    };
    let before = by_kubelet();
    assert!(before > 10, "{before} heartbeats in a minute");
    cluster.pass(600).await;
    assert_eq!(by_kubelet(), before);
}

#[tokio::test(start_paused = true)]
async fn a_silence_that_was_not_noticed_is_no_change() {
    let cluster = Cluster::new();
    let kubelet = cluster.kubelet(config().without_cloud());
    cluster.pass(10).await;
    kubelet.set_health(Health::Silent);
    cluster.pass(20).await;
    kubelet.set_health(Health::Ready);
    cluster.pass(10).await;
    assert_eq!(turned(&cluster.node().await), 0);
    kubelet.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_whose_clock_is_ahead_is_not_silent() {
    let cluster = Cluster::new();
    let epoch: Timestamp = EPOCH.parse().expect("a moment");
    let ahead = TokioClock::starting_at(epoch + Duration::from_mins(10));
    let kubelet = cluster.kubelet_on(Arc::new(ahead), config());
    cluster.pass(120).await;
    assert_eq!(ready(&cluster.node().await), "True");
    kubelet.stop().await;
}
