//! From what is to what should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{
    self as api, BalancerRef, CloudError, DesiredState, Failures, LoadBalancerSpec,
};
use cloudkeel_toolkit::{
    self as toolkit, Capacity, DesiredTargets, ListenerChange, ListenerDiff, Sharing, TargetDiff,
    check_unchanged,
};

use super::desired::Desired;
use super::observe::Observed;
use super::step::{Change, Step};
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
            let absent = |balancer| absent(balancer, &have.sharing);
            Ok(have.found.ours.iter().flat_map(absent).collect())
        }
        DesiredState::Released(_) => {
            let release = |balancer| release(balancer, &have.sharing);
            Ok(have.found.ours.iter().map(release).collect())
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
    let sharing = &have.sharing;
    let adoptable = have.found.adoptable.as_ref();
    let adopt = adoptable.map(|b| adopt(b, &spec.balancer_ref, sharing, facts));
    let label = have.found.ours.first().map(|b| label(b, sharing));
    let label = label.and_then(|patch| change(balancer, patch));
    let listeners = set_listeners(desired, balancer, sharing, facts);
    let targets = change_targets(&desired.targets, balancer, sharing, facts);
    let (access, rest) = if sharing.is_shared() {
        check_shared(spec, desired, balancer)?;
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
fn absent(balancer: &Balancer, sharing: &Sharing) -> Vec<Step> {
    let release = release(balancer, &Sharing::default());
    match (sharing.outlives_service(), balancer.protected) {
        (false, false) => return vec![Change::Delete.of(balancer)],
        (false, true) if !sharing.is_shared() => return vec![release],
        _ => {}
    }
    let stays = |listener: &&Listener| sharing.is_foreign_listener(*listener);
    let listeners: Vec<_> = balancer.listeners.iter().filter(stays).cloned().collect();
    let is_other = listeners != balancer.listeners;
    let listeners = is_other.then_some(Change::Listeners(listeners));
    let ours = balancer.targets.iter().map(|target| target.at);
    let change = TargetChange {
        remove: ours.filter(|at| !sharing.is_foreign_target(at)).collect(),
        ..TargetChange::default()
    };
    let targets = (!change.is_empty()).then_some(Change::Targets(change));
    let changes = listeners.into_iter().chain(targets);
    let steps = changes.map(|change| change.of(balancer));
    steps.chain([release]).collect()
}

/// Without its owner labels it is no longer ours.
fn release(balancer: &Balancer, sharing: &Sharing) -> Step {
    let labels = sharing.labelled(OWNER.removed(&balancer.labels));
    Change::Release(labels).of(balancer)
}

fn adopt(
    balancer: &Balancer,
    balancer_ref: &BalancerRef,
    sharing: &Sharing,
    facts: &Facts,
) -> Step {
    let labels = OWNER.added(&balancer.labels, balancer_ref, facts.cluster.as_deref());
    Change::Adopt(sharing.labelled(labels)).of(balancer)
}

/// Says in the cloud that a balancer is shared, or is not any more.
fn label(balancer: &Balancer, sharing: &Sharing) -> BalancerPatch {
    let labels = sharing.labelled(balancer.labels.clone());
    BalancerPatch {
        labels: differing(&labels, &balancer.labels),
        ..BalancerPatch::default()
    }
}

/// What the Service itself asks of the balancer as a whole has to be so already.
fn check_shared(
    spec: &LoadBalancerSpec,
    want: &Desired,
    have: &Balancer,
) -> Result<(), CloudError> {
    let (asked, access, rest) = (&spec.options, access(want, have), options(want, have));
    let (ranges, affinity) = (!spec.source_ranges.is_empty(), want.affinity.is_some());
    let (algorithm, proxied) = (asked.algorithm.is_some(), asked.proxy_protocol.is_some());
    let differing = [
        ("name", asked.name.is_some() && want.name != have.name),
        ("type", !kind(want, have).is_empty()),
        (
            "scheme",
            asked.internal.is_some() && access.internal.is_some(),
        ),
        ("address", access.address.is_some()),
        ("source ranges", ranges && access.source_ranges.is_some()),
        (
            "hostname",
            want.hostname.is_some() && rest.hostname.is_some(),
        ),
        ("algorithm", algorithm && rest.algorithm.is_some()),
        ("PROXY protocol", proxied && rest.proxy_protocol.is_some()),
        ("affinity", affinity && rest.affinity.is_some()),
        ("protection", rest.protected.is_some()),
    ];
    check_unchanged(have, &differing)
}

/// One change of what is not listeners and targets. There are several: what others may have taken, or the
/// cloud may not know, is changed by itself, so that nothing else is refused with it.
fn change(have: &Balancer, patch: BalancerPatch) -> Option<Step> {
    (!patch.is_empty()).then(|| Change::Patch(Box::new(patch)).of(have))
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
    sharing: &Sharing,
    facts: &Facts,
) -> ListenerDiff<&'a Listener, &'a Listener> {
    let is_met = |want: &&Listener, have: &Listener| *want == have;
    let (present, limit) = (&have.listeners, facts.listener_limit());
    sharing.diff_listeners(&want.listeners, present, limit, |_| false, is_met)
}

/// All listeners that fit, for one call.
fn set_listeners(
    want: &Desired,
    have: &Balancer,
    sharing: &Sharing,
    facts: &Facts,
) -> Option<Step> {
    let diff = listener_diff(want, have, sharing, facts);
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
    let listeners = listeners.into_iter().cloned().collect();
    Some(Change::Listeners(listeners).of(have))
}

fn change_targets(
    want: &DesiredTargets<TargetAt>,
    have: &Balancer,
    sharing: &Sharing,
    facts: &Facts,
) -> Option<Step> {
    let change = target_change(target_diff(want, &have.targets, sharing, facts));
    (!change.is_empty()).then(|| Change::Targets(change).of(have))
}

pub(super) fn target_diff(
    want: &DesiredTargets<TargetAt>,
    have: &[Target],
    sharing: &Sharing,
    facts: &Facts,
) -> TargetDiff<TargetAt> {
    let present = have.iter().map(|target| match target.state {
        TargetState::Serving => (target.at, api::TargetState::Serving),
        TargetState::Draining => (target.at, api::TargetState::Draining),
    });
    let capacity = Capacity::of(facts.target_limit());
    let keeps = |at: &TargetAt| sharing.is_foreign_target(at);
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
    let sharing = &have.sharing;
    let targets = target_diff(&want.targets, &balancer.targets, sharing, facts);
    let listeners = listener_diff(want, balancer, sharing, facts);
    let listeners = listeners.over_limit(facts.listener_limit());
    let targets = targets.over_limit(facts.target_limit());
    let taken = sharing.unmet();
    targets.into_iter().chain(listeners).chain(taken).collect()
}
