//! The health of targets, as the cloud shows it. Pure.

use cloudkeel_api::{DesiredState, HealthState, LoadBalancerSpec, TargetHealth};
use cloudkeel_toolkit::health::name_of_target;

use super::targets::place_of;
use crate::wire::{LoadBalancer, Target};

/// The health of every target for each port, under the names of the Nodes as far as these are known.
pub(super) fn target_health(spec: &LoadBalancerSpec, balancer: &LoadBalancer) -> Vec<TargetHealth> {
    let targets = balancer.targets.iter();
    targets.flat_map(|target| health_of(spec, target)).collect()
}

/// One for each port; one alone if the cloud does not say anything of the target.
fn health_of(spec: &LoadBalancerSpec, target: &Target) -> Vec<TargetHealth> {
    let name = name_of(spec, target);
    let health = |listener, state| TargetHealth {
        target: name.clone(),
        listener,
        state,
    };
    if target.health_status.0.is_empty() {
        return vec![health(None, HealthState::Unknown)];
    }
    let state = |status: &str| match status {
        "healthy" => HealthState::Healthy,
        "unhealthy" => HealthState::Unhealthy,
        _ => HealthState::Unknown,
    };
    let statuses = target.health_status.0.iter();
    let known = statuses.map(|it| health(it.listen_port, state(&it.status)));
    known.collect()
}

fn name_of(spec: &LoadBalancerSpec, target: &Target) -> String {
    let server = target.server.as_ref().map(|server| server.id.to_string());
    let address = target.ip.as_ref().map(|target| target.ip);
    let plain = place_of(target).map(|(at, _)| at.to_string());
    let plain = plain.as_deref().unwrap_or("label selector");
    name_of_target(
        DesiredState::Present(spec),
        server.as_deref(),
        address,
        plain,
    )
}
