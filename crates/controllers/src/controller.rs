//! The trait through which the manager runs a controller.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{Clock, EventSink};
use tokio_util::sync::CancellationToken;

use crate::ControllerName;
use crate::clouds::{Cloud, ScopeGuard};
use crate::report::ControllerReport;
use crate::runtime::{Cache, NodeWriter, QueueObserver};
use crate::view::NodeView;

/// A controller. It runs on the leader only, and its clients stop writing with the lease.
#[async_trait]
pub trait Controller: Send + Sync {
    /// Which one.
    fn name(&self) -> ControllerName;

    /// Works until `stop` is cancelled, then returns soon. It never gives up by itself: what
    /// fails is reported and retried.
    async fn run(&self, stop: CancellationToken);

    /// Whether it has worked off all that it has seen: nothing is queued, in work, or about to be. What waits for a
    /// retry, for another client or for its time does not count.
    fn is_idle(&self) -> bool;

    /// Its own state, and what it manages, without asking a cloud.
    fn report(&self) -> ControllerReport;
}

/// What a controller of Nodes is made of.
pub struct ControllerParts<O: ?Sized> {
    /// The Nodes.
    pub nodes: Arc<Cache<NodeView>>,
    /// The clouds.
    pub clouds: Vec<Arc<Cloud>>,
    /// Writes Nodes.
    pub writer: NodeWriter,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Observes what happens, for metrics.
    pub observer: Arc<O>,
    /// Observes the queue, for metrics.
    pub queue_observer: Arc<dyn QueueObserver>,
}

impl<O: ?Sized> ControllerParts<O> {
    /// Compares what the clouds show with the Nodes.
    pub(crate) fn guard(&self) -> ScopeGuard<'_> {
        ScopeGuard::new(&self.nodes, &self.clouds)
    }
}
