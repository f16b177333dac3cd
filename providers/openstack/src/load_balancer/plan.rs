//! From what is to what should be. Pure.

pub(super) mod listeners;
mod network;

use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, ErrorKind, Failures, IpFamily, LoadBalancerSpec,
};
use cloudkeel_toolkit::{
    CloudBalancer as _, HasListenerKey, ListenerKey, check_unchanged, labels_of_new,
};
use serde::Serialize;

use self::listeners::{delete_pool, extra_listeners, listener_steps, remove_listener};
use self::network::{
    floating_steps, group_steps, keep_floating_ip, leave_floating_ip, release_group,
};
use super::Facts;
use super::desired::Desired;
use super::find::sharers;
use super::floating_ip::{Floating, is_made_for};
use super::observe::{Found, Observed, Role};
use super::owner::{
    NAME_PREFIX, other_services, owned_tags, released_tags, service_name, shared_tags,
};
use super::step::{Call, Kind, Part, Step};
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
            let remove = |found| remove(found, balancer_ref, facts);
            let mut steps: Vec<_> = have.found.iter().flat_map(remove).collect();
            let strays = have.strays.iter();
            steps.extend(strays.filter_map(|ip| leave_floating_ip(ip, balancer_ref, facts)));
            steps.extend(group_steps(have));
            Ok(steps)
        }
        (DesiredState::Released(balancer_ref), _) => {
            let release = |found: &Found| {
                let tags = released_tags(&found.balancer.tags, balancer_ref);
                let tags = shared_tags(tags, found.sharing.is_shared());
                (tags != found.balancer.tags).then(|| set_tags(found, tags, "release"))
            };
            let own = have.found.iter().filter(|it| it.role != Role::Sharer);
            let floating = own.filter_map(|it| it.floating_ip.as_ref());
            let kept = floating.chain(&have.strays).filter_map(keep_floating_ip);
            let kept = kept.chain(release_group(have));
            Ok(kept.chain(have.found.iter().filter_map(release)).collect())
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
    if found.sharing.is_shared() {
        let names_it = spec.options.name.is_some() && asked.name != found.balancer.name;
        check_unchanged(found, &[("name", names_it)])?;
    }
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
    let surplus = have.surplus.iter().filter(|surplus| !surplus.is_pending());
    steps.extend(surplus.flat_map(|surplus| remove(surplus, &spec.balancer_ref, facts)));
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
    let is_exclusive = found.role == Role::Owner && !found.sharing.is_shared();
    found.has_failed() && is_exclusive && never_served
}

fn failed(spec: &LoadBalancerSpec, found: &Found) -> Result<Vec<Step>, CloudError> {
    let id = &found.balancer.id;
    if is_rebuilt(&spec.balancer_ref, found) {
        let call = Call::DeleteFailed { id: id.clone() };
        let text = format!("delete load balancer {id}, which is in ERROR");
        return Ok(vec![Step::new(Part::Balancer, call, text)]);
    }
    let message = format!(
        "load balancer {id} is in ERROR: have it failed over by an administrator, or delete it"
    );
    Err(CloudError::new(OPERATION, ErrorKind::Unavailable, message))
}

/// A new load balancer with everything that belongs to it, unless the provider takes only one piece at a time.
fn create(spec: &LoadBalancerSpec, asked: &Desired, facts: &Facts) -> Step {
    let balancer_ref = &spec.balancer_ref;
    let listeners = asked.listeners.iter().filter(|_| !facts.serial);
    let listeners = listeners.map(|it| it.whole(vec![asked.service_name.clone()]));
    let network = &asked.network;
    let has_port = asked.port_id.is_some();
    let chosen = asked.is_internal || asked.family == IpFamily::V6;
    let (service, cluster) = (&balancer_ref.service, &balancer_ref.cluster.name);
    let tags = owned_tags(&[], balancer_ref, facts.cluster.as_deref());
    let is_shared = !labels_of_new(balancer_ref).is_empty();
    let new = NewBalancer {
        name: asked.name.clone(),
        description: format!("Kubernetes external service {service} from cluster {cluster}"),
        provider: facts.provider.clone(),
        tags: shared_tags(tags, is_shared),
        vip_subnet_id: network.subnet.clone().filter(|_| !has_port),
        vip_network_id: network.network.clone().filter(|_| !has_port),
        vip_port_id: asked.port_id.clone(),
        vip_address: asked.address.filter(|_| chosen),
        flavor_id: asked.flavor.clone(),
        availability_zone: asked.availability_zone.clone(),
        listeners: listeners.collect(),
    };
    let targets = asked.listeners.first().map_or(0, |it| it.members.len());
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
    let is_shared = found.sharing.is_shared();
    let is_owner = found.role == Role::Owner && !is_shared;
    let is_old_cluster = is_owner && is_renamed(old, spec) && asked.name == *new;
    let tags = match found.role {
        Role::Adopter => owned_tags(&balancer.tags, &spec.balancer_ref, facts.cluster.as_deref()),
        Role::Owner if is_old_cluster => renamed(&balancer.tags, old, new),
        Role::Owner | Role::Sharer if balancer.tags.contains(new) => balancer.tags.clone(),
        Role::Owner | Role::Sharer => balancer.tags.iter().chain([new]).cloned().collect(),
    };
    let tags = match found.role {
        Role::Sharer => tags,
        Role::Owner | Role::Adopter => shared_tags(tags, is_shared),
    };
    let is_default = *old == spec.balancer_ref.service.default_balancer_name();
    let keeps_name = found.role == Role::Sharer || is_shared || is_default;
    let name = Some(&asked.name).filter(|name| !keeps_name && *name != old);
    let mut steps = Vec::new();
    let tags = Some(tags).filter(|tags| *tags != balancer.tags);
    if is_old_cluster {
        steps.extend(rename_parts(found, old, new));
    }
    if name.is_some() || tags.is_some() {
        let verb = match found.role {
            Role::Adopter => "adopt",
            Role::Owner | Role::Sharer => "name and tag",
        };
        let name = name.cloned();
        steps.push(change_balancer(found, verb, &NameAndTags { name, tags }));
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
    let step = |kind, id: &str, name: &str, tags: Option<Vec<String>>| {
        let name = name.contains(old).then(|| name.replace(old, new))?;
        let text = format!("rename {id} to {name}");
        let name = Some(name);
        let patch = NameAndTags { name, tags };
        Some(Step::update(Part::Balancer, kind, id, &patch, text))
    };
    let pools = found.pools.iter().map(|parts| &parts.pool);
    let pools = pools.filter_map(|it| step(Kind::Pool, &it.id, &it.name, None));
    let monitors = found.pools.iter().filter_map(|it| it.monitor.as_ref());
    let monitors = monitors.filter_map(|it| step(Kind::Monitor, &it.id, &it.name, None));
    let listeners = found.listeners.iter().filter_map(|it| {
        let tags = renamed(&it.tags, old, new);
        step(Kind::Listener, &it.id, &it.name, Some(tags))
    });
    monitors.chain(pools).chain(listeners).collect()
}

fn renamed(tags: &[String], old: &str, new: &str) -> Vec<String> {
    let renamed = |tag: &String| if tag == old { new } else { tag }.to_owned();
    tags.iter().map(renamed).collect()
}

/// What is taken away when the Service goes: all of a load balancer that no other Service or client uses, else its listeners.
fn remove(found: &Found, balancer_ref: &BalancerRef, facts: &Facts) -> Vec<Step> {
    let balancer = &found.balancer;
    let mut others = other_services(&balancer.tags, &found.service);
    let has_others = others.next().is_some();
    let floating_ip = found.floating_ip.as_ref();
    let floating_ip = floating_ip.filter(|ip| is_made_for(ip, balancer_ref));
    if found.role == Role::Sharer || has_others || found.sharing.outlives_service() {
        let listeners = found.our_listeners();
        let removed = listeners.flat_map(|it| remove_listener(it, found));
        let mut steps: Vec<_> = removed.collect();
        // Others may be reached by it.
        let floating_ip = floating_ip.filter(|_| found.role != Role::Sharer);
        steps.extend(floating_ip.and_then(keep_floating_ip));
        let tags = released_tags(&balancer.tags, balancer_ref);
        if tags != balancer.tags {
            let mut step = set_tags(found, tags, "leave");
            step.part = Part::End;
            steps.push(step);
        }
        return steps;
    }
    let mut steps = Vec::new();
    steps.extend(floating_ip.and_then(|ip| leave_floating_ip(ip, balancer_ref, facts)));
    let (id, text) = (&balancer.id, format!("delete {}", balancer.in_words()));
    if facts.cascade_delete {
        let call = Call::DeleteCascade { id: id.clone() };
        steps.push(Step::new(Part::End, call, text));
        return steps;
    }
    let listeners = found.listeners.iter();
    steps.extend(listeners.flat_map(|it| remove_listener(it, found)));
    let pools = found.pools.iter();
    let loose = pools.filter(|parts| parts.pool.listeners.is_empty());
    steps.extend(loose.map(|parts| delete_pool(Part::End, parts)));
    steps.push(Step::delete(Part::End, Kind::Balancer, id, text));
    steps
}

fn set_tags(found: &Found, tags: Vec<String>, verb: &str) -> Step {
    let (name, tags) = (None, Some(tags));
    change_balancer(found, verb, &NameAndTags { name, tags })
}

fn change_balancer(found: &Found, verb: &str, patch: &NameAndTags) -> Step {
    let (id, part) = (&found.balancer.id, Part::Balancer);
    let text = format!("{verb} load balancer {id}");
    Step::update(part, Kind::Balancer, id, patch, text)
}

/// What of the desired state cannot be met although the load balancer is there.
pub(super) fn unmet(have: &Observed) -> Vec<Failures> {
    let mut unmet = have.unresolved.clone();
    let (Some(asked), Some(found)) = (&have.asked, have.found.first()) else {
        return unmet;
    };
    unmet.extend(found.sharing.unmet());
    let others = found.listeners.iter().filter(|it| !found.is_ours(it));
    let others: Vec<_> = others.map(HasListenerKey::listener_key).collect();
    let wanted = asked.listeners.iter().map(HasListenerKey::listener_key);
    let is_taken = |key: &ListenerKey| others.contains(key) && !found.sharing.is_shared();
    unmet.extend(wanted.filter(is_taken).map(|key| {
        Failures::invalid(format!(
            "the listener port {key} already exists: another Service of load balancer {} has it",
            found.balancer.id
        ))
    }));
    if let Floating::Unavailable(why) = &have.floating {
        unmet.push(why.clone());
    }
    unmet
}
