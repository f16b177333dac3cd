use std::sync::atomic::{AtomicUsize, Ordering};

use cloudkeel_api::{
    Clock, CloudError, CloudProvider, Event, EventSink, Existence, InstanceList, Instances,
    KnownInstance, NodeFacts, SystemClock,
};
use cloudkeel_embedded::EmbeddedApi;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher;
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::runtime::{Cache, NodeWriter, Unobserved};
use crate::view::SlimNode;

/// A cloud that does not answer before it may.
#[derive(Default)]
struct Slow {
    asked: AtomicUsize,
    may_answer: Notify,
}

impl CloudProvider for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }
    fn recognize(&self, _: &cloudkeel_api::ProviderId) -> cloudkeel_api::Recognition {
        cloudkeel_api::Recognition::Ours
    }
    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait]
impl Instances for Slow {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        unreachable!("a single suspect is looked up")
    }
    async fn find(&self, node: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.may_answer.notified().await;
        let id = node.provider_id.clone().unwrap();
        Existence::present(cloudkeel_api::Instance::new(id, "n"))
    }
}

/// Ignores everything.
struct Ignored;

impl EventSink for Ignored {
    fn emit(&self, _: Event) {}
}

impl LifecycleObserver for Ignored {
    fn instance_checked(&self, _: &'static str) {}
    fn node_deleted(&self, _: &str) {}
    fn deletions_stopped(&self, _: &str, _: bool) {}
}

fn suspect() -> SlimNode {
    let node = json!({
        "metadata": {"name": "n", "uid": "u"},
        "spec": {"providerID": "slow://1"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    });
    serde_json::from_value::<Node>(node).unwrap().into()
}

async fn follow(controller: &Arc<LifecycleController>, event: watcher::Event<SlimNode>) {
    let events = futures::stream::iter([Ok(event)]);
    let stop = CancellationToken::new();
    let nodes = &controller.parts.nodes;
    nodes.follow(events, &[controller.listener()], &stop).await;
}

#[tokio::test]
async fn a_node_that_went_while_the_cloud_was_asked_is_not_remembered() {
    let cloud = Arc::new(Slow::default());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let provider: Arc<dyn CloudProvider> = Arc::<Slow>::clone(&cloud);
    let client = EmbeddedApi::builder().build().client("cloudkeel");
    let heartbeats = LeaseHeartbeats::new(client.clone(), client.clone());
    let parts = LifecycleParts {
        nodes: Cache::new(),
        clouds: vec![Cloud::new("slow", provider, None, Arc::clone(&clock))],
        writer: NodeWriter::new(client),
        events: Arc::new(Ignored),
        clock,
        observer: Arc::new(Ignored),
        queue_observer: Arc::new(Unobserved),
    };
    let controller = LifecycleController::new(parts, heartbeats, LifecycleSettings::default());
    for (case, goes) in [("it stays", false), ("it goes", true)] {
        follow(&controller, watcher::Event::Apply(suspect())).await;
        let mut reconciling = Box::pin(controller.reconcile("n".to_owned()));
        assert!((&mut reconciling).now_or_never().is_none(), "{case}");
        if goes {
            follow(&controller, watcher::Event::Delete(suspect())).await;
        }
        cloud.may_answer.notify_one();
        reconciling.await;
        assert_eq!(controller.records.is_empty(), goes, "{case}");
    }
    assert_eq!(cloud.asked.load(Ordering::SeqCst), 2);
}
