use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{NoEvents, NodeAddress, TokioClock};
use futures::FutureExt as _;
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use tower_service::Service;

use super::super::{NodeController, NodeObserver, NodeParts, NodeSettings};
use super::plan::NodeChanges;
use crate::runtime::{Cache, NodeWriter, Unobserved};
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
    fn taint_removed(&self, _: Duration) {}
    fn synced(&self, _: Duration) {}
}

#[tokio::test(start_paused = true)]
async fn no_more_nodes_get_new_addresses_at_once_than_the_settings_say() {
    for (refreshers, most) in [(1, 1), (3, 3), (usize::MAX, 10)] {
        let server = Slow::default();
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
        let settings = NodeSettings {
            refreshers,
            ..NodeSettings::default()
        };
        let controller = NodeController::new(parts, settings);
        let (node, addresses) = (NodeView::default(), [NodeAddress::hostname("n")]);
        let nothing = NodeChanges::default();
        let writing = (0..10).map(|_| controller.write_refresh(&node, Some(&addresses), &nothing));
        for written in join_all(writing).await {
            written.unwrap();
        }
        assert_eq!(server.most.load(Ordering::Relaxed), most);
    }
}
