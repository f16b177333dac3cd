//! Controllers of its own that a provider brings along, such as AWS's tagging of machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{CloudError, NodeFacts};

/// The cluster's Nodes, as facts.
#[async_trait]
pub trait NodeFeed: Send + Sync {
    /// All Nodes of this cloud, as the watch last showed them, ordered by name.
    fn snapshot(&self) -> Vec<NodeFacts>;

    /// Returns when something may have changed since the last call. Changes are merged.
    async fn changed(&self);
}

/// The one thing a background controller may change in the cluster.
#[async_trait]
pub trait NodeLabels: Send + Sync {
    /// Sets labels on a Node, or removes those whose value is `None`. Idempotent: no write if they
    /// are so already. `NotFound` if the Node, with this UID, is gone. `Invalid` if Kubernetes does not allow
    /// one of the labels; the others are written.
    async fn set(
        &self,
        node: &NodeFacts,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<(), CloudError>;
}

/// What a background controller is given.
#[derive(Clone)]
pub struct BackgroundContext {
    /// The Nodes.
    pub nodes: Arc<dyn NodeFeed>,
    /// Labels on them.
    pub labels: Arc<dyn NodeLabels>,
    /// Cancelled when the lease is lost or the process ends: stop writing at once.
    pub stop: CancellationToken,
}

/// A controller that runs beside the framework's own, on the leader only.
#[async_trait]
pub trait BackgroundController: Send + Sync {
    /// Its name, as in `--controllers`.
    fn name(&self) -> &'static str;

    /// Whether it runs without being asked for.
    fn on_by_default(&self) -> bool {
        false
    }

    /// Runs until `context.stop` is cancelled. Returning earlier is an error that is logged and
    /// followed by a restart with backoff; it never ends the process.
    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError>;
}
