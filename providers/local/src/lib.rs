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
    BuildError, Capability, CloudError, CloudProvider, Clusters, Descriptor, Driven, Instances,
    LoadBalancers, Problems, ProviderContext, ProviderFactory, ProviderId, ProviderInput,
    Recognition, Routes, ScopeFingerprint, Secret, Volumes,
};

pub use self::annotations::{BALANCER_ID, PREFIX, PROTECTED, TYPE};
use self::client::Api;
pub use self::client::Wiring;
use self::clusters::LocalClusters;
pub use self::config::Config;
pub use self::id::{LocalId, LocalIdError, SCHEME};
use self::instances::LocalInstances;
pub use self::launcher::{Launched, Launcher};
use self::load_balancer::LocalBalancers;
pub use self::load_balancer::{CLUSTER_UID, SERVICE, SERVICE_UID};
use self::routes::LocalRoutes;
use self::volumes::LocalVolumes;

/// A project of the local cloud.
pub struct LocalProvider {
    api: Api,
    has_cluster_mark: bool,
    files: Vec<PathBuf>,
    instances: LocalInstances,
    load_balancers: Driven<LocalBalancers>,
    routes: LocalRoutes,
    volumes: LocalVolumes,
    clusters: LocalClusters,
}

impl LocalProvider {
    /// Connects, and learns which project the credential belongs to.
    pub async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<Self, CloudError> {
        let api = Api::connect(config, context, wiring).await?;
        let configured = config.cluster_mark.clone();
        let cluster = configured.or_else(|| context.cluster.uid.clone());
        let has_cluster_mark = cluster.is_some();
        let balancers = LocalBalancers::new(
            api.clone(),
            cluster,
            Arc::clone(&context.events),
            config.poll_interval,
        );
        Ok(Self {
            has_cluster_mark,
            files: config.token_file.iter().cloned().collect(),
            instances: LocalInstances::new(api.clone(), Arc::clone(&context.clock)),
            load_balancers: Driven::new(balancers),
            routes: LocalRoutes::new(api.clone()),
            volumes: LocalVolumes::new(api.clone()),
            clusters: LocalClusters::new(api.clone()),
            api,
        })
    }
}

#[async_trait]
impl CloudProvider for LocalProvider {
    fn name(&self) -> &'static str {
        SCHEME
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        let home = &self.api.home().project;
        match LocalId::read(id) {
            Ok(id) if id.project == *home => Recognition::Ours,
            Ok(id) => Recognition::OtherAccount {
                why: format!("project {:?}, while ours is {home:?}", id.project),
            },
            Err(LocalIdError::OtherScheme(_)) => Recognition::Foreign,
            Err(error @ LocalIdError::Malformed(_)) => Recognition::Malformed {
                why: error.to_string(),
            },
        }
    }

    fn has_cluster_id(&self) -> bool {
        self.has_cluster_mark
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        let scope = self.api.scope().await?;
        Ok(self.api.fingerprint(&scope.project))
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(&self.instances)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.load_balancers)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(&self.routes)
    }

    fn clusters(&self) -> Option<&dyn Clusters> {
        Some(&self.clusters)
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        Some(&self.volumes)
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
}

#[async_trait]
impl ProviderFactory for LocalFactory {
    fn descriptor(&self) -> Descriptor {
        let mut keys = Config::docs();
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

    fn check(&self, input: &ProviderInput) -> Result<(), Problems> {
        if self.launcher.is_some() && Config::names_no_cloud(&input.config) {
            // Where it will be is not known yet.
            let anywhere = Launched {
                endpoint: "http://127.0.0.1".to_owned(),
                token: Secret::new("later"),
            };
            return Config::read_launched(&input.config, &anywhere).map(drop);
        }
        Config::read(&input.config).map(drop)
    }

    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let config = match &self.launcher {
            Some(launcher) if Config::names_no_cloud(&input.config) => {
                let launched = launcher.launch(&context).await?;
                Config::read_launched(&input.config, &launched)?
            }
            _ => Config::read(&input.config)?,
        };
        let provider = LocalProvider::connect(&config, &context, self.wiring.clone()).await?;
        Ok(Arc::new(provider))
    }
}
