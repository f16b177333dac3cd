//! AWS: instances of EC2, classic and network load balancers, and the routes of a VPC.
//!
//! Stands in for `aws-cloud-controller-manager`: it takes the same `cloud.conf`, flags and annotations, and
//! recognises what that made.

mod account;
mod annotations;
mod client;
mod config;
mod error;
mod id;
mod instances;
mod load_balancer;
mod permissions;
mod routes;
mod tagging;
mod tags;
mod volumes;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Capability, CloudError, Descriptor, Problems, ProvidedController, ProviderContext, ProviderId,
    ProviderInput, Recognition,
};
pub use cloudkeel_toolkit::Wiring;
use cloudkeel_toolkit::{
    Cloud, CloudFactory, EventRecorder, IdError, ProvenInstances, Provider, Session, TableRoutes,
};

use self::account::Account;
pub use self::annotations::PREFIX;
pub use self::config::{BalancerType, Config, GroupMode, NodeIpFamily, Override, ProbeMode};
pub use self::id::{AwsId, SCHEME};
use self::instances::{AwsInstances, TopologyLabels};
use self::load_balancer::AwsBalancers;
pub use self::permissions::{PERMISSIONS, Permission, policy};
use self::routes::AwsRoutes;
use self::tagging::TaggingController;
use self::volumes::AwsVolumes;

/// AWS.
pub struct Aws;

/// An account in one region.
pub type AwsProvider = Provider<Aws>;

/// Builds providers of AWS.
pub type AwsFactory = CloudFactory<Aws>;

#[async_trait]
impl Cloud for Aws {
    type Config = Config;
    const CONTROLLERS: &'static [ProvidedController] = &[tagging::PROVIDED];

    fn descriptor() -> Descriptor {
        let mut keys = Config::docs();
        keys.extend(annotations::docs());
        Descriptor {
            name: SCHEME,
            summary: "AWS: EC2, classic and network load balancers, routes of a VPC.",
            replaces: &["aws-cloud-controller-manager"],
            capabilities: vec![
                Capability::Instances,
                Capability::LoadBalancers,
                Capability::Routes,
                Capability::Volumes,
                Capability::BackgroundControllers,
            ],
            keys,
        }
    }

    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::read(input)
    }

    /// Finds the account's network, and proves that the credential shows it.
    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<AwsProvider, CloudError> {
        let account = Arc::new(Account::connect(config, context, &wiring).await?);
        account.check().await?;
        let events = Arc::new(EventRecorder::new(Arc::clone(&context.events)));
        let instances = AwsInstances {
            account: Arc::clone(&account),
            families: config.families(),
            topology: TopologyLabels::new(&config.topology_types),
            events: Arc::clone(&events),
        };
        let balancers = AwsBalancers::new(&account, config, context, &events);
        let table = config.route_table_id.clone();
        let routes = AwsRoutes::new(&account, table, &context.cluster.name);
        let tagging = TaggingController::new(&account, &config.tags);
        let provider = Provider::new(SCHEME, Arc::clone(&account))
            .with_instances(ProvenInstances::new(instances, Arc::clone(&context.clock)))
            .with_load_balancers(Some(balancers))
            .with_routes(Some(TableRoutes(routes)))
            .with_volumes(AwsVolumes(account));
        Ok(match tagging {
            Some(tagging) => provider.with_background_controller(Arc::new(tagging)),
            None => provider,
        })
    }

    fn recognize(id: &ProviderId) -> Recognition {
        IdError::recognition(AwsId::read(id))
    }

    fn files(config: &Config) -> Vec<PathBuf> {
        config.files.clone()
    }

    fn reference() -> Option<String> {
        Some(permissions::reference())
    }
}
