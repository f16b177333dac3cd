//! From what is to what should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{
    self as api, BalancerRef, CloudError, DesiredState, Failures, LoadBalancerSpec,
};
use cloudkeel_toolkit::{
    self as toolkit, Capacity, DesiredTargets, HasListenerKey as _, ListenerChange, ListenerDiff,
    SharedParts, TargetDiff, diff_listeners, labelled_as_shared, unshareable,
};

use super::desired::Desired;
use super::observe::Observed;
use super::step::{Step, changed};
use super::{Facts, OWNER};
use crate::wire::{Balancer, BalancerPatch, Listener, Target, TargetAt, TargetChange, TargetState};

/// The steps from `have` to the desired state, in the order in which they are taken.
pub(super) fn plan(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    match desired {
        DesiredState::Present(spec) => present(spec, have, facts),
        DesiredState::Absent(_) => {
            let absent = |balancer| absent(balancer, have.shared.as_ref());
            Ok(have.found.ours.iter().flat_map(absent).collect())
        }
        DesiredState::Released(_) => {
            let retain = |balancer| retain(balancer, have.shared.is_some());
            Ok(have.found.ours.iter().map(retain).collect())
        }
    }
}

fn present(
    spec: &LoadBalancerSpec,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let Some(desired) = &have.desired else {
        return Ok(Vec::new());
    };
    if !desired.impossible.is_empty() {
        let why = desired.impossible.join("; ");
        return Err(CloudError::invalid("plan load balancer", why));
    }
    let Some(balancer) = have.found.balancer() else {
        let new = desired.new_balancer(spec, facts);
        return Ok(vec![Step::Create(Box::new(new))]);
    };
    let shared = have.shared.as_ref();
    let adopt = have
        .found
        .adoptable
        .as_ref()
        .map(|b| adopt(b, &spec.balancer_ref, shared, facts));
    let label = have.found.ours.first().map(|b| label(b, shared));
    let label = label.and_then(|patch| change(balancer, patch));
    let listeners = set_listeners(desired, balancer, shared, facts);
    let targets = change_targets(&desired.targets, balancer, shared, facts);
    let (access, rest) = if shared.is_some() {
        let asked = changed(&asked_of_all(spec, desired, balancer));
        unshareable(&balancer.id.to_string(), &asked)?;
        (None, Vec::new())
    } else {
        let rest = [
            options(desired, balancer),
            name(desired, balancer),
            kind(desired, balancer),
        ];
        (change(balancer, access(desired, balancer)), rest.into())
    };
    let rest = rest.into_iter().filter_map(|patch| change(balancer, patch));
    let steps = [adopt, label, access, targets, listeners];
    Ok(steps.into_iter().flatten().chain(rest).collect())
}

/// What is protected stays, and what is shared too without the Service's part of it. Neither is ours any more.
fn absent(balancer: &Balancer, shared: Option<&SharedParts>) -> Vec<Step> {
    let Balancer { id, version, .. } = *balancer;
    let shared = shared.filter(|shared| !shared.is_deleted() || balancer.protected);
    let Some(shared) = shared else {
        return vec![if balancer.protected {
            release(balancer)
        } else {
            Step::Delete { id, version }
        }];
    };
    let stays = |listener: &&Listener| shared.is_foreign_listener(listener.listener_key());
    let listeners: Vec<_> = balancer.listeners.iter().filter(stays).cloned().collect();
    let listeners = (listeners != balancer.listeners).then_some(Step::SetListeners {
        id,
        version,
        listeners,
    });
    let ours = balancer.targets.iter().map(|target| target.at);
    let change = TargetChange {
        remove: ours.filter(|at| !shared.is_foreign_target(at)).collect(),
        ..TargetChange::default()
    };
    let targets = (!change.is_empty()).then_some(Step::ChangeTargets {
        id,
        version,
        change,
    });
    let steps = listeners.into_iter().chain(targets);
    steps.chain([release(balancer)]).collect()
}

/// Without its owner labels it is no longer ours.
fn release(balancer: &Balancer) -> Step {
    retain(balancer, false)
}

/// The same with all of its parts: who adopts it has to know that they are not one owner's.
fn retain(balancer: &Balancer, is_shared: bool) -> Step {
    Step::Release {
        id: balancer.id,
        version: balancer.version,
        labels: labelled_as_shared(OWNER.removed(&balancer.labels), is_shared),
    }
}

fn adopt(
    balancer: &Balancer,
    balancer_ref: &BalancerRef,
    shared: Option<&SharedParts>,
    facts: &Facts,
) -> Step {
    let labels = OWNER.added(&balancer.labels, balancer_ref, facts.cluster.as_deref());
    Step::Adopt {
        id: balancer.id,
        version: balancer.version,
        labels: labelled_as_shared(labels, shared.is_some()),
    }
}

/// Says in the cloud that a balancer is shared, or is not any more.
fn label(balancer: &Balancer, shared: Option<&SharedParts>) -> BalancerPatch {
    let labels = labelled_as_shared(balancer.labels.clone(), shared.is_some());
    BalancerPatch {
        labels: differing(&labels, &balancer.labels),
        ..BalancerPatch::default()
    }
}

/// What the Service itself asks of the balancer as a whole, and is not so.
fn asked_of_all(spec: &LoadBalancerSpec, want: &Desired, have: &Balancer) -> BalancerPatch {
    let (asked, access, rest) = (&spec.options, access(want, have), options(want, have));
    let ranges = access
        .source_ranges
        .filter(|_| !spec.source_ranges.is_empty());
    let affinity = rest.affinity.filter(|_| want.affinity.is_some());
    BalancerPatch {
        name: name(want, have).name.filter(|_| asked.name.is_some()),
        kind: kind(want, have).kind,
        internal: access.internal.filter(|_| asked.internal.is_some()),
        address: access.address,
        source_ranges: ranges,
        hostname: rest.hostname.filter(|_| want.hostname.is_some()),
        algorithm: rest.algorithm.filter(|_| asked.algorithm.is_some()),
        proxy_protocol: rest
            .proxy_protocol
            .filter(|_| asked.proxy_protocol.is_some()),
        affinity,
        protected: rest.protected,
        ..BalancerPatch::default()
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

/// Which clients reach it, and at which addresses. Comes first, so that a new port is not open to others for a moment.
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

fn listener_diff<'a>(
    want: &'a Desired,
    have: &'a Balancer,
    shared: Option<&SharedParts>,
    facts: &Facts,
) -> ListenerDiff<&'a Listener, &'a Listener> {
    let keeps = |have: &Listener| {
        shared.is_some_and(|shared| shared.is_foreign_listener(have.listener_key()))
    };
    let is_met = |want: &&Listener, have: &Listener| *want == have || keeps(have);
    let limit = facts.listener_limit();
    diff_listeners(&want.listeners, &have.listeners, limit, keeps, is_met)
}

/// All listeners that fit, for one call.
fn set_listeners(
    want: &Desired,
    have: &Balancer,
    shared: Option<&SharedParts>,
    facts: &Facts,
) -> Option<Step> {
    let diff = listener_diff(want, have, shared, facts);
    if diff.changes.is_empty() {
        return None;
    }
    let mut listeners: BTreeSet<&Listener> = have.listeners.iter().collect();
    for change in diff.changes {
        match change {
            ListenerChange::Remove(present) => _ = listeners.remove(present),
            ListenerChange::Update { desired, present } => {
                listeners.remove(present);
                listeners.insert(desired);
            }
            ListenerChange::Add(desired) => _ = listeners.insert(desired),
        }
    }
    Some(Step::SetListeners {
        id: have.id,
        version: have.version,
        listeners: listeners.into_iter().cloned().collect(),
    })
}

fn change_targets(
    want: &DesiredTargets<TargetAt>,
    have: &Balancer,
    shared: Option<&SharedParts>,
    facts: &Facts,
) -> Option<Step> {
    let change = target_change(target_diff(want, &have.targets, shared, facts));
    (!change.is_empty()).then_some(Step::ChangeTargets {
        id: have.id,
        version: have.version,
        change,
    })
}

pub(super) fn target_diff(
    want: &DesiredTargets<TargetAt>,
    have: &[Target],
    shared: Option<&SharedParts>,
    facts: &Facts,
) -> TargetDiff<TargetAt> {
    let present = have.iter().map(|target| match target.state {
        TargetState::Serving => (target.at, api::TargetState::Serving),
        TargetState::Draining => (target.at, api::TargetState::Draining),
    });
    let capacity = Capacity::of(facts.target_limit());
    let keeps = |at: &TargetAt| shared.is_some_and(|shared| shared.is_foreign_target(at));
    want.diff(&present.collect(), 0, capacity, keeps)
}

/// All changes of targets, for one call.
pub(super) fn target_change(diff: TargetDiff<TargetAt>) -> TargetChange {
    let mut change = TargetChange::default();
    for changed in diff.changes {
        match changed {
            toolkit::TargetChange::Add { target, .. } => change.add.push(target),
            toolkit::TargetChange::Drain(target) => change.drain.push(target),
            toolkit::TargetChange::Remove { target, .. } => change.remove.push(target),
        }
    }
    change.add.sort_unstable();
    change
}

/// How many targets drain that are not asked for.
pub(super) fn unwanted_draining(have: &Observed, balancer: &Balancer) -> usize {
    let wanted = have.desired.as_ref().map(|want| &want.targets.places);
    let is_unwanted = |at: &TargetAt| wanted.is_some_and(|wanted| !wanted.contains_key(at));
    let mut targets = balancer.targets.clone();
    targets.retain(|it| it.state == TargetState::Draining && is_unwanted(&it.at));
    targets.len()
}

/// What does not fit on the balancer: it is left out of the plan.
pub(super) fn over_limits(have: &Observed, balancer: &Balancer, facts: &Facts) -> Vec<Failures> {
    let Some(want) = &have.desired else {
        return Vec::new();
    };
    let shared = have.shared.as_ref();
    let targets = target_diff(&want.targets, &balancer.targets, shared, facts);
    let listeners = listener_diff(want, balancer, shared, facts);
    let listeners = listeners.over_limit(facts.listener_limit());
    let targets = targets.over_limit(facts.target_limit());
    let taken = shared.and_then(SharedParts::unmet);
    targets.into_iter().chain(listeners).chain(taken).collect()
}
