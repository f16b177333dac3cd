//! An admission webhook that asks a cloud whether it would take the load balancer of a Service: the object is seen before its
//! balancer is planned from values.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Admission, AdmissionRequest, BalancerRef, CloudError, ClusterIdentity, ErrorKind, HealthCheck,
    HealthProbe, IpFamily, Listener, LoadBalancerSpec, Protocol, ProvidedWebhook, ServiceRef,
    TrafficPolicy, Webhook,
};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::health::KUBE_PROXY_PORT;

/// Less than an API server waits for a webhook.
pub const REVIEW_TIMEOUT: Duration = Duration::from_secs(8);

/// A cloud that says whether it would take a balancer, without creating it.
#[async_trait]
pub trait BalancerReview: Send + Sync {
    /// The webhook's name, as in `--webhooks`.
    const NAME: &'static str;
    /// The path that it is served at.
    const PATH: &'static str;
    /// What is known of the webhook before the provider is built.
    const PROVIDED: ProvidedWebhook = ProvidedWebhook {
        name: Self::NAME,
        path: Self::PATH,
    };
    /// What people call the cloud.
    const CLOUD: &'static str;
    /// What is asked.
    type Request: PartialEq + Send + Sync;

    /// What is asked about the balancer of a Service; nothing about one that is left alone. What is wrong with the Service is
    /// [`Invalid`](ErrorKind::Invalid). No other error keeps a Service from being written.
    async fn request(
        &self,
        service: &LoadBalancerSpec,
    ) -> Result<Option<Self::Request>, CloudError>;

    /// Asks the cloud. A Service that was there before may say more about its balancer than the new one.
    async fn validate(
        &self,
        service: &LoadBalancerSpec,
        old: Option<&LoadBalancerSpec>,
        request: &Self::Request,
    ) -> Result<(), CloudError>;
}

/// The webhook of a review.
pub(crate) struct ReviewWebhook<T>(pub(crate) T);

#[async_trait]
impl<T: BalancerReview> Webhook for ReviewWebhook<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn path(&self) -> &'static str {
        T::PATH
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        let asked_by = |object| balancer_asked_by(object, request);
        if !matches!(request.operation.as_str(), "CREATE" | "UPDATE") {
            return Ok(allowed(None));
        }
        let Some(service) = asked_by(&request.object) else {
            return Ok(allowed(None));
        };
        let asked = match self.asked(&service).await {
            Ok(Some(asked)) => asked,
            Ok(None) => return Ok(allowed(None)),
            Err(error) if error.kind() == ErrorKind::Invalid => return Ok(denied(error.message())),
            Err(error) => return Err(error),
        };
        let old = asked_by(&request.old_object);
        if let Some(old) = &old {
            match self.asked(old).await {
                Ok(before) if before.as_ref() == Some(&asked) => return Ok(allowed(None)),
                Err(error) if error.kind() != ErrorKind::Invalid => return Err(error),
                _ => {}
            }
        }
        let answer = self.0.validate(&service, old.as_ref(), &asked).await;
        Ok(decide(T::CLOUD, answer))
    }
}

impl<T: BalancerReview> ReviewWebhook<T> {
    async fn asked(&self, service: &LoadBalancerSpec) -> Result<Option<T::Request>, CloudError> {
        let asked = timeout(REVIEW_TIMEOUT, self.0.request(service)).await;
        asked.unwrap_or_else(|_| {
            let (kind, message) = (ErrorKind::Timeout, "no answer in time");
            Err(CloudError::new("review load balancer", kind, message))
        })
    }
}

fn allowed(warning: Option<String>) -> Admission {
    Admission::Allow {
        patch: Vec::new(),
        warnings: warning.into_iter().collect(),
    }
}

fn denied(why: &str) -> Admission {
    Admission::Deny {
        why: format!("failed to build load balancer request: {why}"),
    }
}

/// What the cloud understood and refused is denied. That it cannot say now is no reason to deny anything.
fn decide(cloud: &str, answer: Result<(), CloudError>) -> Admission {
    let Err(error) = answer else {
        return allowed(None);
    };
    match error.kind() {
        ErrorKind::Invalid
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Conflict
        | ErrorKind::LimitExceeded
        | ErrorKind::Denied
        | ErrorKind::Unsupported => Admission::Deny {
            why: format!("{cloud} refuses this load balancer: {}", error.message()),
        },
        _ => allowed(Some(format!(
            "the load balancer was not checked: {}",
            error.message()
        ))),
    }
}

/// A node port for a port that gets its own only after admission.
const SOME_NODE_PORT: u16 = 30_000;

#[derive(Deserialize)]
struct Service {
    metadata: Metadata,
    spec: ServiceSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ServiceSpec {
    #[serde(rename = "type")]
    service_type: String,
    ports: Vec<PortSpec>,
    external_traffic_policy: String,
    health_check_node_port: Option<u16>,
    load_balancer_source_ranges: Vec<String>,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_ip: Option<IpAddr>,
    ip_families: Vec<IpFamily>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PortSpec {
    port: u16,
    protocol: Option<Protocol>,
    node_port: Option<u16>,
}

/// What an object of an admission request asks of a balancer, as far as that depends on no Node and no neutral option.
/// Checks are those of kube-proxy. `None` if it is no Service with a balancer, or one that is being deleted.
fn balancer_asked_by(object: &Value, request: &AdmissionRequest) -> Option<LoadBalancerSpec> {
    let Service { metadata, spec } = serde_json::from_value(object.clone()).ok()?;
    if spec.service_type != "LoadBalancer" || metadata.deletion_timestamp.is_some() {
        return None;
    }
    let service = ServiceRef {
        namespace: request.namespace.clone().unwrap_or_default(),
        name: request.name.clone(),
        uid: metadata.uid,
    };
    // The cluster does not matter: nothing is created.
    let cluster = ClusterIdentity {
        name: String::new(),
        uid: None,
        pod_cidrs: Vec::new(),
    };
    let is_local = spec.external_traffic_policy == "Local";
    let local = spec.health_check_node_port.filter(|_| is_local);
    let check = HealthCheck {
        probe: HealthProbe::Http {
            path: "/healthz".to_owned(),
        },
        port: Some(local.unwrap_or(KUBE_PROXY_PORT)),
        ..HealthCheck::tcp()
    };
    let listener = |port: &PortSpec| Listener {
        protocol: port.protocol.unwrap_or(Protocol::Tcp),
        health_check: check.clone(),
        ..Listener::tcp(
            port.port,
            port.node_port
                .filter(|it| *it > 0)
                .unwrap_or(SOME_NODE_PORT),
        )
    };
    let ranges = spec.load_balancer_source_ranges.iter();
    let ranges = ranges.filter_map(|range| range.trim().parse::<IpNet>().ok());
    Some(LoadBalancerSpec {
        listeners: spec.ports.iter().map(listener).collect(),
        source_ranges: ranges.collect(),
        address: spec.load_balancer_ip,
        families: spec.ip_families,
        traffic_policy: if is_local {
            TrafficPolicy::Local
        } else {
            TrafficPolicy::Cluster
        },
        health_check_node_port: local,
        ..LoadBalancerSpec::plain(BalancerRef {
            annotations: metadata.annotations,
            ..BalancerRef::of(cluster, service)
        })
    })
}

#[cfg(test)]
mod tests;
