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
mod tag_sync;
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
    MetricLabels, MetricNames, Pages, ProvenInstances, Provider, ServiceFollower as _, Session,
    Settings as _,
};
use http::StatusCode;
use tokio::sync::Mutex;

pub use self::annotations::PREFIX;
use self::client::Api;
pub use self::config::{BalancerType, Config, ENDPOINT, FirewallSettings, METADATA_ENDPOINT};
use self::firewall::FirewallController;
pub use self::id::{SCHEME, droplet_id, provider_id};
use self::instances::{DropletInstances, Droplets};
use self::load_balancer::{Balancers, Facts};
use self::tag_sync::TagSync;
use self::webhook::ServiceReview;

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
    let result = if call.status < 400 {
        "succeeded"
    } else {
        "failed"
    };
    vec![
        ("operation", operation.to_owned()),
        ("result", result.to_owned()),
        ("http_response_code", call.status.to_string()),
    ]
}

/// A token in use.
#[derive(Clone)]
struct Token(Api);

/// The Go CCM's debug server: `/healthz` asks the API whether the token is good.
#[async_trait]
impl Pages for Token {
    async fn get(&self, path: &str) -> Option<(StatusCode, String)> {
        if path != "/healthz" {
            return None;
        }
        Some(match self.0.account().await {
            Ok(_) => (StatusCode::OK, "ok\n".to_owned()),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        })
    }
}

#[async_trait]
impl Session for Token {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.0.scope().await
    }
}

#[async_trait]
impl Cloud for DigitalOcean {
    type Config = Config;

    fn descriptor() -> Descriptor {
        let mut keys = Config::keys();
        keys.sort_by_key(|doc| doc.name);
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

    fn controllers() -> &'static [ProvidedController] {
        &[TagSync::PROVIDED, FirewallController::PROVIDED]
    }

    fn webhooks() -> &'static [ProvidedWebhook] {
        &[ServiceReview::PROVIDED]
    }

    fn preset_flags() -> &'static [&'static str] {
        &["--authentication-skip-lookup"]
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
        let metrics = ApiMetrics::new(METRICS);
        let metrics_address = config.metrics_address.as_ref();
        let counting = metrics_address.map(|_| &metrics);
        let api = Api::new(config, context, &wiring, counting)?;
        let scope = api.scope().await?;
        let region = api.region(config, &wiring).await?;
        let facts = Facts::new(config, region, context);
        let droplets = Arc::new(Droplets::new(api.clone()));
        let events = Arc::new(EventRecorder::new(Arc::clone(&context.events)));
        let instances = DropletInstances {
            droplets: Arc::clone(&droplets),
            scope,
            events: Arc::clone(&events),
        };
        let review = ServiceReview {
            api: api.clone(),
            facts: facts.clone(),
        };
        let token = Token(api.clone());
        let tag = facts.cluster_tag.clone();
        let tag_sync = tag.map(|tag| TagSync {
            api: api.clone(),
            tag,
        });
        let settings = config.firewall.clone();
        let firewall = settings.map(|settings| FirewallController {
            api,
            settings,
            default_type: facts.default_type,
            known: Mutex::default(),
        });
        Ok(Provider::new(SCHEME, token.clone())
            .with_pages(metrics_address, metrics)
            .with_pages(config.debug_address.as_ref(), token)
            .with_files(config.files.clone())
            .with_instances(ProvenInstances::new(instances, Arc::clone(&context.clock)))
            .with_load_balancers(Some(Balancers::new(&droplets, facts.clone(), &events)))
            .with_balancer_review(review)
            .with_service_follower(tag_sync)
            .with_service_follower(firewall))
    }
}
