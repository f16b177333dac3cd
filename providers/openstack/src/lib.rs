//! OpenStack: servers of Nova, load balancers of Octavia, routes and floating IPs of Neutron, volumes of Cinder.
//!
//! Stands in for `openstack-cloud-controller-manager`: it takes the same `cloud.conf` and annotations, and recognises
//! what that made.

mod annotations;
mod client;
mod config;
mod error;
mod id;
mod instances;
mod load_balancer;
mod routes;
mod volumes;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Capability, CloudError, Descriptor, Problems, ProviderContext, ProviderId, ProviderInput,
    Recognition, ScopeFingerprint,
};
pub use cloudkeel_toolkit::Wiring;
use cloudkeel_toolkit::{
    Cloud, CloudFactory, EventRecorder, IdError, ProvenInstances, Provider, Session, TableRoutes,
};

pub use self::annotations::PREFIX;
use self::client::{Api, Service};
pub use self::config::{
    AuthSettings, BalancerSettings, ClassSettings, Config, ContainerStore, Interface,
    NetworkSettings, Networking,
};
pub use self::id::SCHEME;
use self::id::ServerIds;
use self::instances::{Rules, Servers};
use self::load_balancer::OpenStackBalancers;
pub use self::load_balancer::{CLUSTER_UID, SERVICE_UID};
use self::routes::{Extensions, RouterRoutes};
use self::volumes::CinderVolumes;

/// OpenStack.
pub struct OpenStack;

/// A project of OpenStack.
pub type OpenStackProvider = Provider<OpenStack>;

/// Builds providers of OpenStack.
pub type OpenStackFactory = CloudFactory<OpenStack>;

/// A credential in use.
struct Project(Api);

#[async_trait]
impl Session for Project {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.0.prove().await
    }
}

#[async_trait]
impl Cloud for OpenStack {
    type Config = Config;

    fn descriptor() -> Descriptor {
        let mut keys = Config::docs();
        keys.extend(annotations::docs());
        Descriptor {
            name: SCHEME,
            summary: "OpenStack with Nova, Neutron and Octavia.",
            replaces: &["openstack-cloud-controller-manager"],
            capabilities: vec![
                Capability::Instances,
                Capability::LoadBalancers,
                Capability::Routes,
                Capability::Volumes,
            ],
            keys,
        }
    }

    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::read(input)
    }

    /// Also of another region, which only a connected provider can tell apart.
    fn recognize(id: &ProviderId) -> Recognition {
        match IdError::recognition(ServerIds::default().read(id)) {
            Recognition::OtherAccount { .. } => Recognition::Ours,
            recognition => recognition,
        }
    }

    /// Those whose change makes a new connection necessary.
    fn files(config: &Config) -> Vec<PathBuf> {
        let auth = &config.auth;
        let tls = [&auth.ca_file, &auth.cert_file, &auth.key_file];
        let tls = tls.into_iter().flatten().map(PathBuf::from);
        config.files.iter().cloned().chain(tls).collect()
    }

    /// Logs in, and finds out what this cloud has.
    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<OpenStackProvider, CloudError> {
        let api = Api::connect(config, context, &wiring).await?;
        let events = Arc::new(EventRecorder::new(Arc::clone(&context.events)));
        let ids = ServerIds {
            region: config.auth.region.clone(),
            is_regional: config.regional,
        };
        let servers = Servers {
            api: api.clone(),
            rules: Rules {
                ids: ids.clone(),
                networking: config.networking.clone(),
            },
            events: Arc::clone(&events),
            inventory: Arc::default(),
            flavors: Arc::default(),
        };
        if config.load_balancers.enabled {
            api.require(Service::Network)?;
            api.require(Service::Balancers)?;
        }
        let balancers = config
            .load_balancers
            .enabled
            .then(|| OpenStackBalancers::new(&servers, config, context, &events));
        let routes = routes(config, &servers).await?;
        let recognition = ids.clone();
        let mut provider = Provider::new(SCHEME, Project(api.clone()))
            .with_recognition(move |id| IdError::recognition(recognition.read(id)))
            .with_load_balancers(balancers)
            .with_routes(routes.map(TableRoutes));
        if api.has(Service::Compute) {
            provider =
                provider.with_instances(ProvenInstances::new(servers, Arc::clone(&context.clock)));
        }
        if api.has(Service::Volumes) {
            let region = config.auth.region.clone();
            provider = provider.with_volumes(CinderVolumes { api, region });
        }
        Ok(provider)
    }
}

/// Routes, if a router is configured and routers can have some.
async fn routes(config: &Config, servers: &Servers) -> Result<Option<RouterRoutes>, CloudError> {
    let Some(router) = &config.router else {
        return Ok(None);
    };
    let extensions = Extensions::read(&servers.api).await?;
    if !extensions.routes {
        tracing::warn!(
            "Neutron has neither `extraroute` nor `extraroute-atomic`: there are no routes"
        );
        return Ok(None);
    }
    Ok(Some(RouterRoutes {
        servers: servers.clone(),
        router: router.clone(),
        extensions,
    }))
}
