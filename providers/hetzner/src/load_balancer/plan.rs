//! From what is to what should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{CloudError, DesiredState, Failures, LoadBalancerSpec};
use cloudkeel_toolkit::{
    Capacity, Labels, ListenerChange, ListenerDiff, Sharing, TargetChange, json,
};

use super::Facts;
use super::certificate::Certificates;
use super::create::create;
use super::desired::{Desired, Part};
use super::observe::{Asked, BalancerTypeChange, Observed, targets_over_limit};
use super::owner_labels::{Aspect, OWNER, set_for_service, with_set};
use super::service::{desired_services, supported};
use super::shared;
use super::step::{Change, Step};
use super::targets::TargetAt;
use crate::config::Algorithm;
use crate::wire::{BalancerType, LoadBalancer, Service};

/// The steps from `have` to the desired state, in the order in which they are taken.
pub(super) fn plan(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let ours = have.found.ours.iter();
    match (desired, &have.asked) {
        (DesiredState::Present(spec), Some(asked)) => present(spec, asked, have, facts),
        (DesiredState::Present(_), None) => Ok(Vec::new()),
        // What is protected stays.
        (DesiredState::Absent(_), _) => {
            if have.sharing.outlives_service() {
                return Ok(ours.flat_map(|b| shared::leave(b, &have.sharing)).collect());
            }
            let deleted = ours.filter(|b| !b.protection.delete);
            let certificates = have.left_certificates.iter().copied();
            let certificates = certificates.map(Step::DeleteCertificate);
            let deleted = deleted.map(|b| Step::Delete(b.id));
            Ok(deleted.chain(certificates).collect())
        }
        (DesiredState::Released(_), _) => {
            let labels = |b: &LoadBalancer| have.sharing.labelled(OWNER.removed(&b.labels));
            let release = |b: &LoadBalancer| Step::Release(b.id, labels(b));
            Ok(ours.map(release).collect())
        }
    }
}

fn present(
    spec: &LoadBalancerSpec,
    asked: &Asked,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    // A certificate last: one that is refused must keep nothing else back.
    let certificate = match &have.certificates {
        Certificates::Missing(new) => Some(Step::IssueCertificate(new.clone())),
        _ => None,
    };
    let Some(balancer) = have.found.balancer() else {
        let create = create(spec, asked, have, facts)?;
        return Ok([create].into_iter().chain(certificate).collect());
    };
    let desired = &asked.desired;
    let id = balancer.id;
    if have.sharing.is_shared() {
        shared::check(spec, desired, balancer)?;
    }
    let restored = restored(balancer, desired);
    let changes = changes(spec, asked, have, facts, balancer, &restored);
    let (before, after) = labels(desired, balancer, &have.sharing, &changes, &restored);
    let adopt = have.found.ours.is_empty().then(|| {
        let labels = before.as_ref().unwrap_or(&balancer.labels);
        let labels = OWNER.added(labels, &spec.balancer_ref, facts.cluster.as_deref());
        Step::Adopt(id, labels)
    });
    let before = before.filter(|_| adopt.is_none());
    let label = |labels| Step::Label(id, labels);
    let is_renamed = desired.name != balancer.name && !have.sharing.is_shared();
    let rename = is_renamed.then(|| Step::Rename(id, desired.name.clone()));
    let changes = changes.into_iter();
    let changes = changes.map(|change| Step::Change { id, change });
    let steps = adopt
        .into_iter()
        .chain(before.map(label))
        .chain(changes)
        .chain(rename)
        .chain(certificate)
        .chain(after.map(label));
    Ok(steps.collect())
}

/// Everything but names and labels. Targets and services come before what does not matter to them.
fn changes(
    spec: &LoadBalancerSpec,
    asked: &Asked,
    have: &Observed,
    facts: &Facts,
    balancer: &LoadBalancer,
    restored: &BTreeSet<Aspect>,
) -> Vec<Change> {
    let desired = &asked.desired;
    let (wider, smaller) = change_type(have, balancer);
    let default = restored.contains(&Aspect::Public).then_some(true);
    let public = desired.public.or(default);
    let is_exclusive = !have.sharing.is_shared();
    let switch = public.filter(|on| is_exclusive && *on != balancer.public_net.enabled);
    let mut changes = networks(desired, balancer, facts);
    // What other clients reach through networks stays reachable.
    changes.retain(|change| is_exclusive || matches!(change, Change::Attach { .. }));
    changes.extend(wider);
    changes.extend(switch.filter(|on| *on).map(Change::Public));
    if !desired.unread.concerns(Part::Targets) {
        changes.extend(change_targets(asked, have, facts, balancer));
    }
    changes.extend(change_services(service_diff(
        spec, asked, have, balancer, restored,
    )));
    changes.extend(smaller);
    // Only when no target needs the public side any more.
    changes.extend(switch.filter(|on| !*on).map(Change::Public));
    if is_exclusive {
        changes.extend(algorithm(desired, balancer, restored));
        changes.extend(pointers(desired, balancer));
    }
    changes
}

/// What was set because the Service asked for it, and is not asked for any more: it goes back to the default.
fn restored(have: &LoadBalancer, asked: &Desired) -> BTreeSet<Aspect> {
    let set = set_for_service(&have.labels);
    set.difference(&asked.aspects).copied().collect()
}

/// The labels before and after the changes, where they differ: what is about to be set because the Service
/// asks for it is written down before, and what has gone back to the default is struck out when it has.
fn labels(
    asked: &Desired,
    have: &LoadBalancer,
    sharing: &Sharing,
    changes: &[Change],
    restored: &BTreeSet<Aspect>,
) -> (Option<Labels>, Option<Labels>) {
    let set = set_for_service(&have.labels);
    let changing: BTreeSet<Aspect> = changes.iter().flat_map(Change::aspects).copied().collect();
    let mut more = set.clone();
    more.extend(asked.aspects.intersection(&changing));
    let mut less = set.clone();
    less.retain(|aspect| !restored.contains(aspect) || changing.contains(aspect));
    let differing = |wanted: &BTreeSet<Aspect>| {
        let differs = *wanted != set;
        let labels = differs.then(|| with_set(&have.labels, wanted));
        let labels = sharing.labelled(labels.unwrap_or_else(|| have.labels.clone()));
        (labels != have.labels).then_some(labels)
    };
    let before = differing(&more);
    let after = differing(&less).filter(|_| before.is_none());
    (before, after)
}

pub(super) fn pointers(asked: &Desired, have: &LoadBalancer) -> Vec<Change> {
    let public = &have.public_net;
    let addresses = [
        (&asked.ipv4_ptr, &public.ipv4),
        (&asked.ipv6_ptr, &public.ipv6),
    ];
    let differing = addresses.into_iter().filter_map(|(wanted, have)| {
        let (name, ip) = (wanted.clone()?, have.ip?);
        (have.dns_ptr.as_ref() != Some(&name)).then_some(Change::Ptr { ip, name })
    });
    differing.collect()
}

pub(super) fn algorithm(
    asked: &Desired,
    have: &LoadBalancer,
    restored: &BTreeSet<Aspect>,
) -> Option<Change> {
    let default = restored.contains(&Aspect::Algorithm);
    let default = default.then_some(Algorithm::RoundRobin);
    let algorithm = asked.algorithm.or(default)?;
    (algorithm.as_str() != have.algorithm.name).then_some(Change::Algorithm { algorithm })
}

/// A change of type: early if it takes more targets, late if it takes fewer.
fn change_type(have: &Observed, balancer: &LoadBalancer) -> (Option<Change>, Option<Change>) {
    let present = &balancer.load_balancer_type;
    let BalancerTypeChange::To(wanted) = &have.type_change else {
        return (None, None);
    };
    if wanted.id == present.id {
        return (None, None);
    }
    let change = Change::Type {
        id: wanted.id,
        name: wanted.name.clone(),
    };
    if wanted.max_targets >= present.max_targets {
        (Some(change), None)
    } else {
        (None, Some(change))
    }
}

/// Out of every network that is not ours, and then into ours. With a wrong address there, out and in again.
fn networks(asked: &Desired, have: &LoadBalancer, facts: &Facts) -> Vec<Change> {
    let nets = have.private_net.iter();
    let (ours, foreign): (Vec<_>, Vec<_>) = nets.partition(|n| Some(n.network) == facts.network);
    let detach = foreign.iter().map(|net| Change::Detach {
        network: net.network,
    });
    let mut changes: Vec<_> = detach.collect();
    let is_readable = !asked.unread.concerns(Part::Network);
    let Some(network) = facts.network.filter(|_| is_readable) else {
        return changes;
    };
    let (ip, ip_range) = (asked.private_ipv4, asked.subnet);
    match ours.first() {
        None => changes.push(Change::Attach {
            network,
            ip,
            ip_range,
        }),
        Some(net) if ip.is_some_and(|wanted| net.ip != wanted) => changes.push(Change::Move {
            network,
            from: net.ip,
            ip,
            ip_range,
        }),
        Some(_) => {}
    }
    changes
}

/// What differs between the services. Ports that the Service does not have are deleted. The others are only
/// changed if it is known how they should be.
pub(super) fn service_diff<'b>(
    spec: &LoadBalancerSpec,
    Asked { desired, .. }: &Asked,
    have: &Observed,
    balancer: &'b LoadBalancer,
    restored: &BTreeSet<Aspect>,
) -> ListenerDiff<Service, &'b Service> {
    let services = desired_services(spec, desired, have.certificates.ids(), restored);
    let is_known = !desired.unread.concerns(Part::Services) && !have.certificates.is_awaited();
    let limit = planned_type(have, balancer).max_services;
    let is_of_spec = |have: &Service| supported(spec).any(|port| port.port == have.listen_port);
    let services = services.into_iter().filter(|_| is_known);
    let present = &balancer.services;
    let sharing = &have.sharing;
    sharing.diff_listeners(services, present, limit, is_of_spec, json::is_met)
}

fn change_services(diff: ListenerDiff<Service, &Service>) -> impl Iterator<Item = Change> {
    diff.changes.into_iter().map(|change| match change {
        ListenerChange::Remove(Service { listen_port, .. }) => Change::DeleteService {
            listen_port: *listen_port,
        },
        ListenerChange::Update { desired, .. } => Change::UpdateService(desired),
        ListenerChange::Add(desired) => Change::AddService(desired),
    })
}

/// Servers that are known not to be in the network are not taken out to be reached through it.
fn change_targets(
    asked: &Asked,
    have: &Observed,
    facts: &Facts,
    balancer: &LoadBalancer,
) -> Vec<Change> {
    let private = facts.reaches_privately(&asked.desired);
    let misrouted = asked.targets.misrouted(balancer, private).into_iter();
    let misrouted = misrouted.filter(|id| !(private && have.outside.contains(id)));
    let sharing = &have.sharing;
    let ours = misrouted.map(TargetAt::Server);
    let ours = ours.filter(|at| !sharing.is_foreign_target(at));
    let retarget = ours.map(|at| Change::Retarget { at, private });
    let capacity = capacity(have, balancer);
    let diff = asked.targets.diff(balancer, capacity, sharing);
    let changes = diff.changes.into_iter().filter_map(|change| match change {
        TargetChange::Add {
            target: at,
            needs_capacity,
        } => Some(Change::AddTarget {
            at,
            private,
            needs_capacity,
        }),
        TargetChange::Remove {
            target: at,
            is_last,
        } => Some(Change::RemoveTarget { at, is_last }),
        // The cloud cannot drain.
        TargetChange::Drain(_) => None,
    });
    retarget.chain(changes).collect()
}

/// The type that the balancer has once the plan is carried out.
pub(super) const fn planned_type<'a>(
    have: &'a Observed,
    balancer: &'a LoadBalancer,
) -> &'a BalancerType {
    match &have.type_change {
        BalancerTypeChange::To(wanted) => wanted,
        BalancerTypeChange::None | BalancerTypeChange::Unobtainable(_) => {
            &balancer.load_balancer_type
        }
    }
}

/// How many targets the balancer takes, now and once it has its type.
pub(super) const fn capacity(have: &Observed, balancer: &LoadBalancer) -> Capacity {
    Capacity {
        now: balancer.load_balancer_type.max_targets,
        planned: planned_type(have, balancer).max_targets,
        is_full: have.is_full,
    }
}

/// What does not fit on the balancer: it is left out of the plan.
pub(super) fn over_limits(
    spec: &LoadBalancerSpec,
    asked: &Asked,
    have: &Observed,
    balancer: &LoadBalancer,
) -> impl Iterator<Item = Failures> {
    let restored = restored(balancer, &asked.desired);
    let services = service_diff(spec, asked, have, balancer, &restored);
    let services = services.over_limit(planned_type(have, balancer).max_services);
    let targets = targets_over_limit(&asked.targets, have);
    targets.into_iter().chain(services)
}
