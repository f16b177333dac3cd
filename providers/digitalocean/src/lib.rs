//! DigitalOcean: droplets, load balancers of both types, tags, and the public access firewall.
//!
//! Stands in for `digitalocean-cloud-controller-manager` and its admission server: it takes the same environment
//! variables and annotations, and recognises what they made.

mod annotations;
mod client;
mod config;
mod error;
mod firewall;
mod id;
mod instances;
mod load_balancer;
mod webhook;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Capability, CloudError, Descriptor, Problems, ProvidedController, ProvidedWebhook,
    ProviderContext, ProviderId, ProviderInput, Recognition, ScopeFingerprint,
};
pub use cloudkeel_toolkit::Wiring;
use cloudkeel_toolkit::{
    ApiCall, ApiMetrics, BalancerReview as _, Cloud, CloudFactory, EventRecorder, IdError,
    KeptResource, MetricLabels, MetricNames, ProvenInstances, Provider, RestInstances,
    ServiceFollower as _, Session, Settings as _, TagSync, settings::by_name,
};

pub use self::annotations::PREFIX;
use self::client::Api;
pub use self::config::{BalancerType, Config, ENDPOINT, FirewallSettings, METADATA_ENDPOINT};
use self::firewall::FirewallController;
pub use self::id::{SCHEME, droplet_id, provider_id};
use self::instances::{DropletRules, Droplets};
use self::load_balancer::certificate::Certificates;
use self::load_balancer::{Balancers, Facts, balancers};
use self::webhook::ServiceReview;
use self::wire::LoadBalancer;

/// DigitalOcean.
pub struct DigitalOcean;

/// An account of DigitalOcean.
pub type DigitalOceanProvider = Provider<DigitalOcean>;

/// Builds providers of DigitalOcean.
pub type DigitalOceanFactory = CloudFactory<DigitalOcean>;

/// The metrics of the Go CCM: only calls about firewalls are counted.
const METRICS: MetricNames = MetricNames {
    requests: "firewall_api_operations",
    in_flight: "",
    durations: "firewall_api_operation_duration_seconds",
    request_labels: firewall_operation,
    duration_labels: firewall_operation,
};

fn firewall_operation(call: &ApiCall<'_>) -> MetricLabels {
    let Some(id) = call.path.strip_prefix("/v2/firewalls") else {
        return Vec::new();
    };
    let operation = match (call.method, id.is_empty()) {
        ("get", true) => "get_by_list",
        ("get", false) => "get_by_id",
        ("post", _) => "create",
        _ => "update",
    };
    let is_good = call.status < 400;
    let result = if is_good { "succeeded" } else { "failed" };
    vec![
        ("operation", operation.to_owned()),
        ("result", result.to_owned()),
        ("http_response_code", call.status.to_string()),
    ]
}

#[async_trait]
impl Session for Api {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.scope().await
    }
}

#[async_trait]
impl Cloud for DigitalOcean {
    type Config = Config;
    const CONTROLLERS: &'static [ProvidedController] = &[
        TagSync::<Api, LoadBalancer>::PROVIDED,
        FirewallController::PROVIDED,
    ];
    const WEBHOOKS: &'static [ProvidedWebhook] = &[ServiceReview::PROVIDED];
    const PRESET_FLAGS: &'static [&'static str] = &["--authentication-skip-lookup"];

    fn descriptor() -> Descriptor {
        let mut keys = by_name([Config::keys()]);
        keys.extend(annotations::docs());
        Descriptor {
            name: SCHEME,
            summary: "DigitalOcean droplets and load balancers.",
            replaces: &["digitalocean-cloud-controller-manager"],
            capabilities: vec![
                Capability::Instances,
                Capability::LoadBalancers,
                Capability::Webhooks,
                Capability::BackgroundControllers,
            ],
            keys,
        }
    }

    fn recognize(id: &ProviderId) -> Recognition {
        IdError::recognition(droplet_id(id))
    }

    fn files(config: &Config) -> Vec<PathBuf> {
        config.files.clone()
    }

    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::read(input)
    }

    /// Proves that the token is good, and finds the region.
    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<DigitalOceanProvider, CloudError> {
        let address = config.metrics_address.as_ref();
        let metrics = address.map(|address| ApiMetrics::new(address, METRICS));
        let api = Api::new(config, context, &wiring, metrics.as_ref())?;
        let scope = api.scope().await?;
        let tag = config.cluster_id.iter().map(|id| format!("k8s:{id}"));
        let facts = Facts {
            region: api.region(config, &wiring).await?,
            vpc_id: config.vpc_id.clone(),
            default_type: config.balancer_type,
            cluster_tag: tag.collect(),
            cluster: context.cluster.uid.clone(),
        };
        let droplets = Arc::new(Droplets::new(api.clone()));
        let events = Arc::new(EventRecorder::new(Arc::clone(&context.events)));
        let instances = RestInstances {
            resources: Arc::clone(&droplets),
            rules: DropletRules,
            scope,
            events: Arc::clone(&events),
        };
        let review = ServiceReview {
            api: api.clone(),
            facts: facts.clone(),
        };
        let cluster = context.cluster.uid.as_ref();
        let tag_sync = facts.cluster_tag.first().map(|tag| TagSync {
            api: api.clone(),
            balancers: balancers(cluster),
            tag: tag.clone(),
        });
        let firewall = config.firewall.as_ref().map(|settings| FirewallController {
            api: api.clone(),
            settings: settings.clone(),
            default_type: facts.default_type,
            firewall: KeptResource::default(),
        });
        let load_balancers = Balancers {
            droplets,
            facts,
            events,
            tagged: balancers(cluster),
            certificates: Certificates::default(),
        };
        Ok(Provider::new(SCHEME, api)
            .with_metrics(metrics)
            .with_health_page(config.debug_address.as_ref())
            .with_instances(ProvenInstances::new(instances, Arc::clone(&context.clock)))
            .with_load_balancers(Some(load_balancers))
            .with_balancer_review(review)
            .with_service_follower(tag_sync)
            .with_service_follower(firewall))
    }
}
