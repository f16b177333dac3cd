//! The claim of a Service to its balancer. Pure.

use cloudkeel_api::{Claim, ClusterIdentity, Ingress, IpMode, names};
use k8s_openapi::api::core::v1::LoadBalancerIngress;

use crate::view::ServiceView;

/// Everything on a Service that points at its balancer. Never fails, so that a Service with a broken
/// annotation can still be cleaned up.
pub fn claim_of(service: &ServiceView, cluster: &ClusterIdentity) -> Claim {
    Claim {
        cluster: cluster.clone(),
        service: service.service.clone(),
        class: service.class.clone(),
        labels: service.labels.clone(),
        finalizers: service.finalizers.clone(),
        ip_family_policy: service.ip_family_policy,
        annotations: service.annotations.clone(),
        ingress: ingress_of(service),
        adopt: names::ADOPT
            .get(&service.annotations)
            .ok()
            .flatten()
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty()),
    }
}

/// What the status of a Service publishes.
pub fn ingress_of(service: &ServiceView) -> Vec<Ingress> {
    service.ingress.iter().filter_map(ingress).collect()
}

fn ingress(entry: &LoadBalancerIngress) -> Option<Ingress> {
    let ip = entry.ip.as_deref().and_then(|ip| ip.parse().ok());
    let hostname = || entry.hostname.clone().filter(|name| !name.is_empty());
    match ip {
        Some(ip) => Some(Ingress::Ip {
            ip,
            mode: match entry.ip_mode.as_deref() {
                Some("Proxy") => IpMode::Proxy,
                _ => IpMode::Vip,
            },
        }),
        None => hostname().map(Ingress::Hostname),
    }
}
