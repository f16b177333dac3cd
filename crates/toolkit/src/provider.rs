//! Assembles a provider from a name, a session and capabilities, and a factory from a cloud.

use std::fmt::Write as _;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundController, BuildError, CloudError, CloudProvider, Clusters, Descriptor, Driven,
    Instances, LoadBalancerDriver, LoadBalancers, Problems, ProvidedController, ProvidedWebhook,
    ProviderContext, ProviderFactory, ProviderId, ProviderInput, Recognition, Routes,
    ScopeFingerprint, Volumes, Webhook,
};
use http::StatusCode;
use ring::digest::{SHA256, digest};

use crate::background::{FollowingController, ServiceFollower};
use crate::webhook::{BalancerReview, ReviewWebhook};
use crate::{ApiMetrics, MetricsServer, Pages, Wiring};

/// A kind of cloud: how its settings are read, and how a provider is connected with them.
#[async_trait]
pub trait Cloud: Sized + Send + Sync + 'static {
    /// Its settings.
    type Config: Send + Sync;
    /// See [`ProviderFactory::controllers`].
    const CONTROLLERS: &'static [ProvidedController] = &[];
    /// See [`ProviderFactory::webhooks`].
    const WEBHOOKS: &'static [ProvidedWebhook] = &[];
    /// See [`ProviderFactory::preset_flags`].
    const PRESET_FLAGS: &'static [&'static str] = &[];

    /// What is known before anything is built.
    fn descriptor() -> Descriptor;

    /// Reads the settings and reports everything that is wrong with them.
    fn read(input: &ProviderInput) -> Result<Self::Config, Problems>;

    /// Connects, and proves that the credential is good.
    async fn connect(
        config: &Self::Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<Provider<Self>, CloudError>;

    /// See [`ProviderFactory::allocates_pod_cidrs`].
    fn allocates_pod_cidrs() -> bool {
        false
    }

    /// See [`ProviderFactory::recognize`].
    fn recognize(id: &ProviderId) -> Recognition {
        if id.scheme() == Some(Self::descriptor().name) {
            Recognition::Ours
        } else {
            Recognition::Foreign
        }
    }

    /// See [`ProviderFactory::files`] and [`CloudProvider::files`].
    fn files(_config: &Self::Config) -> Vec<PathBuf> {
        Vec::new()
    }

    /// See [`ProviderFactory::reference`].
    fn reference() -> Option<String> {
        None
    }
}

/// A credential in use.
#[async_trait]
pub trait Session: Send + Sync + 'static {
    /// See [`CloudProvider::check`].
    async fn check(&self) -> Result<ScopeFingerprint, CloudError>;

    /// Logs out, where the cloud keeps sessions.
    async fn close(&self) {}
}

#[async_trait]
impl<S: Session> Session for Arc<S> {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.as_ref().check().await
    }

    async fn close(&self) {
        self.as_ref().close().await;
    }
}

/// The health of a credential.
struct HealthPage(Arc<dyn Session>);

#[async_trait]
impl Pages for HealthPage {
    async fn get(&self, path: &str) -> Option<(StatusCode, String)> {
        if path != "/healthz" {
            return None;
        }
        Some(match self.0.check().await {
            Ok(_) => (StatusCode::OK, "ok\n".to_owned()),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        })
    }
}

type Recognize = dyn Fn(&ProviderId) -> Recognition + Send + Sync;

/// A provider that was put together from its capabilities. Those that it was not given it does not have.
pub struct Provider<C> {
    name: &'static str,
    session: Arc<dyn Session>,
    recognize: Option<Box<Recognize>>,
    has_cluster_id: bool,
    files: Vec<PathBuf>,
    instances: Option<Box<dyn Instances>>,
    load_balancers: Option<Box<dyn LoadBalancers>>,
    routes: Option<Box<dyn Routes>>,
    clusters: Option<Box<dyn Clusters>>,
    volumes: Option<Box<dyn Volumes>>,
    webhooks: Vec<Arc<dyn Webhook>>,
    background: Vec<Arc<dyn BackgroundController>>,
    servers: Vec<MetricsServer>,
    cloud: PhantomData<fn() -> C>,
}

impl<C: Cloud> Provider<C> {
    /// See [`Cloud::connect`].
    pub async fn connect(
        config: &C::Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<Self, CloudError> {
        let connected = C::connect(config, context, wiring).await?;
        Ok(Self {
            files: C::files(config),
            ..connected
        })
    }

    /// A provider that has nothing but its name.
    pub fn new(name: &'static str, session: impl Session) -> Self {
        Self {
            name,
            session: Arc::new(session),
            recognize: None,
            has_cluster_id: true,
            files: Vec::new(),
            instances: None,
            load_balancers: None,
            routes: None,
            clusters: None,
            volumes: None,
            webhooks: Vec::new(),
            background: Vec::new(),
            servers: Vec::new(),
            cloud: PhantomData,
        }
    }

    /// See [`CloudProvider::recognize`]. Without it, [`Cloud::recognize`] decides.
    #[must_use]
    pub fn with_recognition(
        mut self,
        recognize: impl Fn(&ProviderId) -> Recognition + Send + Sync + 'static,
    ) -> Self {
        self.recognize = Some(Box::new(recognize));
        self
    }

    /// See [`CloudProvider::has_cluster_id`].
    #[must_use]
    pub const fn with_cluster_id(mut self, has: bool) -> Self {
        self.has_cluster_id = has;
        self
    }

    /// Instances.
    #[must_use]
    pub fn with_instances(mut self, instances: impl Instances + 'static) -> Self {
        self.instances = Some(Box::new(instances));
        self
    }

    /// Load balancers.
    #[must_use]
    pub fn with_load_balancers(
        mut self,
        driver: Option<impl LoadBalancerDriver + 'static>,
    ) -> Self {
        self.load_balancers = driver.map(|driver| Box::new(Driven::new(driver)) as _);
        self
    }

    /// Routes.
    #[must_use]
    pub fn with_routes(mut self, routes: Option<impl Routes + 'static>) -> Self {
        self.routes = routes.map(|routes| Box::new(routes) as _);
        self
    }

    /// Managed clusters.
    #[must_use]
    pub fn with_clusters(mut self, clusters: impl Clusters + 'static) -> Self {
        self.clusters = Some(Box::new(clusters));
        self
    }

    /// Disks.
    #[must_use]
    pub fn with_volumes(mut self, volumes: impl Volumes + 'static) -> Self {
        self.volumes = Some(Box::new(volumes));
        self
    }

    /// An admission webhook.
    #[must_use]
    pub fn with_webhook(mut self, webhook: Arc<dyn Webhook>) -> Self {
        self.webhooks.push(webhook);
        self
    }

    /// A controller of its own.
    #[must_use]
    pub fn with_background_controller(mut self, controller: Arc<dyn BackgroundController>) -> Self {
        self.background.push(controller);
        self
    }

    /// A controller of its own that follows the Services of the cluster.
    #[must_use]
    pub fn with_service_follower(self, follower: Option<impl ServiceFollower + 'static>) -> Self {
        match follower {
            Some(follower) => {
                self.with_background_controller(Arc::new(FollowingController(follower)))
            }
            None => self,
        }
    }

    /// An admission webhook that asks the cloud whether it would take the load balancer of a Service.
    #[must_use]
    pub fn with_balancer_review(self, review: impl BalancerReview + 'static) -> Self {
        self.with_webhook(Arc::new(ReviewWebhook(review)))
    }

    /// Serves metrics at their address, if there are any, until the provider ends.
    #[must_use]
    pub fn with_metrics(self, metrics: Option<ApiMetrics>) -> Self {
        match metrics {
            Some(metrics) => self.with_pages(metrics.address().to_owned(), metrics),
            None => self,
        }
    }

    /// Serves `/healthz` at this address, if there is one, which says whether the credential is good.
    #[must_use]
    pub fn with_health_page(self, address: Option<&String>) -> Self {
        let session = Arc::clone(&self.session);
        match address {
            Some(address) => self.with_pages(address.clone(), HealthPage(session)),
            None => self,
        }
    }

    fn with_pages(mut self, address: String, pages: impl Pages) -> Self {
        self.servers.push(MetricsServer::start(address, pages));
        self
    }
}

#[async_trait]
impl<C: Cloud> CloudProvider for Provider<C> {
    fn name(&self) -> &str {
        self.name
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        match &self.recognize {
            Some(recognize) => recognize(id),
            None => C::recognize(id),
        }
    }

    fn has_cluster_id(&self) -> bool {
        self.has_cluster_id
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.session.check().await
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.instances.as_deref()
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.load_balancers.as_deref()
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.routes.as_deref()
    }

    fn clusters(&self) -> Option<&dyn Clusters> {
        self.clusters.as_deref()
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        self.volumes.as_deref()
    }

    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        self.webhooks.clone()
    }

    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        self.background.clone()
    }

    async fn close(&self) {
        self.servers.iter().for_each(MetricsServer::stop);
        self.session.close().await;
    }
}

/// Builds providers of a cloud.
pub struct CloudFactory<C> {
    wiring: Wiring,
    cloud: PhantomData<fn() -> C>,
}

impl<C> CloudFactory<C> {
    /// One whose providers reach the cloud in another way than by real connections.
    pub const fn wired(wiring: Wiring) -> Self {
        Self {
            wiring,
            cloud: PhantomData,
        }
    }
}

impl<C> Default for CloudFactory<C> {
    fn default() -> Self {
        Self::wired(Wiring::default())
    }
}

impl<C> Clone for CloudFactory<C> {
    fn clone(&self) -> Self {
        Self::wired(self.wiring.clone())
    }
}

#[async_trait]
impl<C: Cloud> ProviderFactory for CloudFactory<C> {
    fn descriptor(&self) -> Descriptor {
        C::descriptor()
    }

    fn allocates_pod_cidrs(&self) -> bool {
        C::allocates_pod_cidrs()
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        C::recognize(id)
    }

    fn files(&self, input: &ProviderInput) -> Vec<PathBuf> {
        C::read(input).map_or_else(|_| Vec::new(), |config| C::files(&config))
    }

    fn controllers(&self) -> &'static [ProvidedController] {
        C::CONTROLLERS
    }

    fn webhooks(&self) -> &'static [ProvidedWebhook] {
        C::WEBHOOKS
    }

    fn preset_flags(&self) -> &'static [&'static str] {
        C::PRESET_FLAGS
    }

    fn reference(&self) -> Option<String> {
        C::reference()
    }

    fn check(&self, input: &ProviderInput) -> Result<(), Problems> {
        C::read(input).map(drop)
    }

    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let config = C::read(&input)?;
        let provider = Provider::<C>::connect(&config, &context, self.wiring.clone()).await?;
        Ok(Arc::new(provider))
    }
}

/// Bytes as digits, as digests are written.
///
/// ```
/// assert_eq!(cloudkeel_toolkit::hex(&[0, 171]), "00ab");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Enough of a digest to tell two texts apart, and nothing to guess them from: for fingerprints of credentials.
pub fn short_digest(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let start = digest.as_ref().first_chunk().copied().unwrap_or_default();
    format!("{:08x}", u32::from_be_bytes(start))
}

#[cfg(test)]
mod tests;
