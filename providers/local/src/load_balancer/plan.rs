//! From what is to what should be. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{Claim, CloudError, LoadBalancerSpec, Wish};

use super::Facts;
use super::desired::{Desired, Targets};
use super::marks::{marked, unmarked};
use super::observe::Observed;
use super::step::Step;
use crate::wire::{Balancer, BalancerPatch, Target, TargetAt, TargetChange, TargetState};

/// The steps from `have` to the wish, in the order in which they are taken.
pub(super) fn plan(
    wish: Wish<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    match wish {
        Wish::Present(spec) => present(spec, have, facts),
        Wish::Absent(_) => Ok(have.found.ours.iter().map(absent).collect()),
        Wish::Released(_) => Ok(have.found.ours.iter().map(release).collect()),
    }
}

fn present(
    spec: &LoadBalancerSpec,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let desired = Desired::of(spec, facts)?;
    let unknown = &have.unknown_machines;
    let Some(balancer) = have.found.balancer() else {
        let new = desired.new_balancer(spec, facts, unknown);
        return Ok(vec![Step::Create(Box::new(new))]);
    };
    let adopt = have
        .found
        .adoptable
        .as_ref()
        .map(|b| adopt(b, &spec.claim, facts));
    let access = change(balancer, access(&desired, balancer));
    let listeners = set_listeners(&desired, balancer);
    let rest = [
        options(&desired, balancer),
        name(&desired, balancer),
        kind(&desired, balancer),
    ];
    let rest = rest.into_iter().filter_map(|patch| change(balancer, patch));
    let targets = change_targets(desired.targets, unknown, balancer);
    let steps = [adopt, access, targets, listeners].into_iter().flatten();
    Ok(steps.chain(rest).collect())
}

/// What is protected stays, but is no longer ours.
fn absent(balancer: &Balancer) -> Step {
    let Balancer { id, version, .. } = *balancer;
    if balancer.protected {
        return release(balancer);
    }
    Step::Delete { id, version }
}

/// Without its owner labels it is no longer ours.
fn release(balancer: &Balancer) -> Step {
    Step::Release {
        id: balancer.id,
        version: balancer.version,
        labels: unmarked(&balancer.labels),
    }
}

fn adopt(balancer: &Balancer, claim: &Claim, facts: &Facts) -> Step {
    Step::Adopt {
        id: balancer.id,
        version: balancer.version,
        labels: marked(&balancer.labels, claim, facts.cluster.as_deref()),
    }
}

/// One change of what is not listeners and targets. There are several: what others may have taken, or the
/// cloud may not know, is changed by itself, so that nothing else is refused with it.
fn change(have: &Balancer, patch: BalancerPatch) -> Option<Step> {
    (!patch.is_empty()).then(|| Step::Change {
        id: have.id,
        version: have.version,
        patch: Box::new(patch),
    })
}

/// Who reaches it, and where. Comes first, so that a new port is not open to others for a moment.
fn access(want: &Desired, have: &Balancer) -> BalancerPatch {
    BalancerPatch {
        internal: differing(&want.internal, &have.internal),
        families: differing(&want.families, &have.families),
        address: want.address.filter(|ip| !have.addresses.contains(ip)),
        source_ranges: differing(&want.source_ranges, &have.source_ranges),
        ..BalancerPatch::default()
    }
}

fn options(want: &Desired, have: &Balancer) -> BalancerPatch {
    let protected = want.protected;
    BalancerPatch {
        hostname: differing(&want.hostname, &have.hostname),
        algorithm: differing(&want.algorithm, &have.algorithm),
        proxy_protocol: differing(&want.proxy_protocol, &have.proxy_protocol),
        affinity: differing(&want.affinity, &have.affinity),
        protected: protected.and_then(|on| differing(&on, &have.protected)),
        ..BalancerPatch::default()
    }
}

fn name(want: &Desired, have: &Balancer) -> BalancerPatch {
    BalancerPatch {
        name: differing(&want.name, &have.name),
        ..BalancerPatch::default()
    }
}

fn kind(want: &Desired, have: &Balancer) -> BalancerPatch {
    let wanted = want.kind.as_ref();
    BalancerPatch {
        kind: wanted.and_then(|wanted| differing(wanted, &have.kind)),
        ..BalancerPatch::default()
    }
}

fn differing<T: PartialEq + Clone>(want: &T, have: &T) -> Option<T> {
    (want != have).then(|| want.clone())
}

fn set_listeners(want: &Desired, have: &Balancer) -> Option<Step> {
    let mut present = have.listeners.clone();
    present.sort();
    (want.listeners != present).then(|| Step::SetListeners {
        id: have.id,
        version: have.version,
        listeners: want.listeners.clone(),
    })
}

fn change_targets(want: Targets, unknown: &BTreeSet<u64>, have: &Balancer) -> Option<Step> {
    let change = target_change(&want.known(unknown), &have.targets);
    (!change.is_empty()).then_some(Step::ChangeTargets {
        id: have.id,
        version: have.version,
        change,
    })
}

/// What differs between the wanted targets and those that are there.
///
/// While a wanted target cannot be resolved it may well be one of those that are there, so nothing
/// is taken away that would leave no target to serve.
pub(super) fn target_change(want: &Targets, have: &[Target]) -> TargetChange {
    let have: BTreeMap<TargetAt, TargetState> = have.iter().map(|t| (t.at, t.state)).collect();
    let state = |at: &TargetAt| have.get(at).copied();
    let wanted = |wanted: TargetState| {
        let places = want.places.iter();
        places
            .filter(move |(_, state)| **state == wanted)
            .map(|(at, _)| *at)
    };
    let mut change = TargetChange {
        add: wanted(TargetState::Serving)
            .filter(|at| state(at) != Some(TargetState::Serving))
            .collect(),
        drain: wanted(TargetState::Draining)
            .filter(|at| state(at) == Some(TargetState::Serving))
            .collect(),
        remove: have
            .keys()
            .filter(|at| !want.places.contains_key(at))
            .copied()
            .collect(),
    };
    let serving_after = wanted(TargetState::Serving).count();
    if serving_after == 0 && !want.unresolved.is_empty() {
        change.drain.clear();
        change.remove.clear();
    }
    change
}
