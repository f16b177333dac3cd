//! From what is to what should be. Pure.

use cloudkeel_api::{CloudError, DesiredState, LoadBalancerSpec};

use super::Facts;
use super::desired::Desired;
use super::observe::Observed;
use super::owner::TAG;
use super::step::Step;
use crate::wire::{BalancerRequest, BalancerSettings, LoadBalancer};

/// The steps from `have` to the desired state, in the order in which they are taken.
pub(super) fn plan(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let ours = have.found.ours.iter();
    if have.is_disowned {
        return Ok(ours.filter_map(release).collect());
    }
    match (desired, &have.desired) {
        (DesiredState::Present(spec), Some(asked)) => present(spec, asked, have, facts),
        (DesiredState::Present(_), None) => Ok(Vec::new()),
        (DesiredState::Absent(_), _) => {
            let delete = |balancer: &LoadBalancer| Step::Delete {
                id: balancer.id.clone(),
            };
            let tag = have.left_tag.clone().map(|tag| Step::DeleteTag { tag });
            Ok(ours.map(delete).chain(tag).collect())
        }
        (DesiredState::Released(_), _) => Ok(ours.filter_map(release).collect()),
    }
}

/// Without its owner tag it is no longer ours. One that never had it needs nothing.
fn release(balancer: &LoadBalancer) -> Option<Step> {
    let tag = TAG.among(&balancer.settings.tags)?;
    Some(Step::Release {
        id: balancer.id.clone(),
        tag: tag.clone(),
    })
}

fn present(
    spec: &LoadBalancerSpec,
    desired: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let Some(balancer) = have.found.balancer() else {
        let problems = have.problems().collect::<Vec<_>>();
        if !problems.is_empty() {
            return Err(CloudError::invalid(
                "plan load balancer",
                problems.join("; "),
            ));
        }
        return Ok(vec![Step::Create(Box::new(desired.request.clone()))]);
    };
    let adopt = have.found.ours.is_empty().then(|| Step::Adopt {
        id: balancer.id.clone(),
        tag: TAG.of(&spec.balancer_ref, facts.cluster.as_deref()),
    });
    let targets = set_targets(desired, balancer);
    // What is wrong with the rest keeps no Node waiting.
    let is_known = have.problems().next().is_none();
    let rest = [change(desired, balancer), resize(desired, balancer)];
    let rest = rest.into_iter().flatten().filter(|_| is_known);
    Ok(adopt.into_iter().chain(targets).chain(rest).collect())
}

fn request(
    desired: &Desired,
    have: &LoadBalancer,
    settings: BalancerSettings,
) -> Box<BalancerRequest> {
    Box::new(desired.update(have, settings))
}

fn set_targets(desired: &Desired, have: &LoadBalancer) -> Option<Step> {
    let (want, now) = (
        &desired.request.settings.droplet_ids,
        &have.settings.droplet_ids,
    );
    if want == now || (want.is_empty() && !desired.targets.unresolved.is_empty()) {
        // Wanted Nodes that cannot be resolved may well be the present droplets.
        return None;
    }
    let settings = BalancerSettings {
        droplet_ids: want.clone(),
        tags: desired.request.settings.tags.clone(),
        ..have.settings.clone()
    };
    Some(Step::SetTargets {
        id: have.id.clone(),
        added: want.difference(now).count(),
        removed: now.difference(want).count(),
        request: request(desired, have, settings),
    })
}

fn change(desired: &Desired, have: &LoadBalancer) -> Option<Step> {
    let want = &desired.request.settings;
    let fields = differing(&want.comparable(), &have.settings.comparable());
    (!fields.is_empty()).then(|| Step::Change {
        id: have.id.clone(),
        request: request(desired, have, want.clone()),
        fields,
    })
}

fn resize(desired: &Desired, have: &LoadBalancer) -> Option<Step> {
    let sent = BalancerRequest {
        ip: None,
        ..desired.request.clone()
    };
    (desired.units != have.units()).then(|| Step::Resize {
        id: have.id.clone(),
        units: desired.units,
        request: Box::new(sent),
    })
}

/// What differs, in words. Droplets have a step of their own.
fn differing(want: &BalancerSettings, have: &BalancerSettings) -> Vec<&'static str> {
    let fields = [
        ("name", want.name != have.name),
        ("ports", want.forwarding_rules != have.forwarding_rules),
        ("health check", want.health_check != have.health_check),
        (
            "sticky sessions",
            want.sticky_sessions != have.sticky_sessions,
        ),
        (
            "redirect to HTTPS",
            want.redirect_http_to_https != have.redirect_http_to_https,
        ),
        (
            "PROXY protocol",
            want.enable_proxy_protocol != have.enable_proxy_protocol,
        ),
        (
            "keepalive",
            want.enable_backend_keepalive != have.enable_backend_keepalive,
        ),
        (
            "DNS records",
            want.disable_lets_encrypt_dns_records != have.disable_lets_encrypt_dns_records,
        ),
        (
            "idle timeout",
            want.http_idle_timeout_seconds != have.http_idle_timeout_seconds,
        ),
        ("client rules", want.firewall != have.firewall),
    ];
    let differing = fields.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name).collect()
}
