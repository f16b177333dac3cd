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
    let steps = [
        adopt,
        change(&desired, balancer),
        set_listeners(&desired, balancer),
        change_targets(desired.targets, unknown, balancer),
    ];
    Ok(steps.into_iter().flatten().collect())
}

/// What is protected stays, but is no longer ours.
fn absent(balancer: &Balancer) -> Step {
    let Balancer { id, version, .. } = *balancer;
    if balancer.protected {
        let labels = unmarked(&balancer.labels);
        return Step::Release {
            id,
            version,
            labels,
        };
    }
    Step::Delete { id, version }
}

fn adopt(balancer: &Balancer, claim: &Claim, facts: &Facts) -> Step {
    Step::Adopt {
        id: balancer.id,
        version: balancer.version,
        labels: marked(&balancer.labels, claim, facts.cluster.as_deref()),
    }
}

fn change(want: &Desired, have: &Balancer) -> Option<Step> {
    let patch = BalancerPatch {
        name: differing(&want.name, &have.name),
        labels: None,
        kind: want
            .kind
            .as_ref()
            .and_then(|kind| differing(kind, &have.kind)),
        internal: differing(&want.internal, &have.internal),
        families: differing(&want.families, &have.families),
        address: want.address.filter(|ip| !have.addresses.contains(ip)),
        hostname: differing(&want.hostname, &have.hostname),
        algorithm: differing(&want.algorithm, &have.algorithm),
        proxy_protocol: differing(&want.proxy_protocol, &have.proxy_protocol),
        source_ranges: differing(&want.source_ranges, &have.source_ranges),
        affinity: differing(&want.affinity, &have.affinity),
        protected: want
            .protected
            .and_then(|on| differing(&on, &have.protected)),
    };
    (!patch.is_empty()).then(|| Step::Change {
        id: have.id,
        version: have.version,
        patch: Box::new(patch),
    })
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
