//! Hetzner: cloud servers, dedicated servers, load balancers and the routes of a private network.
//!
//! Stands in for `hcloud-cloud-controller-manager`: it takes the same environment variables and
//! annotations, and recognises what that made.

mod annotations;
mod client;
mod config;
mod error;
mod fleet;
mod id;
mod instances;
mod load_balancer;
mod metrics;
mod routes;
mod start;
mod tell;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, Capability, CloudError, CloudProvider, Descriptor, Driven, Instances,
    LoadBalancers, Problems, ProviderContext, ProviderFactory, ProviderId, ProviderInput,
    Recognition, Routes, ScopeFingerprint,
};

pub use self::annotations::PREFIX;
pub use self::client::Wiring;
use self::client::{Api, Login, Robot};
pub use self::config::{
    AddressFamily, Algorithm, BalancerDefaults, CLOUD_ENDPOINT, Config, METADATA_ENDPOINT,
    ROBOT_ENDPOINT, RobotConfig,
};
use self::fleet::Fleet;
pub use self::id::{CLOUD_SCHEME, HetznerId, HetznerIdError, ROBOT_SCHEME};
pub use self::instances::PROVIDED_BY;
use self::instances::{HetznerInstances, Rules};
use self::load_balancer::HetznerBalancers;
pub use self::load_balancer::{CLUSTER_UID, SERVICE_UID};
use self::metrics::{ApiMetrics, Serving};
use self::routes::HetznerRoutes;
use self::tell::Teller;
use self::wire::Network;

/// A project of Hetzner Cloud, and perhaps an account of Robot.
pub struct HetznerProvider {
    api: Api,
    network: Option<u64>,
    robot: Login,
    scope: ScopeFingerprint,
    files: Vec<PathBuf>,
    instances: HetznerInstances,
    load_balancers: Option<Driven<HetznerBalancers>>,
    routes: Option<HetznerRoutes>,
    /// Serves until the provider is dropped.
    metrics: Option<Serving>,
}

impl HetznerProvider {
    /// Connects: finds the network, and proves that the token is good.
    pub async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<Self, CloudError> {
        let metrics = config.metrics_address.as_ref().map(|_| ApiMetrics::new());
        let api = Api::new(config, context, &wiring, metrics.as_ref())?;
        let robot = login(config, context, &wiring)?;
        let network = start::find_network(config, &api).await?;
        if let Some(network) = &network {
            start::check_attached(config, network, &wiring).await?;
        }
        api.prove().await?;
        let mut provider = Self::assemble(config, context, api, robot, network.as_ref());
        let served = config.metrics_address.clone().zip(metrics);
        provider.metrics = served.map(|(address, metrics)| Serving::start(address, metrics));
        Ok(provider)
    }

    fn assemble(
        config: &Config,
        context: &ProviderContext,
        api: Api,
        robot: Login,
        network: Option<&Network>,
    ) -> Self {
        let scope = start::fingerprint(config, &api.endpoint(), network);
        let network = network.map(|network| network.id);
        let fleet = Arc::new(Fleet::new(api.clone()));
        let teller = Arc::new(Teller::new(Arc::clone(&context.events)));
        let instances = HetznerInstances {
            api: api.clone(),
            fleet: Arc::clone(&fleet),
            robot: robot.clone(),
            rules: Rules::new(config, network),
            scope: scope.clone(),
            clock: Arc::clone(&context.clock),
            teller: Arc::clone(&teller),
            last_seen: 0.into(),
        };
        let balancers = config.load_balancers.enabled.then(|| {
            Driven::new(HetznerBalancers::new(
                &fleet,
                config,
                network,
                robot.clone(),
                context,
                &teller,
            ))
        });
        let routes = network.filter(|_| config.routes);
        let routes = routes.map(|network| HetznerRoutes {
            api: api.clone(),
            fleet,
            network,
            cluster_cidrs: context.cluster.pod_cidrs.clone(),
            teller,
        });
        Self {
            api,
            network,
            robot,
            scope,
            files: config.files.clone(),
            instances,
            load_balancers: balancers,
            routes,
            metrics: None,
        }
    }
}

fn login(config: &Config, context: &ProviderContext, wiring: &Wiring) -> Result<Login, CloudError> {
    if !config.robot.enabled {
        return Ok(Login::Off);
    }
    if let Some(robot) = Robot::new(config, context, wiring)? {
        return Ok(Login::Known(Arc::new(robot)));
    }
    tracing::info!("no credentials for Robot: dedicated servers are only targets");
    Ok(Login::NoCredentials)
}

#[async_trait]
impl CloudProvider for HetznerProvider {
    fn name(&self) -> &'static str {
        CLOUD_SCHEME
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        match (HetznerId::read(id), &self.robot) {
            (Ok(HetznerId::Robot(_)), Login::Off) => Recognition::OtherAccount {
                why: "a dedicated server, but Robot is not enabled".to_owned(),
            },
            (Ok(_), _) => Recognition::Ours,
            (Err(HetznerIdError::UnknownPrefix(_)), _) => Recognition::Foreign,
            (Err(error), _) => Recognition::Malformed {
                why: error.to_string(),
            },
        }
    }

    /// As the Go CCM, which asks for `--allow-untagged-cloud`.
    fn has_cluster_id(&self) -> bool {
        false
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        match self.network {
            // Only the right project shows it.
            Some(network) => self.api.network(network).await.map(drop)?,
            None => self.api.prove().await?,
        }
        Ok(self.scope.clone())
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(&self.instances)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        let balancers = self.load_balancers.as_ref();
        balancers.map(|balancers| balancers as &dyn LoadBalancers)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.routes.as_ref().map(|routes| routes as &dyn Routes)
    }

    async fn close(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.stop();
        }
    }
}

/// Builds providers of Hetzner.
#[derive(Clone, Default)]
pub struct HetznerFactory {
    wiring: Wiring,
}

impl HetznerFactory {
    /// One whose providers reach the cloud in another way than by real connections.
    pub const fn wired(wiring: Wiring) -> Self {
        Self { wiring }
    }
}

#[async_trait]
impl ProviderFactory for HetznerFactory {
    fn descriptor(&self) -> Descriptor {
        let mut keys = Config::docs();
        keys.extend(annotations::docs());
        Descriptor {
            name: CLOUD_SCHEME,
            summary: "Hetzner Cloud, and dedicated servers of Hetzner Robot.",
            replaces: &["hcloud-cloud-controller-manager"],
            capabilities: vec![
                Capability::Instances,
                Capability::LoadBalancers,
                Capability::Routes,
            ],
            keys,
        }
    }

    fn check(&self, input: &ProviderInput) -> Result<(), Problems> {
        Config::read(input).map(drop)
    }

    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let config = Config::read(&input)?;
        let provider = HetznerProvider::connect(&config, &context, self.wiring.clone()).await?;
        Ok(Arc::new(provider))
    }
}
