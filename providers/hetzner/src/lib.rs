//! Hetzner: cloud servers, dedicated servers, load balancers and the routes of a private network.
//!
//! Stands in for `hcloud-cloud-controller-manager`: it takes the same environment variables and
//! annotations, and recognises what that made.

mod annotations;
mod client;
mod config;
mod error;
mod id;
mod instances;
mod load_balancer;
mod routes;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Capability, CloudError, Descriptor, Priority, Problems, ProviderContext, ProviderId,
    ProviderInput, Recognition, ScopeFingerprint,
};
pub use cloudkeel_toolkit::Wiring;
use cloudkeel_toolkit::{
    ApiMetrics, Cloud, CloudFactory, EventRecorder, IdError, MetricNames, Provider, Session,
    TableRoutes, endpoint_without_ids,
};

pub use self::annotations::PREFIX;
use self::client::{Api, Login, network};
pub use self::config::{
    AddressFamily, Algorithm, BalancerDefaults, CLOUD_ENDPOINT, Config, METADATA_ENDPOINT,
    ROBOT_ENDPOINT, RobotConfig,
};
pub use self::id::{CLOUD_SCHEME, HetznerId, ROBOT_SCHEME};
pub use self::instances::PROVIDED_BY;
use self::instances::{Rules, Servers, instances};
use self::load_balancer::HetznerBalancers;
pub use self::load_balancer::{CLUSTER_UID, SERVICE_UID};
use self::routes::HetznerRoutes;
use self::wire::Network;

/// Hetzner.
pub struct Hetzner;

/// A project of Hetzner Cloud, and perhaps an account of Robot.
pub type HetznerProvider = Provider<Hetzner>;

/// Builds providers of Hetzner.
pub type HetznerFactory = CloudFactory<Hetzner>;

/// The metrics of the Go CCM.
const METRICS: MetricNames = MetricNames {
    requests: "hcloud_api_requests",
    in_flight: "hcloud_api_in_flight_requests",
    durations: "hcloud_api_request_duration_seconds",
    request_labels: |call| {
        vec![
            ("code", call.status.to_string()),
            ("method", call.method.to_owned()),
            ("api_endpoint", endpoint_without_ids(call.path)),
        ]
    },
    duration_labels: |call| vec![("method", call.method.to_owned())],
};

/// A token in use.
struct Project {
    api: Api,
    network: Option<u64>,
    scope: ScopeFingerprint,
}

#[async_trait]
impl Session for Project {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        match self.network {
            // Only the right project shows it.
            Some(id) => {
                let _: Network = self.api.get(&id, Priority::Normal).await?;
            }
            None => self.api.prove().await?,
        }
        Ok(self.scope.clone())
    }
}

#[async_trait]
impl Cloud for Hetzner {
    type Config = Config;

    fn descriptor() -> Descriptor {
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

    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::read(input)
    }

    fn recognize(id: &ProviderId) -> Recognition {
        IdError::recognition(HetznerId::read(id))
    }

    fn files(config: &Config) -> Vec<PathBuf> {
        config.files.clone()
    }

    /// Finds the network, and proves that the token is good.
    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<HetznerProvider, CloudError> {
        let address = config.metrics_address.as_ref();
        let metrics = address.map(|address| ApiMetrics::new(address, METRICS));
        let api = Api::new(config, context, &wiring, metrics.as_ref())?;
        let robot = Login::new(config, context, &wiring)?;
        let network = network::find(config, &api).await?;
        if let Some(network) = &network {
            network::check_attached(config, network, &wiring).await?;
        }
        api.prove().await?;
        let scope = network::fingerprint(config, &api.endpoint(), network.as_ref());
        let network = network.map(|network| network.id);
        let servers = Arc::new(Servers::new(api.clone()));
        let events = Arc::new(EventRecorder::new(Arc::clone(&context.events)));
        let balancers = config.load_balancers.enabled.then(|| {
            HetznerBalancers::new(&servers, config, network, robot.clone(), context, &events)
        });
        let routes = network.filter(|_| config.routes).map(|network| {
            TableRoutes(HetznerRoutes {
                servers: Arc::clone(&servers),
                network,
                cluster_cidrs: context.cluster.pod_cidrs.clone(),
                events: Arc::clone(&events),
            })
        });
        let has_robot = !matches!(robot, Login::Off);
        let rules = Rules::new(config, network);
        let instances = instances(rules, &servers, robot, &scope, context, &events);
        let project = Project {
            api,
            network,
            scope,
        };
        Ok(Provider::new(CLOUD_SCHEME, project)
            .with_recognition(move |id| match HetznerId::read(id) {
                Ok(HetznerId::Robot(_)) if !has_robot => Recognition::OtherAccount {
                    why: "a dedicated server, but Robot is not enabled".to_owned(),
                },
                read => IdError::recognition(read),
            })
            // As the Go CCM, which asks for `--allow-untagged-cloud`.
            .with_cluster_id(false)
            .with_instances(instances)
            .with_load_balancers(balancers)
            .with_routes(routes)
            .with_metrics(metrics))
    }
}
