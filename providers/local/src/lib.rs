//! The local cloud: machines, balancers and routes behind a small REST API.
//!
//! It is the cloud of laptops, workshops and tests. Its one server, simulated or with real proxies,
//! uses the same [wire types](wire).

mod annotations;
mod client;
mod clusters;
mod config;
mod error;
mod id;
mod instances;
mod launcher;
mod load_balancer;
mod routes;
mod volumes;
pub mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, Capability, CloudError, CloudProvider, Descriptor, Problems, ProviderContext,
    ProviderFactory, ProviderInput, Secret,
};
pub use cloudkeel_toolkit::Wiring;
use cloudkeel_toolkit::{Cloud, IdError, ProvenInstances, Provider, Settings as _, TableRoutes};

pub use self::annotations::{BALANCER_ID, PREFIX, PROTECTED, TYPE};
use self::client::Api;
use self::clusters::LocalClusters;
pub use self::config::Config;
pub use self::id::{LocalId, SCHEME};
pub use self::launcher::{Launched, Launcher};
use self::load_balancer::LocalBalancers;
pub use self::load_balancer::{CLUSTER_UID, SERVICE, SERVICE_UID};
use self::routes::LocalRoutes;
use self::volumes::LocalVolumes;

/// The local cloud.
pub struct Local;

/// A project of the local cloud.
pub type LocalProvider = Provider<Local>;

#[async_trait]
impl Cloud for Local {
    type Config = Config;

    fn descriptor() -> Descriptor {
        let mut keys = Config::keys();
        keys.extend(annotations::docs());
        Descriptor {
            name: SCHEME,
            summary: "A small cloud for laptops, workshops and tests.",
            replaces: &[],
            capabilities: vec![
                Capability::Instances,
                Capability::LoadBalancers,
                Capability::Routes,
                Capability::Clusters,
                Capability::Volumes,
            ],
            keys,
        }
    }

    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::read(&input.config)
    }

    fn files(config: &Config) -> Vec<PathBuf> {
        config.files.clone()
    }

    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<LocalProvider, CloudError> {
        let api = Api::connect(config, context, &wiring).await?;
        let cluster = config.cluster_mark.clone();
        let cluster = cluster.or_else(|| context.cluster.uid.clone());
        let home = api.home().project.clone();
        let instances = ProvenInstances::new(api.clone(), Arc::clone(&context.clock));
        Ok(Provider::new(SCHEME, api.clone())
            .with_recognition(move |id| IdError::recognition(LocalId::read_in(&home, id)))
            .with_cluster_id(cluster.is_some())
            .with_instances(instances)
            .with_load_balancers(Some(LocalBalancers::new(
                api.clone(),
                cluster,
                context,
                config.poll_interval,
            )))
            .with_routes(Some(TableRoutes(LocalRoutes(api.clone()))))
            .with_volumes(LocalVolumes(api.clone()))
            .with_clusters(LocalClusters(api)))
    }
}

/// Builds providers of the local cloud.
#[derive(Clone, Default)]
pub struct LocalFactory {
    wiring: Wiring,
    launcher: Option<Arc<dyn Launcher>>,
}

impl LocalFactory {
    /// One whose providers reach the cloud in another way than by real connections.
    pub const fn wired(wiring: Wiring) -> Self {
        Self {
            wiring,
            launcher: None,
        }
    }

    /// The same, but settings that name no cloud mean the one that the launcher finds or starts.
    #[must_use]
    pub fn with_launcher(self, launcher: impl Launcher + 'static) -> Self {
        Self {
            launcher: Some(Arc::new(launcher)),
            ..self
        }
    }

    fn launcher(&self, input: &ProviderInput) -> Option<&Arc<dyn Launcher>> {
        let launcher = self.launcher.as_ref();
        launcher.filter(|_| Config::names_no_cloud(&input.config))
    }
}

#[async_trait]
impl ProviderFactory for LocalFactory {
    fn descriptor(&self) -> Descriptor {
        Local::descriptor()
    }

    fn check(&self, input: &ProviderInput) -> Result<(), Problems> {
        if self.launcher(input).is_none() {
            return Local::read(input).map(drop);
        }
        // Where it will be is not known yet.
        let anywhere = Launched {
            endpoint: "http://127.0.0.1".to_owned(),
            token: Secret::new("later"),
        };
        Config::read_launched(&input.config, &anywhere).map(drop)
    }

    fn files(&self, input: &ProviderInput) -> Vec<PathBuf> {
        Local::read(input).map_or_else(|_| Vec::new(), |config| Local::files(&config))
    }

    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let config = match self.launcher(&input) {
            Some(launcher) => {
                let launched = launcher.launch(&context).await?;
                Config::read_launched(&input.config, &launched)?
            }
            None => Local::read(&input)?,
        };
        let provider = LocalProvider::connect(&config, &context, self.wiring.clone()).await?;
        Ok(Arc::new(provider))
    }
}
