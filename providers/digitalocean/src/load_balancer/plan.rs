//! From what is to what should be. Pure.

use cloudkeel_api::{CloudError, DesiredState, LoadBalancerSpec};
use cloudkeel_toolkit::json;

use super::desired::Desired;
use super::observe::Observed;
use super::owner::TAG;
use super::step::{Change, Step};
use crate::wire::{self, BalancerRequest, BalancerSettings, LoadBalancer};

/// What is compared of a load balancer, and its words. The rest cannot change, is not ours to change, or has a step of its
/// own.
const FIELDS: [(&str, &str); 10] = [
    ("name", "name"),
    ("forwarding_rules", "ports"),
    ("health_check", "health check"),
    ("sticky_sessions", "sticky sessions"),
    ("redirect_http_to_https", "redirect to HTTPS"),
    ("enable_proxy_protocol", "PROXY protocol"),
    ("enable_backend_keepalive", "keepalive"),
    ("disable_lets_encrypt_dns_records", "DNS records"),
    ("http_idle_timeout_seconds", "idle timeout"),
    ("firewall", "client rules"),
];

/// The steps from `have` to the desired state, in the order in which they are taken.
pub(super) fn plan(desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
    let ours = have.found.ours.iter();
    match (desired, &have.desired) {
        (DesiredState::Present(spec), Some(asked)) => present(spec, asked, have),
        (DesiredState::Absent(_), _) if !have.is_disowned => {
            let delete = ours.map(|it| it.id.clone()).map(|id| Step::Delete { id });
            let tag = have.left_tag.clone().map(|tag| Step::DeleteTag { tag });
            Ok(delete.chain(tag).collect())
        }
        // It is disowned or released.
        _ => Ok(ours.filter_map(release).collect()),
    }
}

/// Without its owner tag it is no longer ours. One that never had it needs nothing.
fn release(balancer: &LoadBalancer) -> Option<Step> {
    let tag = TAG.among(&balancer.settings.tags)?.clone();
    let id = balancer.id.clone();
    Some(Step::Release { id, tag })
}

fn present(
    spec: &LoadBalancerSpec,
    desired: &Desired,
    have: &Observed,
) -> Result<Vec<Step>, CloudError> {
    let Some(balancer) = have.found.balancer() else {
        return Ok(vec![Step::Create(Box::new(desired.checked()?))]);
    };
    let adopt = adopt(spec, desired, balancer);
    let rest = [settings(desired, balancer), units(desired, balancer)];
    // What is wrong with the rest keeps no Node waiting.
    let is_fine = desired.problems.is_empty();
    let rest = rest.into_iter().flatten().filter(|_| is_fine);
    let changes = targets(desired, balancer).into_iter().chain(rest);
    let replace = changes.map(|(change, request)| Step::Replace {
        id: balancer.id.clone(),
        request: Box::new(request),
        change,
    });
    Ok(adopt.into_iter().chain(replace).collect())
}

/// One that the Service asks for gets the tags that it lacks, also if the Service points at it already.
fn adopt(spec: &LoadBalancerSpec, desired: &Desired, have: &LoadBalancer) -> Option<Step> {
    spec.balancer_ref.adopt.as_ref()?;
    let tags = desired.request.settings.tags.iter();
    let tags = tags.filter(|tag| !have.settings.tags.contains(tag));
    let (id, tags) = (have.id.clone(), tags.cloned().collect::<Vec<_>>());
    (!tags.is_empty()).then_some(Step::Adopt { id, tags })
}

fn targets(desired: &Desired, have: &LoadBalancer) -> Option<(Change, BalancerRequest)> {
    let want = &desired.request.settings.droplet_ids;
    let now = &have.settings.droplet_ids;
    if want == now || (want.is_empty() && !desired.targets.unresolved.is_empty()) {
        // Wanted Nodes that cannot be resolved may well be the present droplets.
        return None;
    }
    let settings = BalancerSettings {
        droplet_ids: want.clone(),
        tags: desired.request.settings.tags.clone(),
        ..have.settings.clone()
    };
    let (added, removed) = (want.difference(now).count(), now.difference(want).count());
    let change = Change::Targets { added, removed };
    Some((change, desired.update(have, settings)))
}

fn settings(desired: &Desired, have: &LoadBalancer) -> Option<(Change, BalancerRequest)> {
    let want = &desired.request.settings;
    let (comparable, now) = (want.comparable(), have.settings.comparable());
    let fields = json::differing(&comparable, &now, &FIELDS);
    let request = || desired.update(have, want.clone());
    (!fields.is_empty()).then(|| (Change::Settings(fields), request()))
}

fn units(desired: &Desired, have: &LoadBalancer) -> Option<(Change, BalancerRequest)> {
    let now = wire::units(have.size_unit, have.size.as_deref());
    let request = || BalancerRequest {
        ip: None,
        ..desired.request.clone()
    };
    (desired.units != now).then(|| (Change::Units(desired.units), request()))
}
