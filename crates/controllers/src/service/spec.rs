//! What a Service asks of its balancer: from the Service, its targets and the cluster to the
//! provider-neutral specification. Pure; everything that is wrong is told at once.

mod listeners;
mod options;
mod ranges;
mod warning;

use std::collections::BTreeMap;

use cloudkeel_api::{
    ClusterIdentity, Features, HealthCheckPolicy, LoadBalancerSpec, Problem, Problems, Shared,
    Target,
};

pub use warning::Warning;

use super::claim::claim_of;
use super::health::Wishes;
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
    /// What is ignored, unknown or out of date. None of it stands in the way.
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
    let wishes = Wishes::read(service, &mut problems);
    let listeners = listeners::read(service, &wishes, &setting.health_checks, &mut problems);
    let options = options::read(service, &mut problems);
    let address = options::address(service, setting.features, &mut problems);
    let source_ranges = ranges::read(service, &mut problems);
    let health_check_node_port = service.health_check_node_port.and_then(|port| {
        let read = listeners::number("spec.healthCheckNodePort", port);
        problems.note(read)
    });
    let targets = problems.note(targets).unwrap_or_default();
    if service.ports.is_empty() {
        problems.push(Problem::new("spec.ports", "expected at least one port"));
    }
    problems.into_result()?;
    let spec = LoadBalancerSpec {
        claim: claim_of(service, setting.cluster),
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
    let warnings = warning::gather(service, &spec, setting.features);
    Ok(Draft { spec, warnings })
}

#[cfg(test)]
mod tests;
