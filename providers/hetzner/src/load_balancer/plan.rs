//! From what is to what should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{CloudError, LoadBalancerSpec, Wish};

use super::Facts;
use super::certificate::Certificates;
use super::create::create;
use super::desired::{Desired, Part};
use super::marks::{Aspect, marked, set_for_service, unmarked, with_set};
use super::observe::{Observed, WantedType};
use super::service::{WantedService, wanted as wanted_services};
use super::step::{Change, Step};
use super::targets::{Difference, Room, TargetChange, Wanted, difference};
use crate::config::Algorithm;
use crate::wire::{LoadBalancer, Service};

/// The steps from `have` to the wish, in the order in which they are taken.
pub(super) fn plan(
    wish: Wish<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    match wish {
        Wish::Present(spec) => present(spec, have, facts),
        // What is protected stays.
        Wish::Absent(_) => {
            let ours = have.found.ours.iter().filter(|b| !b.protection.delete);
            Ok(ours.map(|b| Step::Delete { id: b.id }).collect())
        }
        Wish::Released(_) => {
            let release = |b: &LoadBalancer| Step::Release {
                id: b.id,
                labels: unmarked(&b.labels),
            };
            Ok(have.found.ours.iter().map(release).collect())
        }
    }
}

fn present(
    spec: &LoadBalancerSpec,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let asked = Desired::of(spec, &facts.defaults);
    // A certificate last: one that is refused must keep nothing else back.
    let certificate = match &have.certificates {
        Certificates::Missing(new) => Some(Step::IssueCertificate(new.clone())),
        Certificates::NotWanted
        | Certificates::Known(_)
        | Certificates::Pending(_)
        | Certificates::Unobtainable(_) => None,
    };
    let Some(balancer) = have.found.balancer() else {
        let create = create(spec, &asked, have, facts)?;
        return Ok([create].into_iter().chain(certificate).collect());
    };
    let id = balancer.id;
    let usual = usual(balancer, &asked);
    let changes = changes(spec, &asked, have, facts, balancer, &usual);
    let (before, after) = labels(&asked, balancer, &changes, &usual);
    let adopt = have.found.ours.is_empty().then(|| {
        let labels = before.as_ref().unwrap_or(&balancer.labels);
        let labels = marked(labels, &spec.claim, facts.cluster.as_deref());
        Step::Adopt { id, labels }
    });
    let before = before.filter(|_| adopt.is_none());
    let label = |labels| Step::Label { id, labels };
    let rename = (asked.name != balancer.name).then(|| Step::Rename {
        id,
        name: asked.name.clone(),
    });
    let changes = changes
        .into_iter()
        .map(|change| Step::Change { id, change });
    let steps = adopt
        .into_iter()
        .chain(before.map(label))
        .chain(changes)
        .chain(rename)
        .chain(certificate)
        .chain(after.map(label));
    Ok(steps.collect())
}

/// Everything but names and labels. Targets and services come before whatever does not matter to them.
fn changes(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
    balancer: &LoadBalancer,
    usual: &BTreeSet<Aspect>,
) -> Vec<Change> {
    let private = facts.reaches_privately(asked);
    let (wider, smaller) = change_type(have, balancer);
    let public = asked
        .public
        .or(usual.contains(&Aspect::Public).then_some(true));
    let switch = public.filter(|on| *on != balancer.public_net.enabled);
    let mut changes = Vec::new();
    changes.extend(networks(asked, balancer, facts));
    changes.extend(wider);
    changes.extend(switch.filter(|on| *on).map(Change::Public));
    if !asked.is_unreadable(Part::Targets) {
        let wanted = Wanted::of(spec, asked, &have.dedicated);
        let targets = difference(&wanted, balancer, private, room(have, balancer));
        changes.extend(change_targets(targets, private));
    }
    let services = wanted_services(spec, asked, have.certificates.ids(), usual);
    let is_known = !asked.is_unreadable(Part::Services) && !have.certificates.is_awaited();
    changes.extend(change_services(spec, services, balancer, is_known));
    changes.extend(smaller);
    // Only when no target needs the public side any more.
    changes.extend(switch.filter(|on| !*on).map(Change::Public));
    changes.extend(algorithm(asked, balancer, usual));
    changes.extend(pointers(asked, balancer));
    changes
}

/// What was set because the Service asked for it, and is not asked for any more.
fn usual(have: &LoadBalancer, asked: &Desired) -> BTreeSet<Aspect> {
    let set = set_for_service(&have.labels);
    set.difference(&asked.aspects).copied().collect()
}

/// The labels before and after the changes, where they differ: what is about to be set because the Service
/// asks for it is written down before, and what has gone back to the usual is struck out when it has.
fn labels(
    asked: &Desired,
    have: &LoadBalancer,
    changes: &[Change],
    usual: &BTreeSet<Aspect>,
) -> (Option<Labels>, Option<Labels>) {
    let set = set_for_service(&have.labels);
    let changing: BTreeSet<Aspect> = changes.iter().flat_map(Change::aspects).collect();
    let mut more = set.clone();
    more.extend(asked.aspects.intersection(&changing));
    let mut less = set.clone();
    less.retain(|aspect| !usual.contains(aspect) || changing.contains(aspect));
    let differing = |wanted: &BTreeSet<Aspect>| {
        let differs = *wanted != set;
        differs.then(|| with_set(&have.labels, wanted))
    };
    let before = differing(&more);
    let after = differing(&less).filter(|_| before.is_none());
    (before, after)
}

type Labels = std::collections::BTreeMap<String, String>;

fn pointers(asked: &Desired, have: &LoadBalancer) -> Vec<Change> {
    let public = &have.public_net;
    [
        (&asked.ipv4_ptr, &public.ipv4),
        (&asked.ipv6_ptr, &public.ipv6),
    ]
    .into_iter()
    .filter_map(|(wanted, have)| {
        let (name, ip) = (wanted.as_ref()?, have.ip?);
        let name = name.clone();
        (have.dns_ptr.as_ref() != Some(&name)).then_some(Change::Ptr { ip, name })
    })
    .collect()
}

fn algorithm(asked: &Desired, have: &LoadBalancer, usual: &BTreeSet<Aspect>) -> Option<Change> {
    let usual = usual.contains(&Aspect::Algorithm);
    let wanted = asked.algorithm.or(usual.then_some(Algorithm::RoundRobin))?;
    (wanted.as_str() != have.algorithm.kind).then_some(Change::Algorithm(wanted))
}

/// A change of type: early if it makes room, late if it takes some away.
fn change_type(have: &Observed, balancer: &LoadBalancer) -> (Option<Change>, Option<Change>) {
    let WantedType::Change(kind) = &have.kind else {
        return (None, None);
    };
    if kind.id == balancer.kind.id {
        return (None, None);
    }
    let change = Change::Type {
        id: kind.id,
        name: kind.name.clone(),
    };
    if kind.max_targets >= balancer.kind.max_targets {
        (Some(change), None)
    } else {
        (None, Some(change))
    }
}

/// Out of every network that is not ours, and then into ours. With a wrong address there, out and in again.
fn networks(asked: &Desired, have: &LoadBalancer, facts: &Facts) -> Vec<Change> {
    let (ours, foreign): (Vec<_>, Vec<_>) = have
        .private_net
        .iter()
        .partition(|net| Some(net.network) == facts.network);
    let detach = foreign.iter().map(|net| Change::Detach {
        network: net.network,
    });
    let mut changes: Vec<_> = detach.collect();
    let Some(network) = facts
        .network
        .filter(|_| !asked.is_unreadable(Part::Network))
    else {
        return changes;
    };
    let (ip, range) = (asked.private_ipv4, asked.subnet);
    match ours.first() {
        None => changes.push(Change::Attach { network, ip, range }),
        Some(net) if ip.is_some_and(|wanted| net.ip != wanted) => changes.push(Change::Move {
            network,
            from: net.ip,
            ip,
            range,
        }),
        Some(_) => {}
    }
    changes
}

/// Ports that the Service does not have are deleted. The others are only changed if it is known how they
/// should be.
fn change_services(
    spec: &LoadBalancerSpec,
    wanted: Vec<WantedService>,
    have: &LoadBalancer,
    is_known: bool,
) -> Vec<Change> {
    let asked_for = |port: &u16| {
        let mut tcp = spec.listeners.iter().filter(|l| is_tcp(l));
        tcp.any(|listener| listener.port == *port)
    };
    let extra = have.services.iter().map(|service| service.listen_port);
    let extra = extra.filter(|port| !asked_for(port));
    let mut changes: Vec<_> = extra.map(Change::DeleteService).collect();
    if !is_known {
        return changes;
    }
    for service in wanted {
        let is_it = |have: &&Service| have.listen_port == service.listen_port;
        match have.services.iter().find(is_it) {
            Some(have) if service.is_met_by(have) => {}
            Some(_) => changes.push(Change::UpdateService(service)),
            None => changes.push(Change::AddService(service)),
        }
    }
    changes
}

fn is_tcp(listener: &cloudkeel_api::Listener) -> bool {
    listener.protocol == cloudkeel_api::Protocol::Tcp
}

fn change_targets(targets: Difference, private: bool) -> impl Iterator<Item = Change> {
    targets.changes.into_iter().map(move |change| match change {
        TargetChange::Turn(at) => Change::TurnTarget { at, private },
        TargetChange::Add { at, needs_room } => Change::AddTarget {
            at,
            private,
            needs_room,
        },
        TargetChange::Remove { at, is_last } => Change::RemoveTarget { at, is_last },
    })
}

/// How much the balancer takes, now and once it has its type.
pub(super) fn room<'a>(have: &'a Observed, balancer: &LoadBalancer) -> Room<'a> {
    let then = match &have.kind {
        WantedType::Change(kind) => kind,
        WantedType::AsItIs | WantedType::Unobtainable(_) => &balancer.kind,
    };
    Room {
        now: balancer.kind.max_targets,
        then: then.max_targets,
        full: have.full,
        outside: &have.outside,
    }
}
