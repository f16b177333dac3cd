//! Controllers that a provider brings, such as AWS's tagging of instances or DigitalOcean's firewall.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{CloudError, NodeFacts, ServiceFacts, ServiceRef, Shared};

/// The cluster's Nodes, as facts.
#[async_trait]
pub trait NodeFeed: Send + Sync {
    /// All Nodes of this cloud, as last observed, ordered by name.
    fn snapshot(&self) -> Vec<Shared<NodeFacts>>;

    /// Returns when something may have changed since the last call. Changes are merged.
    async fn changed(&self);
}

/// The cluster's Services, as facts.
#[async_trait]
pub trait ServiceFeed: Send + Sync {
    /// All Services of the cluster, of every type, as last observed, ordered by namespace and name.
    fn snapshot(&self) -> Vec<ServiceFacts>;

    /// Returns when something may have changed since the last call. Changes are merged.
    async fn changed(&self);
}

/// Labels or annotations by key; `None` removes one.
pub type MetadataChanges = BTreeMap<String, Option<String>>;

/// What a background controller may change in the cluster.
///
/// Idempotent: no write if nothing changes. `NotFound` if the object with this UID is gone, or is a Node of another
/// cloud. `Invalid` if Kubernetes does not allow one of the keys or values; the others are written.
#[async_trait]
pub trait MetadataWriter: Send + Sync {
    /// Sets labels of a Node.
    async fn label_node(
        &self,
        node: &NodeFacts,
        labels: &MetadataChanges,
    ) -> Result<(), CloudError>;

    /// Sets annotations of a Node.
    async fn annotate_node(
        &self,
        node: &NodeFacts,
        annotations: &MetadataChanges,
    ) -> Result<(), CloudError>;

    /// Sets annotations of a Service.
    async fn annotate_service(
        &self,
        service: &ServiceRef,
        annotations: &MetadataChanges,
    ) -> Result<(), CloudError>;
}

/// What a background controller is given.
#[derive(Clone)]
pub struct BackgroundContext {
    /// The Nodes.
    pub nodes: Arc<dyn NodeFeed>,
    /// The Services, if it [watches](BackgroundController::watches_services) them; else there are none.
    pub services: Arc<dyn ServiceFeed>,
    /// Labels and annotations.
    pub writer: Arc<dyn MetadataWriter>,
    /// Cancelled when the lease is lost or the process ends: stop writing at once.
    pub stop: CancellationToken,
}

/// What is known of a background controller before its provider is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvidedController {
    /// See [`BackgroundController::name`].
    pub name: &'static str,
    /// See [`BackgroundController::on_by_default`].
    pub on_by_default: bool,
    /// See [`BackgroundController::watches_services`].
    pub watches_services: bool,
}

/// A controller that runs beside the framework's own, on the leader only.
#[async_trait]
pub trait BackgroundController: Send + Sync {
    /// Its name, as in `--controllers`.
    fn name(&self) -> &'static str;

    /// Whether it runs by default.
    fn on_by_default(&self) -> bool {
        false
    }

    /// Whether it needs the Services of the cluster.
    fn watches_services(&self) -> bool {
        false
    }

    /// Runs until `context.stop` is cancelled. Returning earlier is an error that is logged and
    /// followed by a restart with backoff; it never ends the process.
    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError>;
}
