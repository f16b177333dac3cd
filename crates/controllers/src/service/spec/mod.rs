//! What a Service asks of its balancer: builds the specification, the same for every cloud, from the Service, its
//! targets and the cluster. Pure; all problems are reported together.

mod fields;
mod health;
mod warnings;

use std::collections::BTreeMap;

use cloudkeel_api::{
    AnnotationKey, BalancerRef, ClusterIdentity, Features, HealthCheckPolicy, Ingress, IpMode,
    KeyValue, LoadBalancerSpec, OtherServices, Problem, Problems, Shared, Target, names,
};
use k8s_openapi::api::core::v1::LoadBalancerIngress;

pub use health::HealthCheckChoice;
pub use warnings::Warning;

use self::health::CheckOptions;
use crate::view::ServiceView;

/// What the specification depends on besides the Service and its targets.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// The cluster.
    pub cluster: &'a ClusterIdentity,
    /// What the cloud's balancers can do.
    pub features: Features,
    /// How targets are checked unless the Service asks for something else.
    pub health_checks: HealthCheckPolicy,
}

/// A specification, and what the Service's owner should know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The specification.
    pub spec: LoadBalancerSpec,
    /// What is ignored, unknown or out of date.
    pub warnings: Vec<Warning>,
}

/// Drafts the specification of a Service with these targets, or says everything that is wrong with it. There
/// are no targets if what selects them makes no sense.
pub fn draft(
    service: &ServiceView,
    targets: Result<Shared<BTreeMap<String, Target>>, Problem>,
    setting: &Setting<'_>,
) -> Result<Draft, Problems> {
    let mut problems = Problems::new();
    let checks = CheckOptions::read(service, &mut problems);
    let listeners = fields::listeners(service, &checks, &setting.health_checks, &mut problems);
    let options = fields::options(service, setting.features, &mut problems);
    let address = fields::address(service, setting.features, &mut problems);
    let source_ranges = fields::source_ranges(service, &mut problems);
    let health_check_node_port = service.health_check_node_port.and_then(|port| {
        let read = fields::number("spec.healthCheckNodePort", port);
        problems.note(read)
    });
    let targets = problems.note(targets).unwrap_or_default();
    if service.ports.is_empty() {
        problems.push(Problem::new("spec.ports", "expected at least one port"));
    }
    problems.into_result()?;
    let spec = LoadBalancerSpec {
        balancer_ref: balancer_ref_of(service, setting.cluster),
        listeners,
        targets,
        families: service.families.clone(),
        address,
        source_ranges,
        traffic_policy: service.traffic_policy,
        health_check_node_port,
        affinity: service.affinity,
        options,
    };
    let warnings = warnings::gather(service, &spec, setting.features);
    Ok(Draft { spec, warnings })
}

/// Everything on a Service that points at its balancer. Never fails, so that a Service with a broken
/// annotation can still be cleaned up.
pub fn balancer_ref_of(service: &ServiceView, cluster: &ClusterIdentity) -> BalancerRef {
    let adopt = names::ADOPT.get(&service.annotations).ok().flatten();
    let adopt = adopt.map(|id| id.trim().to_owned());
    BalancerRef {
        cluster: cluster.clone(),
        service: service.service.clone(),
        class: service.class.clone(),
        labels: service.labels.clone(),
        finalizers: service.finalizers.clone(),
        ip_family_policy: service.ip_family_policy,
        annotations: service.annotations.clone(),
        ingress: ingress_of(service),
        adopt: adopt.filter(|id| !id.is_empty()),
        others: OtherServices::none(),
    }
}

/// What the status of a Service publishes.
pub fn ingress_of(service: &ServiceView) -> Vec<Ingress> {
    service.ingress.iter().filter_map(ingress).collect()
}

fn ingress(entry: &LoadBalancerIngress) -> Option<Ingress> {
    let mode = match entry.ip_mode.as_deref() {
        Some("Proxy") => IpMode::Proxy,
        _ => IpMode::Vip,
    };
    let ip = entry.ip.as_deref().and_then(|ip| ip.parse().ok());
    let hostname = entry.hostname.clone().filter(|name| !name.is_empty());
    ip.map(|ip| Ingress::Ip { ip, mode })
        .or_else(|| hostname.map(Ingress::Hostname))
}

/// The value of an annotation, if it is there; one that cannot be read is noted.
fn annotation<T: KeyValue>(
    key: &AnnotationKey<T>,
    service: &ServiceView,
    problems: &mut Problems,
) -> Option<T> {
    problems.note(key.get(&service.annotations)).flatten()
}

#[cfg(test)]
mod tests;
