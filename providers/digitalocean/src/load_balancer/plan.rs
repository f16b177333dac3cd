//! From what is to what should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{CloudError, DesiredState, LoadBalancerSpec};
use cloudkeel_toolkit::{Sharing, TagStep};

use super::desired::Desired;
use super::observe::Observed;
use super::owner::TAG;
use super::step::Step;
use crate::wire::{BalancerRequest, BalancerSettings, LoadBalancer};

/// A change in words, and the whole load balancer with it.
type Change = (String, BalancerRequest);

/// The steps from `have` to the desired state, in the order in which they are taken.
pub(super) fn plan(desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
    let ours = have.found.ours.iter();
    match (desired, &have.desired) {
        (DesiredState::Present(spec), Some(asked)) => present(spec, asked, have),
        (DesiredState::Absent(_), _) if !have.is_disowned && have.sharing.outlives_service() => {
            Ok(ours.flat_map(|it| leave(it, &have.sharing)).collect())
        }
        (DesiredState::Absent(_), _) if !have.is_disowned => {
            let delete = ours.map(|it| it.id.clone()).map(|id| Step::Delete { id });
            let tag = have.left_tag.clone().map(|tag| TagStep::Delete { tag });
            Ok(delete.chain(tag.map(Step::Tag)).collect())
        }
        // It is disowned or released.
        _ => Ok(ours.filter_map(release).collect()),
    }
}

/// Takes off what is the Service's, and then the owner tag. The API does without a droplet, but not without a port. That it
/// is shared stays on it: the Service still points at it.
fn leave(balancer: &LoadBalancer, sharing: &Sharing) -> impl Iterator<Item = Step> {
    let (id, have) = (&balancer.id, &balancer.settings);
    let mut want = BalancerSettings {
        forwarding_rules: sharing.with_foreign_listeners(&[], &have.forwarding_rules),
        droplet_ids: sharing.with_foreign_targets(&BTreeSet::new(), &have.droplet_ids),
        ..have.clone()
    };
    if want.forwarding_rules.is_empty() {
        want.forwarding_rules.clone_from(&have.forwarding_rules);
    }
    let words = || format!("take ports and droplets of the Service off load balancer {id}");
    let replace = (want != *have).then(|| replace(id, (words(), balancer.request(want))));
    replace.into_iter().chain(release(balancer))
}

fn release(balancer: &LoadBalancer) -> Option<Step> {
    TagStep::to_release(TAG, balancer).map(Step::Tag)
}

fn present(
    spec: &LoadBalancerSpec,
    desired: &Desired,
    have: &Observed,
) -> Result<Vec<Step>, CloudError> {
    let Some(balancer) = have.found.balancer() else {
        return Ok(vec![Step::Create(Box::new(desired.checked()?))]);
    };
    let tags = &desired.request.settings.tags;
    let tag = TagStep::to_tag(&spec.balancer_ref, tags, balancer);
    let rest = [settings(desired, balancer), units(desired, balancer)];
    // What is wrong with the rest keeps no Node waiting.
    let is_fine = desired.problems.is_empty();
    let rest = rest.into_iter().flatten().filter(|_| is_fine);
    let changes = targets(desired, balancer).into_iter().chain(rest);
    let replace = changes.map(|change| replace(&balancer.id, change));
    Ok(tag.into_iter().map(Step::Tag).chain(replace).collect())
}

fn replace(id: &str, (words, request): Change) -> Step {
    let (id, request) = (id.to_owned(), Box::new(request));
    Step::Replace { id, request, words }
}

fn targets(desired: &Desired, have: &LoadBalancer) -> Option<Change> {
    let want = &desired.request.settings.droplet_ids;
    let now = &have.settings.droplet_ids;
    let is_known = !desired.targets.places.is_empty() || desired.targets.unresolved.is_empty();
    if want == now || !is_known {
        // Wanted Nodes that cannot be resolved may well be the present droplets.
        return None;
    }
    let settings = BalancerSettings {
        droplet_ids: want.clone(),
        tags: desired.request.settings.tags.clone(),
        ..have.settings.clone()
    };
    let (added, removed) = (want.difference(now).count(), now.difference(want).count());
    let id = &have.id;
    let words = format!("add {added} and remove {removed} droplets at load balancer {id}");
    Some((words, have.request(settings)))
}

fn settings(desired: &Desired, have: &LoadBalancer) -> Option<Change> {
    let want = &desired.request.settings;
    let fields = want.differing(&have.settings);
    let words = || format!("change {} of load balancer {}", fields.join(", "), have.id);
    (!fields.is_empty()).then(|| (words(), have.request(want.clone())))
}

/// The API takes it only once an hour.
fn units(desired: &Desired, have: &LoadBalancer) -> Option<Change> {
    let (id, units) = (&have.id, desired.units);
    let words = || format!("resize load balancer {id} to {units} nodes");
    (units != have.units()).then(|| (words(), desired.request.clone()))
}
