//! From what is to what should be. Pure.

use cloudkeel_api::{CloudError, LoadBalancerSpec, Wish};

use super::Facts;
use super::certificate::Certificates;
use super::desired::Desired;
use super::marks::marked;
use super::observe::Observed;
use super::service::{WantedService, wanted as wanted_services};
use super::step::{Change, NewBalancer, Place, Step};
use super::targets::{Difference, Room, Wanted, difference};
use crate::annotations as key;
use crate::wire::{LoadBalancer, Service};

const OPERATION: &str = "plan load balancer";

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
    }
}

fn present(
    spec: &LoadBalancerSpec,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    let asked = Desired::of(spec, &facts.defaults)?;
    check_network(&asked, facts)?;
    let services = wanted_services(spec, &asked, have.certificates.ids())?;
    let certificate = match &have.certificates {
        Certificates::Missing(new) => Some(Step::IssueCertificate(new.clone())),
        Certificates::NotWanted
        | Certificates::Known(_)
        | Certificates::Pending(_)
        | Certificates::Unobtainable(_) => None,
    };
    let Some(balancer) = have.found.balancer() else {
        have.certificates.check()?;
        let create = create(spec, &asked, have, facts)?;
        return Ok(certificate.into_iter().chain([create]).collect());
    };
    let id = balancer.id;
    let wanted = Wanted::of(spec, &asked, &have.dedicated);
    let private = asked.use_private_ip;
    let targets = difference(&wanted, balancer, private, room(have, balancer));
    let (wider, smaller) = change_type(have, balancer);
    let mut changes = Vec::new();
    changes.extend(pointers(&asked, balancer));
    changes.extend(algorithm(&asked, balancer));
    changes.extend(wider);
    changes.extend(networks(&asked, balancer, facts));
    let switch = asked.public.filter(|on| *on != balancer.public_net.enabled);
    changes.extend(switch.filter(|on| *on).map(Change::Public));
    // Targets first: a service that cannot be had must not keep traffic on Nodes that are gone.
    changes.extend(change_targets(targets, private));
    changes.extend(change_services(services, balancer, &have.certificates));
    changes.extend(smaller);
    // Only when no target needs the public side any more.
    changes.extend(switch.filter(|on| !*on).map(Change::Public));
    let changes = changes
        .into_iter()
        .map(|change| Step::Change { id, change });
    let update = update(spec, &asked, have, facts);
    // A certificate last: one that is refused must not keep traffic on Nodes that are gone.
    let steps: Vec<_> = update
        .into_iter()
        .chain(changes)
        .chain(certificate)
        .collect();
    if steps.is_empty() {
        have.certificates.check()?;
    }
    Ok(steps)
}

fn check_network(asked: &Desired, facts: &Facts) -> Result<(), CloudError> {
    if asked.use_private_ip && facts.network.is_none() {
        let message = format!(
            "{}: targets can only be reached by private addresses if HCLOUD_NETWORK (or `network`) is \
             set",
            key::USE_PRIVATE_IP.name()
        );
        return Err(CloudError::invalid(OPERATION, message));
    }
    Ok(())
}

fn create(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Result<Step, CloudError> {
    let place = match (&asked.location, &asked.network_zone) {
        (Some(location), _) => Place::Location(location.clone()),
        (None, Some(zone)) => Place::NetworkZone(zone.clone()),
        (None, None) => {
            let message = format!(
                "nobody says where to make the load balancer: annotate the Service with {} or {}, or \
                 set HCLOUD_LOAD_BALANCERS_LOCATION (or `loadBalancers.location`)",
                key::LOCATION.name(),
                key::NETWORK_ZONE.name()
            );
            return Err(CloudError::invalid(OPERATION, message));
        }
    };
    let Some(kind) = &have.kind else {
        let message = "the type of the new load balancer is not known";
        return Err(CloudError::invalid(OPERATION, message));
    };
    let nothing = std::collections::BTreeMap::new();
    Ok(Step::Create(Box::new(NewBalancer {
        name: asked.name.clone(),
        kind: (kind.id, kind.name.clone()),
        labels: marked(&nothing, &spec.claim, facts.cluster.as_deref()),
        place,
        algorithm: asked.algorithm,
        public: asked.public,
    })))
}

/// The name, and our marks on a balancer that is taken over. Marks of others are left as they are.
fn update(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Option<Step> {
    let balancer = have.found.balancer()?;
    let cluster = facts.cluster.as_deref();
    let adopted = have.found.ours.is_empty();
    let labels = adopted.then(|| marked(&balancer.labels, &spec.claim, cluster));
    let name = (asked.name != balancer.name).then(|| asked.name.clone());
    (labels.is_some() || name.is_some()).then_some(Step::Update {
        id: balancer.id,
        name,
        labels,
    })
}

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

fn algorithm(asked: &Desired, have: &LoadBalancer) -> Option<Change> {
    let wanted = asked.algorithm?;
    (wanted.as_str() != have.algorithm.kind).then_some(Change::Algorithm(wanted))
}

/// A change of type: early if it makes room, late if it takes some away.
fn change_type(have: &Observed, balancer: &LoadBalancer) -> (Option<Change>, Option<Change>) {
    let Some(kind) = &have.kind else {
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

/// Out of every network that is not ours, and out of ours if the address is wrong; then into ours.
fn networks(asked: &Desired, have: &LoadBalancer, facts: &Facts) -> Vec<Change> {
    let is_right = |net: &crate::wire::BalancerNet| {
        Some(net.network) == facts.network
            && asked.private_ipv4.is_none_or(|wanted| net.ip == wanted)
    };
    let (right, wrong): (Vec<_>, Vec<_>) = have.private_net.iter().partition(|net| is_right(net));
    let detach = wrong.iter().map(|net| Change::Detach {
        network: net.network,
    });
    let attach = facts.network.filter(|_| right.is_empty());
    let attach = attach.map(|network| Change::Attach {
        network,
        ip: asked.private_ipv4,
        range: asked.subnet,
    });
    detach.chain(attach).collect()
}

/// Services that wait for a certificate are left as they are.
fn change_services(
    wanted: Vec<WantedService>,
    have: &LoadBalancer,
    certificates: &Certificates,
) -> Vec<Change> {
    let ports: Vec<_> = wanted.iter().map(|service| service.listen_port).collect();
    let extra = have.services.iter().map(|service| service.listen_port);
    let extra = extra.filter(|port| !ports.contains(port));
    let mut changes: Vec<_> = extra.map(Change::DeleteService).collect();
    if certificates.is_awaited() {
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

fn change_targets(targets: Difference, private: bool) -> Vec<Change> {
    let add = |at| Change::AddTarget { at, private };
    let turned = targets.turned.into_iter();
    let turned = turned.flat_map(|at| [Change::RemoveTarget(at), add(at)]);
    let first = targets.add_first.into_iter().map(add);
    let removed = targets.remove.into_iter().map(Change::RemoveTarget);
    let then = targets.add_then.into_iter().map(add);
    turned.chain(first).chain(removed).chain(then).collect()
}

/// How much the balancer takes, once it has its type.
pub(super) fn room<'a>(have: &'a Observed, balancer: &LoadBalancer) -> Room<'a> {
    let kind = have.kind.as_ref().unwrap_or(&balancer.kind);
    Room {
        limit: kind.max_targets,
        full: have.full,
        refused: &have.refused,
    }
}
