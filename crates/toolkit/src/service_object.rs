//! What an admission webhook sees of a Service: the object, before its balancer is planned from values.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cloudkeel_api::{
    AdmissionRequest, BalancerRef, ClusterIdentity, HealthCheck, HealthProbe, IpFamily, Listener,
    LoadBalancerSpec, Protocol, ServiceRef, TrafficPolicy,
};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;

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
/// Checks are those of kube-proxy, on this port. `None` if it is no Service with a balancer, or one that is being deleted.
pub fn balancer_asked_by(
    object: &Value,
    request: &AdmissionRequest,
    kube_proxy_port: u16,
) -> Option<LoadBalancerSpec> {
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
        port: Some(local.unwrap_or(kube_proxy_port)),
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
