//! Stands in for the provider of a cloud that could not be built yet. It recognizes the cloud's Nodes, has every
//! capability that the cloud may have, and fails every call: so controllers do what they do while a cloud is down.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Admission, AdmissionRequest, BackgroundContext, BackgroundController, BalancerProfile,
    BalancerRef, Capability, CloudError, CloudProvider, DesiredState, Doubt, ErrorKind, Existence,
    Features, InstanceList, Instances, KnownInstance, LoadBalancerSpec, LoadBalancers, NodeFacts,
    Observation, Outcome, OwnedResource, Plan, ProvidedController, ProvidedWebhook,
    ProviderFactory, ProviderId, Recognition, Route, RouteChange, Routes, ScopeFingerprint, Shared,
    UnprovenResource, Webhook,
};
use cloudkeel_controllers::clouds::Availability;

/// The stand-in.
pub(crate) struct UnavailableProvider {
    factory: Arc<dyn ProviderFactory>,
    name: &'static str,
    capabilities: Vec<Capability>,
    calls: Calls,
}

/// What every call ends with.
#[derive(Clone)]
struct Calls(Arc<Availability>);

impl Calls {
    fn error(&self) -> CloudError {
        let unavailable = self.0.check().err();
        // The provider may have been replaced after the caller took this one.
        unavailable.unwrap_or_else(|| {
            CloudError::new(
                "connect",
                ErrorKind::Unavailable,
                "the cloud has just become available",
            )
        })
    }
}

impl UnavailableProvider {
    /// Stands in for a provider of this factory.
    pub(crate) fn new(factory: Arc<dyn ProviderFactory>, availability: Arc<Availability>) -> Self {
        let descriptor = factory.descriptor();
        Self {
            factory,
            name: descriptor.name,
            capabilities: descriptor.capabilities,
            calls: Calls(availability),
        }
    }

    fn has(&self, capability: Capability) -> Option<&Self> {
        self.capabilities.contains(&capability).then_some(self)
    }
}

#[async_trait]
impl CloudProvider for UnavailableProvider {
    fn name(&self) -> &str {
        self.name
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.factory.recognize(id)
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        Err(self.calls.error())
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.has(Capability::Instances).map(|it| it as _)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.has(Capability::LoadBalancers).map(|it| it as _)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.has(Capability::Routes).map(|it| it as _)
    }

    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        let webhooks = self.factory.webhooks().iter();
        let failing = webhooks.map(|provided| FailingWebhook {
            provided: *provided,
            calls: self.calls.clone(),
        });
        failing.map(|it| Arc::new(it) as _).collect()
    }

    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        let controllers = self.factory.controllers().iter();
        let waiting = controllers.map(|provided| Arc::new(WaitingController(*provided)) as _);
        waiting.collect()
    }
}

#[async_trait]
impl Instances for UnavailableProvider {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        Err(self.calls.error())
    }

    async fn find(&self, _: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
        Existence::Unknown(Doubt::NoAnswer(self.calls.error()))
    }
}

#[async_trait]
impl LoadBalancers for UnavailableProvider {
    fn profile(&self, _: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }

    async fn plan(&self, _: DesiredState<'_>) -> Result<Plan, CloudError> {
        Err(self.calls.error())
    }

    async fn apply(&self, _: DesiredState<'_>) -> Result<Outcome, CloudError> {
        Err(self.calls.error())
    }

    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        specs.iter().map(|_| Err(self.calls.error())).collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        Err(self.calls.error())
    }

    async fn unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        Err(self.calls.error())
    }
}

#[async_trait]
impl Routes for UnavailableProvider {
    async fn list(&self, _: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        Err(self.calls.error())
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        changes.iter().map(|_| Err(self.calls.error())).collect()
    }
}

/// A webhook that fails until the provider is there; then the manager asks the provider's own.
struct FailingWebhook {
    provided: ProvidedWebhook,
    calls: Calls,
}

#[async_trait]
impl Webhook for FailingWebhook {
    fn name(&self) -> &'static str {
        self.provided.name
    }

    fn path(&self) -> &'static str {
        self.provided.path
    }

    async fn review(&self, _: &AdmissionRequest) -> Result<Admission, CloudError> {
        Err(self.calls.error())
    }
}

/// A controller that waits until the provider is there; then the manager runs the provider's own.
struct WaitingController(ProvidedController);

#[async_trait]
impl BackgroundController for WaitingController {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn on_by_default(&self) -> bool {
        self.0.on_by_default
    }

    fn watches_services(&self) -> bool {
        self.0.watches_services
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        context.stop.cancelled().await;
        Ok(())
    }
}
