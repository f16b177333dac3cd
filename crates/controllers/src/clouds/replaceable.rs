//! A provider that can be replaced while it is in use: credentials rotate, configurations change.
//!
//! It is a provider itself, so that nobody who uses a cloud has to know. Every call goes, whole, to the
//! provider that was the current one when the call began.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use cloudkeel_api::{
    Admission, AdmissionRequest, BackgroundController, Capability, Claim, CloudError,
    CloudProvider, Clusters, Doubt, ErrorKind, Existence, Features, HealthCheckPolicy, Instance,
    Instances, LabelSelector, LoadBalancerSpec, LoadBalancers, LockKey, Match, NodeAddress,
    NodeFacts, Outcome, OwnedBalancer, Plan, Problem, ProviderId, Recognition, Route, RouteChange,
    Routes, ScopeFingerprint, Sighting, Surveyed, Sweep, UnknownAnnotation, VolumePlace, VolumeRef,
    Volumes, Webhook, Wish,
};
use tokio::sync::watch;

/// The provider in use. Clones are the same one.
#[derive(Clone)]
pub struct Replaceable {
    name: String,
    slot: Arc<Slot>,
}

struct Slot {
    current: RwLock<Arc<dyn CloudProvider>>,
    replacements: watch::Sender<u64>,
}

impl Slot {
    fn current(&self) -> Arc<dyn CloudProvider> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }
}

impl Replaceable {
    /// Begins with this provider.
    pub fn new(provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            name: provider.name().to_owned(),
            slot: Arc::new(Slot {
                current: RwLock::new(provider),
                replacements: watch::Sender::new(0),
            }),
        }
    }

    /// The provider in use right now.
    pub fn current(&self) -> Arc<dyn CloudProvider> {
        self.slot.current()
    }

    /// From now on this one. Returns its predecessor, which finishes the calls that it has begun.
    pub fn replace(&self, provider: Arc<dyn CloudProvider>) -> Arc<dyn CloudProvider> {
        let before = {
            let slot = &self.slot.current;
            let mut current = slot.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, provider)
        };
        self.slot.replacements.send_modify(|count| *count += 1);
        before
    }

    /// How often it was replaced.
    pub fn version(&self) -> u64 {
        *self.slot.replacements.borrow()
    }

    /// Changes with every replacement.
    pub fn replacements(&self) -> watch::Receiver<u64> {
        self.slot.replacements.subscribe()
    }
}

/// The new provider cannot do what the old one could.
fn missing(operation: &'static str, capability: Capability) -> CloudError {
    let message = format!("as it is configured now, this cloud has no {capability}");
    CloudError::new(operation, ErrorKind::Unsupported, message)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl CloudProvider for Replaceable {
    fn name(&self) -> &str {
        &self.name
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.current().recognize(id)
    }

    fn has_cluster_id(&self) -> bool {
        self.current().has_cluster_id()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.current().files()
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.current().check().await
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.current().instances().map(|_| self as &dyn Instances)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        let current = self.current();
        current.load_balancers().map(|_| self as &dyn LoadBalancers)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.current().routes().map(|_| self as &dyn Routes)
    }

    fn clusters(&self) -> Option<&dyn Clusters> {
        self.current().clusters().map(|_| self as &dyn Clusters)
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        self.current().volumes().map(|_| self as &dyn Volumes)
    }

    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        let replaceable = |webhook: Arc<dyn Webhook>| -> Arc<dyn Webhook> {
            Arc::new(ReplaceableWebhook {
                name: webhook.name(),
                path: webhook.path(),
                slot: Arc::clone(&self.slot),
            })
        };
        let webhooks = self.current().webhooks();
        webhooks.into_iter().map(replaceable).collect()
    }

    /// Those of the provider in use: whoever runs them starts the new provider's after a replacement.
    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        self.current().background_controllers()
    }

    async fn close(&self) {
        self.current().close().await;
    }

    fn capabilities(&self) -> Vec<Capability> {
        self.current().capabilities()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Instances for Replaceable {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        match self.current().instances() {
            Some(instances) => instances.sweep().await,
            None => Err(missing("sweep", Capability::Instances)),
        }
    }

    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence {
        match self.current().instances() {
            Some(instances) => instances.find(node, sighting).await,
            None => not_found(),
        }
    }

    async fn find_many(&self, nodes: &[NodeFacts], sighting: Option<&Sighting>) -> Vec<Existence> {
        match self.current().instances() {
            Some(instances) => instances.find_many(nodes, sighting).await,
            None => nodes.iter().map(|_| not_found()).collect(),
        }
    }

    fn identify<'a>(&self, node: &NodeFacts, sweep: &'a Sweep) -> Match<'a> {
        let current = self.current();
        let instances = current.instances();
        instances.map_or(Match::None, |instances| instances.identify(node, sweep))
    }

    fn addresses(&self, instance: &Instance, node: &NodeFacts) -> Vec<NodeAddress> {
        match self.current().instances() {
            Some(instances) => instances.addresses(instance, node),
            None => instance.addresses.clone(),
        }
    }
}

fn not_found() -> Existence {
    let error = missing("find machine", Capability::Instances);
    Existence::Unknown(Doubt::NoAnswer(error))
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LoadBalancers for Replaceable {
    fn features(&self) -> Features {
        let current = self.current();
        let balancers = current.load_balancers();
        balancers.map(LoadBalancers::features).unwrap_or_default()
    }

    fn health_checks(&self) -> HealthCheckPolicy {
        let current = self.current();
        let balancers = current.load_balancers();
        balancers.map_or(HealthCheckPolicy::Off, LoadBalancers::health_checks)
    }

    fn lock_key(&self, claim: &Claim) -> LockKey {
        match self.current().load_balancers() {
            Some(balancers) => balancers.lock_key(claim),
            None => LockKey::of_service(claim),
        }
    }

    fn points_at_balancer(&self, claim: &Claim) -> bool {
        match self.current().load_balancers() {
            Some(balancers) => balancers.points_at_balancer(claim),
            None => claim.points_at_balancer(),
        }
    }

    fn unknown_annotations(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Vec<UnknownAnnotation> {
        let current = self.current();
        let balancers = current.load_balancers();
        balancers.map_or_else(Vec::new, |it| it.unknown_annotations(annotations))
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        match self.current().load_balancers() {
            Some(balancers) => balancers.node_selector(annotations),
            None => Ok(None),
        }
    }

    async fn plan(&self, wish: Wish<'_>) -> Result<Plan, CloudError> {
        match self.current().load_balancers() {
            Some(balancers) => balancers.plan(wish).await,
            None => Err(missing("plan load balancer", Capability::LoadBalancers)),
        }
    }

    async fn apply(&self, wish: Wish<'_>) -> Result<Outcome, CloudError> {
        match self.current().load_balancers() {
            Some(balancers) => balancers.apply(wish).await,
            None => Err(missing("apply load balancer", Capability::LoadBalancers)),
        }
    }

    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        match self.current().load_balancers() {
            Some(balancers) => balancers.apply_to_existing(spec).await,
            None => Err(missing("apply load balancer", Capability::LoadBalancers)),
        }
    }

    async fn survey(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Surveyed, CloudError>> {
        if let Some(balancers) = self.current().load_balancers() {
            return balancers.survey(specs).await;
        }
        let missing = |_| Err(missing("survey", Capability::LoadBalancers));
        specs.iter().map(missing).collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedBalancer>, CloudError> {
        match self.current().load_balancers() {
            Some(balancers) => balancers.owned().await,
            None => Err(missing("list load balancers", Capability::LoadBalancers)),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Routes for Replaceable {
    async fn list(&self, nodes: &[NodeFacts]) -> Result<Vec<Route>, CloudError> {
        match self.current().routes() {
            Some(routes) => routes.list(nodes).await,
            None => Err(missing("list routes", Capability::Routes)),
        }
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        if let Some(routes) = self.current().routes() {
            return routes.apply(changes).await;
        }
        let missing = |_| Err(missing("change routes", Capability::Routes));
        changes.iter().map(missing).collect()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Clusters for Replaceable {
    async fn list(&self) -> Result<Vec<String>, CloudError> {
        match self.current().clusters() {
            Some(clusters) => clusters.list().await,
            None => Err(missing("list clusters", Capability::Clusters)),
        }
    }

    async fn control_plane(&self, cluster: &str) -> Result<String, CloudError> {
        match self.current().clusters() {
            Some(clusters) => clusters.control_plane(cluster).await,
            None => Err(missing("find control plane", Capability::Clusters)),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Volumes for Replaceable {
    fn recognize(
        &self,
        name: &str,
        source: &str,
        content: &serde_json::Value,
    ) -> Option<VolumeRef> {
        self.current().volumes()?.recognize(name, source, content)
    }

    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError> {
        match self.current().volumes() {
            Some(volumes) => volumes.place(volume).await,
            None => Err(missing("find volume", Capability::Volumes)),
        }
    }
}

/// A webhook of the provider in use, by name: the port and the path stay open across replacements.
struct ReplaceableWebhook {
    name: &'static str,
    path: &'static str,
    slot: Arc<Slot>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Webhook for ReplaceableWebhook {
    fn name(&self) -> &'static str {
        self.name
    }

    fn path(&self) -> &'static str {
        self.path
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        let webhooks = self.slot.current().webhooks();
        match webhooks.iter().find(|webhook| webhook.name() == self.name) {
            Some(webhook) => webhook.review(request).await,
            None => Err(missing("review", Capability::Webhooks)),
        }
    }
}

#[cfg(test)]
mod tests;
