//! From what is to what should be. Pure.

mod listeners;
mod network;

use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, ErrorKind, Failures, IpFamily, LoadBalancerSpec,
};
use cloudkeel_toolkit::HasListenerKey as _;
use serde::Serialize;

use self::listeners::{
    delete_pool, extra_listeners, is_ours, listener_steps, ours_among, remove_listener,
};
use self::network::{delete_floating_ip, floating_steps, group_steps};
use super::desired::Desired;
use super::find::sharers;
use super::floating_ip::{Floating, is_made_for};
use super::observe::{Found, Observed, Role};
use super::owner::{NAME_PREFIX, other_services, owned_tags, released_tags, service_name};
use super::step::{Call, Kind, Part, Step};
use super::{Facts, keeps_floating_ip};
use crate::wire::balancer::NewBalancer;

const OPERATION: &str = "plan load balancer";

/// What is changed of a load balancer or one of its parts.
#[derive(Serialize)]
struct NameAndTags {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
}

/// The steps from `have` to the desired state, in the order in which they are taken.
pub(super) fn plan(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    match (desired, &have.asked) {
        (DesiredState::Present(spec), Some(asked)) => present(spec, asked, have, facts),
        (DesiredState::Present(_), None) => Ok(Vec::new()),
        (DesiredState::Absent(balancer_ref), _) => {
            let name = service_name(balancer_ref);
            let mut steps = Vec::new();
            for found in &have.found {
                steps.extend(remove(found, &name, balancer_ref, facts));
            }
            steps.extend(group_steps(have));
            Ok(steps)
        }
        (DesiredState::Released(balancer_ref), _) => {
            let release = |found: &Found| {
                let tags = released_tags(&found.balancer.tags, balancer_ref);
                (tags != found.balancer.tags).then(|| set_tags(found, &tags, "release"))
            };
            Ok(have.found.iter().filter_map(release).collect())
        }
    }
}

fn present(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Result<Vec<Step>, CloudError> {
    if spec.listeners.is_empty() {
        return Err(CloudError::invalid(OPERATION, "the Service has no ports"));
    }
    let groups = group_steps(have);
    let Some(found) = have.found.first() else {
        let create = create(spec, asked, facts);
        return Ok(groups.into_iter().chain([create]).collect());
    };
    check_sharing(asked, found, facts)?;
    if found.has_failed() {
        return failed(spec, found);
    }
    let mut steps = groups;
    steps.extend(own(spec, asked, found, facts));
    for listener in &asked.listeners {
        steps.extend(listener_steps(listener, asked, found, have, facts));
    }
    steps.extend(extra_listeners(asked, found));
    steps.extend(floating_steps(&have.floating));
    for surplus in have.surplus.iter().filter(|surplus| !surplus.is_pending()) {
        steps.extend(remove(
            surplus,
            &asked.service_name,
            &spec.balancer_ref,
            facts,
        ));
    }
    Ok(steps)
}

/// What a Service that shares a load balancer may not do.
fn check_sharing(asked: &Desired, found: &Found, facts: &Facts) -> Result<(), CloudError> {
    if found.role != Role::Sharer {
        return Ok(());
    }
    let (id, name) = (&found.balancer.id, &asked.service_name);
    let wrong = |message: String| Err(CloudError::invalid(OPERATION, message));
    if asked.is_internal {
        return wrong(format!(
            "an internal Service cannot share load balancer {id}"
        ));
    }
    let count = sharers(&found.balancer, name);
    if !found.balancer.tags.contains(name) && count > facts.max_shared {
        return wrong(format!(
            "load balancer {id} is shared by {} Services already, and `max-shared-lb` is {}",
            count - 1,
            facts.max_shared
        ));
    }
    Ok(())
}

/// One that never served is built again; one that did is for the operator, because its address would change.
pub(super) fn is_rebuilt(balancer_ref: &BalancerRef, found: &Found) -> bool {
    let never_served = balancer_ref.ingress.is_empty() && found.floating_ip.is_none();
    found.has_failed() && found.role == Role::Owner && never_served
}

fn failed(spec: &LoadBalancerSpec, found: &Found) -> Result<Vec<Step>, CloudError> {
    let id = &found.balancer.id;
    if is_rebuilt(&spec.balancer_ref, found) {
        let call = Call::DeleteFailed { id: id.clone() };
        return Ok(vec![Step::new(
            Part::Balancer,
            call,
            format!("delete load balancer {id}, which is in ERROR"),
        )]);
    }
    let message = format!(
        "load balancer {id} is in ERROR: have it failed over by an administrator, or delete it"
    );
    Err(CloudError::new(OPERATION, ErrorKind::Unavailable, message))
}

/// A new load balancer with everything that belongs to it, unless the provider takes only one piece at a time.
fn create(spec: &LoadBalancerSpec, asked: &Desired, facts: &Facts) -> Step {
    let balancer_ref = &spec.balancer_ref;
    let listeners = asked
        .listeners
        .iter()
        .map(|listener| listener.whole(vec![asked.service_name.clone()]));
    let network = &asked.network;
    let has_port = asked.port_id.is_some();
    let chosen = asked.is_internal || asked.family == IpFamily::V6;
    let (service, cluster) = (&balancer_ref.service, &balancer_ref.cluster.name);
    let new = NewBalancer {
        name: asked.name.clone(),
        description: format!("Kubernetes external service {service} from cluster {cluster}"),
        provider: facts.provider.clone(),
        tags: owned_tags(&[], balancer_ref, facts.cluster.as_deref()),
        vip_subnet_id: network.subnet.clone().filter(|_| !has_port),
        vip_network_id: network.network.clone().filter(|_| !has_port),
        vip_port_id: asked.port_id.clone(),
        vip_address: asked.address.filter(|_| chosen),
        flavor_id: asked.flavor.clone(),
        availability_zone: asked.availability_zone.clone(),
        listeners: if facts.serial {
            Vec::new()
        } else {
            listeners.collect()
        },
    };
    let targets = asked
        .listeners
        .first()
        .map_or(0, |listener| listener.members.len());
    let text = format!(
        "create load balancer {} ({}) with {} listeners and {targets} targets",
        new.name,
        new.provider,
        asked.listeners.len()
    );
    Step::create(Part::Balancer, Kind::Balancer, &new, text)
}

/// Tags and names. The tag comes first: without it, the listeners of a Service that shares would be taken for leftovers.
fn own(spec: &LoadBalancerSpec, asked: &Desired, found: &Found, facts: &Facts) -> Vec<Step> {
    let balancer = &found.balancer;
    let (old, new) = (&balancer.name, &asked.service_name);
    let is_old_cluster = found.role == Role::Owner && is_renamed(old, spec) && asked.name == *new;
    let tags = match found.role {
        Role::Adopter => owned_tags(&balancer.tags, &spec.balancer_ref, facts.cluster.as_deref()),
        Role::Owner if is_old_cluster => {
            let renamed = balancer
                .tags
                .iter()
                .map(|tag| if tag == old { new } else { tag });
            renamed.cloned().collect()
        }
        Role::Owner | Role::Sharer if balancer.tags.contains(new) => balancer.tags.clone(),
        Role::Owner | Role::Sharer => balancer.tags.iter().chain([new]).cloned().collect(),
    };
    let keeps_name =
        found.role == Role::Sharer || *old == spec.balancer_ref.service.default_balancer_name();
    let name = Some(&asked.name).filter(|name| !keeps_name && *name != old);
    let mut steps = Vec::new();
    let tags = Some(tags).filter(|tags| *tags != balancer.tags);
    if is_old_cluster {
        steps.extend(rename_parts(found, old, new));
    }
    if name.is_some() || tags.is_some() {
        let id = &balancer.id;
        let patch = NameAndTags {
            name: name.cloned(),
            tags,
        };
        let verb = if found.role == Role::Adopter {
            "adopt"
        } else {
            "name and tag"
        };
        let text = format!("{verb} load balancer {id}");
        steps.push(Step::update(
            Part::Balancer,
            Kind::Balancer,
            id,
            &patch,
            text,
        ));
    }
    steps
}

/// Whether a load balancer has the name that the Service's had when the cluster was called otherwise.
fn is_renamed(old: &str, spec: &LoadBalancerSpec) -> bool {
    let service = &spec.balancer_ref.service;
    let end = format!("_{}_{}", service.namespace, service.name);
    old.starts_with(NAME_PREFIX) && old.ends_with(&end) && old != service_name(&spec.balancer_ref)
}

/// The parts of a load balancer follow its name, the load balancer itself last.
fn rename_parts(found: &Found, old: &str, new: &str) -> Vec<Step> {
    let renamed = |name: &str| name.contains(old).then(|| name.replace(old, new));
    let step = |kind, id: &str, name: String, tags: Option<Vec<String>>| {
        let text = format!("rename {id} to {name}");
        let name = Some(name);
        Step::update(Part::Balancer, kind, id, &NameAndTags { name, tags }, text)
    };
    let monitors = found
        .pools
        .iter()
        .filter_map(|parts| parts.monitor.as_ref());
    let monitors =
        monitors.filter_map(|m| Some(step(Kind::Monitor, &m.id, renamed(&m.name)?, None)));
    let pools = found.pools.iter().map(|parts| &parts.pool);
    let pools = pools.filter_map(|p| Some(step(Kind::Pool, &p.id, renamed(&p.name)?, None)));
    let listeners = found.listeners.iter().filter_map(|listener| {
        let tags = listener.tags.iter().map(|tag| {
            if tag == old {
                new.to_owned()
            } else {
                tag.clone()
            }
        });
        Some(step(
            Kind::Listener,
            &listener.id,
            renamed(&listener.name)?,
            Some(tags.collect()),
        ))
    });
    monitors.chain(pools).chain(listeners).collect()
}

/// What is taken away when the Service goes: all of a load balancer that no other Service uses, else its listeners.
fn remove(found: &Found, name: &str, balancer_ref: &BalancerRef, facts: &Facts) -> Vec<Step> {
    let balancer = &found.balancer;
    let is_shared = other_services(&balancer.tags, name).next().is_some();
    if found.role == Role::Sharer || is_shared {
        let mut steps: Vec<_> = ours_among(found, name)
            .flat_map(|listener| remove_listener(listener, found))
            .collect();
        let tags = released_tags(&balancer.tags, balancer_ref);
        if tags != balancer.tags {
            let mut step = set_tags(found, &tags, "leave");
            step.part = Part::End;
            steps.push(step);
        }
        return steps;
    }
    let mut steps = Vec::new();
    let floating_ip = found.floating_ip.iter();
    let floating_ip = floating_ip.filter(|ip| is_made_for(ip, balancer_ref));
    let deleted = floating_ip.filter(|_| !keeps_floating_ip(balancer_ref));
    steps.extend(deleted.map(delete_floating_ip));
    let (id, text) = (
        &balancer.id,
        format!("delete load balancer {} ({})", balancer.id, balancer.name),
    );
    if facts.cascade_delete {
        steps.push(Step::new(
            Part::End,
            Call::DeleteCascade { id: id.clone() },
            text,
        ));
        return steps;
    }
    steps.extend(
        found
            .listeners
            .iter()
            .flat_map(|listener| remove_listener(listener, found)),
    );
    let loose = found
        .pools
        .iter()
        .filter(|parts| parts.pool.listeners.is_empty());
    steps.extend(loose.map(|parts| delete_pool(Part::End, parts)));
    steps.push(Step::delete(Part::End, Kind::Balancer, id, text));
    steps
}

fn set_tags(found: &Found, tags: &[String], verb: &str) -> Step {
    let id = &found.balancer.id;
    let text = format!("{verb} load balancer {id}");
    let patch = NameAndTags {
        name: None,
        tags: Some(tags.to_vec()),
    };
    Step::update(Part::Balancer, Kind::Balancer, id, &patch, text)
}

/// What of the desired state cannot be met although the load balancer is there.
pub(super) fn unmet(have: &Observed) -> Vec<Failures> {
    let mut unmet = have.unresolved.clone();
    let (Some(asked), Some(found)) = (&have.asked, have.found.first()) else {
        return unmet;
    };
    for wanted in &asked.listeners {
        let key = wanted.settings.listener_key();
        let mut taken = found
            .listeners
            .iter()
            .filter(|listener| listener.settings.listener_key() == key);
        if taken.any(|listener| !is_ours(listener, found, &asked.service_name)) {
            let message = format!(
                "the listener port {key} already exists: another Service of load balancer {} has it",
                found.balancer.id
            );
            unmet.push(Failures::invalid(message));
        }
    }
    if let Floating::Unavailable(why) = &have.floating {
        unmet.push(why.clone());
    }
    unmet
}
