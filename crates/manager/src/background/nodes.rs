//! The Nodes of one cloud, as a provider's controller sees them.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{NodeFacts, NodeFeed, Shared};
use cloudkeel_controllers::clouds::{Cloud, owner_of};
use cloudkeel_controllers::runtime::{Cache, Listener};
use cloudkeel_controllers::view::NodeView;
use tokio::sync::Notify;

/// The Nodes that are a cloud's own beyond doubt.
pub(super) struct CloudNodes {
    cloud: Arc<Cloud>,
    clouds: Vec<Arc<Cloud>>,
    nodes: Arc<Cache<NodeView>>,
    news: Arc<Notify>,
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
            news: Arc::default(),
        }
    }

    /// What the watch of Nodes has to tell.
    pub(super) fn listener(&self) -> Listener<NodeView> {
        let news = Arc::clone(&self.news);
        Box::new(move |_change| news.notify_one())
    }

    /// The Node as last seen, if it is this very one and the cloud's own.
    pub(super) fn own(&self, node: &NodeFacts) -> Option<Arc<NodeView>> {
        let seen = self.nodes.get(&node.name)?;
        (seen.facts.uid == node.uid && self.is_own(&seen)).then_some(seen)
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
        self.news.notified().await;
    }
}
