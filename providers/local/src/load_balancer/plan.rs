//! From what is to what should be. Pure.

use cloudkeel_api::{
    self as api, BalancerRef, CloudError, DesiredState, Failures, LoadBalancerSpec,
};
use cloudkeel_toolkit::{
    self as toolkit, Capacity, DesiredTargets, ListenerDiff, TargetDiff, diff_listeners,
};

use super::desired::Desired;
use super::observe::Observed;
use super::step::Step;
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
        DesiredState::Absent(_) => Ok(have.found.ours.iter().map(absent).collect()),
        DesiredState::Released(_) => Ok(have.found.ours.iter().map(release).collect()),
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
    let adopt = have
        .found
        .adoptable
        .as_ref()
        .map(|b| adopt(b, &spec.balancer_ref, facts));
    let access = change(balancer, access(desired, balancer));
    let listeners = set_listeners(desired, balancer, facts);
    let rest = [
        options(desired, balancer),
        name(desired, balancer),
        kind(desired, balancer),
    ];
    let rest = rest.into_iter().filter_map(|patch| change(balancer, patch));
    let targets = change_targets(&desired.targets, balancer, facts);
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
        labels: OWNER.removed(&balancer.labels),
    }
}

fn adopt(balancer: &Balancer, balancer_ref: &BalancerRef, facts: &Facts) -> Step {
    Step::Adopt {
        id: balancer.id,
        version: balancer.version,
        labels: OWNER.added(&balancer.labels, balancer_ref, facts.cluster.as_deref()),
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
    facts: &Facts,
) -> ListenerDiff<&'a Listener, &'a Listener> {
    let (limit, is_met) = (facts.listener_limit(), |want: &&Listener, have: &_| {
        *want == have
    });
    diff_listeners(&want.listeners, &have.listeners, limit, |_| false, is_met)
}

/// All listeners that fit, for one call.
fn set_listeners(want: &Desired, have: &Balancer, facts: &Facts) -> Option<Step> {
    let diff = listener_diff(want, have, facts);
    let fits = |listener: &&Listener| !diff.left_out.contains(listener);
    (!diff.changes.is_empty()).then(|| Step::SetListeners {
        id: have.id,
        version: have.version,
        listeners: want.listeners.iter().filter(fits).cloned().collect(),
    })
}

fn change_targets(want: &DesiredTargets<TargetAt>, have: &Balancer, facts: &Facts) -> Option<Step> {
    let change = target_change(target_diff(want, &have.targets, facts));
    (!change.is_empty()).then_some(Step::ChangeTargets {
        id: have.id,
        version: have.version,
        change,
    })
}

pub(super) fn target_diff(
    want: &DesiredTargets<TargetAt>,
    have: &[Target],
    facts: &Facts,
) -> TargetDiff<TargetAt> {
    let present = have.iter().map(|target| match target.state {
        TargetState::Serving => (target.at, api::TargetState::Serving),
        TargetState::Draining => (target.at, api::TargetState::Draining),
    });
    let capacity = Capacity::of(facts.target_limit());
    want.diff(&present.collect(), 0, capacity, |_| false)
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
    let targets = target_diff(&want.targets, &balancer.targets, facts);
    let listeners = listener_diff(want, balancer, facts).over_limit(facts.listener_limit());
    let targets = targets.over_limit(facts.target_limit());
    targets.into_iter().chain(listeners).collect()
}
