use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{NoEvents, NodeAddress, TokioClock};
use futures::future::join_all;
use futures::{FutureExt as _, StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher::Event;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::super::{NodeController, NodeObserver, NodeParts, NodeSettings};
use super::plan::NodePlan;
use crate::runtime::{Cache, FailureMessage, NodeWriter, Unobserved, Verdict};
use crate::view::NodeView;

/// An API server that takes a second for a write, and knows how many there were at once.
#[derive(Clone, Default)]
struct Slow {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for Slow {
    type Response = Response<Full<Bytes>>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let this = self.clone();
        async move {
            let now = this.now.fetch_add(1, Ordering::Relaxed) + 1;
            this.most.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            this.now.fetch_sub(1, Ordering::Relaxed);
            Ok(Response::new(
                r#"{"metadata": {"resourceVersion": "8"}}"#.into(),
            ))
        }
        .boxed()
    }
}

struct Unheard;

impl NodeObserver for Unheard {
    fn initialized(&self, _: Duration) {}
}

fn controller(server: &Slow, settings: NodeSettings) -> Arc<NodeController> {
    let parts = NodeParts {
        nodes: Cache::new(),
        clouds: Vec::new(),
        writer: NodeWriter::new(Client::new(server.clone(), "default")),
        events: Arc::new(NoEvents),
        clock: Arc::new(TokioClock::starting_at(
            "2026-01-01T00:00:00Z".parse().unwrap(),
        )),
        observer: Arc::new(Unheard),
        queue_observer: Arc::new(Unobserved),
    };
    NodeController::new(parts, settings)
}

fn new_address() -> NodePlan {
    NodePlan {
        addresses: Some(vec![NodeAddress::hostname("n")]),
        ..NodePlan::default()
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_nodes_get_new_addresses_at_once_than_the_settings_say() {
    for (refreshers, most) in [(1, 1), (3, 3), (usize::MAX, 10)] {
        let server = Slow::default();
        let settings = NodeSettings {
            refreshers,
            ..NodeSettings::default()
        };
        let controller = controller(&server, settings);
        let (node, plan) = (NodeView::default(), new_address());
        let writing = (0..10).map(|_| controller.write_refresh(&node, &plan));
        for written in join_all(writing).await {
            written.unwrap();
        }
        assert_eq!(server.most.load(Ordering::Relaxed), most);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_of_a_node_that_went_while_it_was_written() {
    let controller = controller(&Slow::default(), NodeSettings::default());
    let mut node = Node::default();
    node.metadata.name = Some("n".to_owned());
    node.metadata.uid = Some("u".to_owned());
    let came = stream::iter([
        Event::Init,
        Event::InitApply(node.clone().into()),
        Event::InitDone,
    ]);
    let went = stream::once(async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        Event::Delete(node.clone().into())
    });
    let (listeners, never) = ([controller.listener()], CancellationToken::new());
    let watching = controller
        .parts
        .nodes
        .follow(came.chain(went).map(Ok), &listeners, &never);
    let writing = async {
        controller.parts.nodes.synced().await;
        let node = controller.parts.nodes.get("n").unwrap();
        let written = controller.write_refresh(&node, &new_address()).await;
        written.unwrap();
        controller.wait(
            &node,
            &FailureMessage::from_text("no machine"),
            Verdict::Failed,
        );
    };
    futures::join!(watching, writing);
    assert!(controller.parts.nodes.is_empty());
    assert!(controller.records.is_empty());
}
