//! The Nodes of one cloud, as a provider controller sees them.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{NodeFacts, NodeFeed, Shared, names};
use cloudkeel_controllers::clouds::{Cloud, owner_of};
use cloudkeel_controllers::runtime::{Cache, Listener};
use cloudkeel_controllers::view::NodeView;
use tokio::sync::Notify;

/// The Nodes that certainly belong to a cloud.
pub(super) struct CloudNodes {
    cloud: Arc<Cloud>,
    clouds: Vec<Arc<Cloud>>,
    nodes: Arc<Cache<NodeView>>,
    changed_notify: Arc<Notify>,
}

impl CloudNodes {
    pub(super) fn new(
        cloud: &Arc<Cloud>,
        clouds: &[Arc<Cloud>],
        nodes: &Arc<Cache<NodeView>>,
    ) -> Self {
        Self {
            cloud: Arc::clone(cloud),
            clouds: clouds.to_vec(),
            nodes: Arc::clone(nodes),
            changed_notify: Arc::default(),
        }
    }

    /// Receives the events of the Node watch.
    pub(super) fn listener(&self) -> Listener<NodeView> {
        let changed_notify = Arc::clone(&self.changed_notify);
        Box::new(move |_change| changed_notify.notify_one())
    }

    /// The Node as last observed, if it has this UID, belongs to the cloud and is not paused.
    pub(super) fn writable(&self, node: &NodeFacts) -> Option<Arc<NodeView>> {
        let seen = self.nodes.get(&node.name)?;
        let is_paused = names::is_paused(&seen.facts.annotations);
        (seen.facts.uid == node.uid && self.is_own(&seen) && !is_paused).then_some(seen)
    }

    fn is_own(&self, node: &NodeView) -> bool {
        owner_of(&node.facts, &self.clouds).is(&self.cloud)
    }
}

#[async_trait]
impl NodeFeed for CloudNodes {
    fn snapshot(&self) -> Vec<Shared<NodeFacts>> {
        let nodes = self.nodes.all();
        let own = nodes.iter().filter(|node| self.is_own(node));
        own.map(|node| node.facts.clone()).collect()
    }

    async fn changed(&self) {
        self.changed_notify.notified().await;
    }
}
