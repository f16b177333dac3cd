//! From what is to what should be. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{BalancerRef, CloudError, DesiredState, ErrorKind, Failures, LoadBalancerSpec};
use cloudkeel_toolkit::{HasListenerKey as _, json};
use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::Facts;
use super::desired::{Desired, DesiredListener};
use super::floating_ip::{Floating, is_made_for_service};
use super::observe::{Found, Observed, PoolParts, Role, sharers};
use super::owner::{is_others, other_services, owned_tags, released_tags, service_name};
use super::security_group::is_same_traffic;
use super::step::{Call, Kind, Part, Step};
use crate::wire::balancer::{
    Listener, ListenerSettings, MemberSettings, MonitorSettings, NewBalancer,
};

const OPERATION: &str = "plan load balancer";

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
    let chosen = asked.is_internal || asked.family == cloudkeel_api::IpFamily::V6;
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
        let mut body = Map::new();
        body.extend(name.map(|name| ("name".to_owned(), json!(name))));
        body.extend(tags.map(|tags| ("tags".to_owned(), json!(tags))));
        let (id, body) = (&balancer.id, Value::Object(body));
        let verb = if found.role == Role::Adopter {
            "adopt"
        } else {
            "name and tag"
        };
        let text = format!("{verb} load balancer {id}");
        steps.push(Step::update(Part::Balancer, Kind::Balancer, id, body, text));
    }
    steps
}

/// Whether a load balancer has the name that the Service's had when the cluster was called otherwise.
fn is_renamed(old: &str, spec: &LoadBalancerSpec) -> bool {
    let service = &spec.balancer_ref.service;
    let end = format!("_{}_{}", service.namespace, service.name);
    old.starts_with(super::owner::NAME_PREFIX)
        && old.ends_with(&end)
        && old != service_name(&spec.balancer_ref)
}

/// The parts of a load balancer follow its name, the load balancer itself last.
fn rename_parts(found: &Found, old: &str, new: &str) -> Vec<Step> {
    let renamed = |name: &str| name.contains(old).then(|| name.replace(old, new));
    let step = |kind, id: &str, name: String, tags: Option<Vec<String>>| {
        let mut body = json!({ "name": name });
        if let (Some(body), Some(tags)) = (body.as_object_mut(), tags) {
            body.insert("tags".to_owned(), json!(tags));
        }
        let text = format!("rename {id} to {name}");
        Step::update(Part::Balancer, kind, id, body, text)
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

fn listener_steps(
    wanted: &DesiredListener,
    asked: &Desired,
    found: &Found,
    have: &Observed,
    facts: &Facts,
) -> Vec<Step> {
    let part = Part::Listener(wanted.settings.protocol_port);
    let key = wanted.settings.listener_key();
    let mut listeners = found.listeners.iter();
    let create = || {
        let mut new = wanted.new_listener(vec![asked.service_name.clone()]);
        new.loadbalancer_id = Some(found.balancer.id.clone());
        Step::create(
            part,
            Kind::Listener,
            &new,
            format!("add listener on port {key}"),
        )
    };
    let Some(listener) = listeners.find(|listener| listener.settings.listener_key() == key) else {
        return if have.unresolved.is_empty() {
            vec![create()]
        } else {
            Vec::new()
        };
    };
    if !is_ours(listener, found, &asked.service_name) {
        // Reported by `unmet`.
        return Vec::new();
    }
    if listener.settings.protocol != wanted.settings.protocol {
        if !have.unresolved.is_empty() {
            return Vec::new();
        }
        let mut steps = remove_listener(listener, found);
        steps.push(create());
        return steps;
    }
    let mut steps = Vec::new();
    if let Some(body) = listener_changes(wanted, listener, asked, have) {
        let text = format!("update listener on port {key}");
        steps.push(Step::update(part, Kind::Listener, &listener.id, body, text));
    }
    match found.pool_of(&listener.id) {
        Some(parts) if parts.pool.settings.protocol == wanted.pool.protocol => {
            steps.extend(pool_steps(wanted, parts, part, facts));
        }
        parts => {
            let delete = parts.map(|parts| delete_pool(part, parts));
            let mut new = wanted.new_pool();
            new.listener_id = Some(listener.id.clone());
            let create = Step::create(
                part,
                Kind::Pool,
                &new,
                format!("add the pool of port {key}"),
            );
            steps.extend(delete.into_iter().chain([create]));
        }
    }
    steps
}

/// What differs of a listener, or `None`.
fn listener_changes(
    wanted: &DesiredListener,
    listener: &Listener,
    asked: &Desired,
    have: &Observed,
) -> Option<Value> {
    let (mut want, is) = (wanted.settings.clone(), &listener.settings);
    if !have.unresolved.is_empty() {
        want.default_tls_container_ref
            .clone_from(&is.default_tls_container_ref);
    }
    let set = |cidrs: &Option<Vec<IpNet>>| {
        cidrs
            .as_ref()
            .map(|cidrs| cidrs.iter().copied().collect::<BTreeSet<_>>())
    };
    let header = |settings: &ListenerSettings| {
        let headers = settings.insert_headers.as_ref();
        headers
            .and_then(|headers| headers.get("X-Forwarded-For"))
            .cloned()
    };
    let mut body = Map::new();
    let mut put = |differs: bool, name: &str, value: Value| {
        if differs {
            body.insert(name.to_owned(), value);
        }
    };
    let differs = |want: Option<u32>, is: Option<u32>| want.is_some() && want != is;
    put(
        want.connection_limit != is.connection_limit,
        "connection_limit",
        json!(want.connection_limit),
    );
    for (name, want, is) in [
        (
            "timeout_client_data",
            want.timeout_client_data,
            is.timeout_client_data,
        ),
        (
            "timeout_member_connect",
            want.timeout_member_connect,
            is.timeout_member_connect,
        ),
        (
            "timeout_member_data",
            want.timeout_member_data,
            is.timeout_member_data,
        ),
        (
            "timeout_tcp_inspect",
            want.timeout_tcp_inspect,
            is.timeout_tcp_inspect,
        ),
    ] {
        put(differs(want, is), name, json!(want));
    }
    let cidrs = want.allowed_cidrs.is_some() && set(&want.allowed_cidrs) != set(&is.allowed_cidrs);
    put(cidrs, "allowed_cidrs", json!(want.allowed_cidrs));
    let headers = want.insert_headers.clone().unwrap_or_default();
    put(
        header(&want) != header(is),
        "insert_headers",
        json!(headers),
    );
    let tls = want.default_tls_container_ref != is.default_tls_container_ref;
    put(
        tls,
        "default_tls_container_ref",
        json!(want.default_tls_container_ref),
    );
    let mut tags = listener.tags.clone();
    tags.push(asked.service_name.clone());
    put(
        !listener.tags.contains(&asked.service_name),
        "tags",
        json!(tags),
    );
    (!body.is_empty()).then_some(Value::Object(body))
}

fn pool_steps(wanted: &DesiredListener, parts: &PoolParts, part: Part, facts: &Facts) -> Vec<Step> {
    let PoolParts { pool, monitor, .. } = parts;
    let port = wanted.settings.protocol_port;
    let mut steps = members_steps(wanted, parts, part, facts);
    let (want, is) = (&wanted.pool, &pool.settings);
    if want.lb_algorithm != is.lb_algorithm || want.session_persistence != is.session_persistence {
        let body = json!({
            "lb_algorithm": want.lb_algorithm,
            "session_persistence": want.session_persistence,
        });
        let text = format!("update the pool of port {port}");
        steps.push(Step::update(part, Kind::Pool, &pool.id, body, text));
    }
    let create = || {
        let mut new = wanted.new_monitor()?;
        new.pool_id = Some(pool.id.clone());
        Some(Step::create(
            part,
            Kind::Monitor,
            &new,
            format!("check the targets of port {port}"),
        ))
    };
    match (&wanted.monitor, monitor) {
        (None, None) => {}
        (Some(want), Some(is)) if want.kind == is.settings.kind => {
            if !is_monitored(want, &is.settings) {
                let text = format!("check the targets of port {port} otherwise");
                steps.push(Step::update(
                    part,
                    Kind::Monitor,
                    &is.id,
                    monitor_body(want),
                    text,
                ));
            }
        }
        (_, Some(is)) => {
            let text = format!(
                "check the targets of port {port} no longer by {}",
                is.settings.kind
            );
            steps.push(Step::delete(part, Kind::Monitor, &is.id, text));
            steps.extend(create());
        }
        (Some(_), None) => steps.extend(create()),
    }
    steps
}

fn is_monitored(want: &MonitorSettings, is: &MonitorSettings) -> bool {
    json::is_met(want, is)
}

/// Everything of a monitor but its type, which cannot be changed.
fn monitor_body(want: &MonitorSettings) -> Value {
    let mut body = json::body(want);
    if let Some(fields) = body.as_object_mut() {
        fields.remove("type");
    }
    body
}

fn members_steps(
    wanted: &DesiredListener,
    parts: &PoolParts,
    part: Part,
    facts: &Facts,
) -> Vec<Step> {
    let (pool, port) = (&parts.pool.id, wanted.settings.protocol_port);
    let is_met = |want: &MemberSettings| {
        parts
            .members
            .iter()
            .any(|is| is_same_member(want, &is.settings))
    };
    let missing: Vec<_> = wanted.members.iter().filter(|want| !is_met(want)).collect();
    let is_wanted =
        |is: &MemberSettings| wanted.members.iter().any(|want| is_same_member(want, is));
    let extra: Vec<_> = parts
        .members
        .iter()
        .filter(|is| !is_wanted(&is.settings))
        .collect();
    if missing.is_empty() && extra.is_empty() {
        return Vec::new();
    }
    if !facts.serial {
        let count = wanted.members.len();
        let call = Call::SetMembers {
            pool: pool.clone(),
            members: json::body(&wanted.members),
        };
        let text = format!("set the {count} targets of port {port}");
        return vec![Step::new(part, call, text)];
    }
    let add = missing.iter().map(|want| {
        let mut member = (*want).clone();
        member.name = serial_name(want);
        let call = Call::AddMember {
            pool: pool.clone(),
            member: json::body(&member),
        };
        Step::new(
            part,
            call,
            format!("add target {} to port {port}", want.name),
        )
    });
    let remove = extra.iter().map(|is| {
        let call = Call::RemoveMember {
            pool: pool.clone(),
            member: is.id.clone(),
        };
        Step::new(
            part,
            call,
            format!("remove target {} from port {port}", is.settings.name),
        )
    });
    add.chain(remove).collect()
}

/// The name of a target where they are added one by one.
fn serial_name(member: &MemberSettings) -> String {
    super::owner::cut(format!(
        "member_{}_{}_{}",
        member.name, member.address, member.protocol_port
    ))
}

fn is_same_member(want: &MemberSettings, is: &MemberSettings) -> bool {
    want.address == is.address
        && want.protocol_port == is.protocol_port
        && want.monitor_port == is.monitor_port
        && want.weight.unwrap_or(1) == is.weight.unwrap_or(1)
        && (want.name == is.name || serial_name(want) == is.name)
}

/// Listeners of the Service that it has no port for.
fn extra_listeners(asked: &Desired, found: &Found) -> Vec<Step> {
    let is_wanted = |listener: &Listener| {
        let key = listener.settings.listener_key();
        asked
            .listeners
            .iter()
            .any(|wanted| wanted.settings.listener_key() == key)
    };
    let extra = ours_among(found, &asked.service_name).filter(|listener| !is_wanted(listener));
    extra
        .flat_map(|listener| remove_listener(listener, found))
        .collect()
}

/// Whether a listener is this Service's: it has its tag, or, to the owner, no other Service claims it.
fn is_ours(listener: &Listener, found: &Found, name: &str) -> bool {
    match found.role {
        Role::Sharer => listener.tags.iter().any(|tag| tag == name),
        Role::Owner | Role::Adopter => !is_others(listener, &found.balancer, name),
    }
}

fn ours_among<'a>(found: &'a Found, name: &'a str) -> impl Iterator<Item = &'a Listener> {
    found
        .listeners
        .iter()
        .filter(move |listener| is_ours(listener, found, name))
}

fn remove_listener(listener: &Listener, found: &Found) -> Vec<Step> {
    let (port, key) = (
        listener.settings.protocol_port,
        listener.settings.listener_key(),
    );
    let part = Part::Listener(port);
    let pool = found
        .pool_of(&listener.id)
        .map(|parts| delete_pool(part, parts));
    let listener = Step::delete(
        part,
        Kind::Listener,
        &listener.id,
        format!("delete listener on port {key}"),
    );
    pool.into_iter().chain([listener]).collect()
}

fn delete_pool(part: Part, parts: &PoolParts) -> Step {
    Step::delete(
        part,
        Kind::Pool,
        &parts.pool.id,
        format!("delete pool {}", parts.pool.name),
    )
}

fn floating_steps(floating: &Floating) -> Option<Step> {
    let part = Part::FloatingIp;
    Some(match floating {
        Floating::Delete(ip) => delete_floating_ip(ip),
        Floating::Detach(ip) => detach(&ip.id, &ip.floating_ip_address.to_string()),
        Floating::Attach { id, ip, port } => {
            let body = json!({ "port_id": port });
            Step::update(
                part,
                Kind::FloatingIp,
                id,
                body,
                format!("attach floating IP {ip}"),
            )
        }
        Floating::Create(new) => {
            let network = new
                .first()
                .map_or("", |new| new.floating_network_id.as_str());
            let text = format!("create a floating IP in network {network}");
            Step::new(part, Call::CreateFloatingIp(new.clone()), text)
        }
        Floating::Settled
        | Floating::NoNetwork
        | Floating::NotNeeded
        | Floating::Unavailable(_) => return None,
    })
}

fn detach(id: &str, ip: &str) -> Step {
    let body = json!({ "port_id": null });
    Step::update(
        Part::FloatingIp,
        Kind::FloatingIp,
        id,
        body,
        format!("detach floating IP {ip}"),
    )
}

fn delete_floating_ip(ip: &crate::wire::network::FloatingIp) -> Step {
    let text = format!("delete floating IP {}", ip.floating_ip_address);
    Step::delete(Part::FloatingIp, Kind::FloatingIp, &ip.id, text)
}

/// The security group: made before the load balancer needs it, and deleted when no port has it any more.
fn group_steps(have: &Observed) -> Vec<Step> {
    let part = Part::SecurityGroup;
    let groups = &have.groups;
    match (&groups.wanted, &groups.present) {
        (None, None) => Vec::new(),
        (Some(wanted), None) => {
            let body = json!({ "name": wanted.name, "description": wanted.description });
            vec![Step::create(
                part,
                Kind::SecurityGroup,
                &body,
                format!("create security group {}", wanted.name),
            )]
        }
        (Some(wanted), Some(present)) => {
            let rules = &present.security_group_rules;
            let is_there = |want: &_| rules.iter().any(|is| is_same_traffic(want, &is.traffic));
            let is_wanted = |is: &_| wanted.rules.iter().any(|want| is_same_traffic(want, is));
            let add = wanted
                .rules
                .iter()
                .filter(|want| !is_there(want))
                .map(|want| {
                    let mut body = json::body(want);
                    if let Some(fields) = body.as_object_mut() {
                        fields.insert("security_group_id".to_owned(), json!(present.id));
                    }
                    let port = want.port_range_min.unwrap_or_default();
                    Step::create(
                        part,
                        Kind::Rule,
                        &body,
                        format!("let load balancers reach port {port} of Nodes"),
                    )
                });
            let remove = rules.iter().filter(|is| !is_wanted(&is.traffic));
            let remove = remove
                .map(|is| Step::delete(part, Kind::Rule, &is.id, format!("delete rule {}", is.id)));
            let attach = wanted.ports.iter().map(|port| {
                let groups: Vec<_> = port.security_groups.iter().chain([&present.id]).collect();
                port_groups(
                    port,
                    &json!(groups),
                    format!("add security group {} to port {}", present.name, port.id),
                )
            });
            add.chain(remove).chain(attach).collect()
        }
        (None, Some(present)) => {
            let detach = groups.attached.iter().map(|port| {
                let groups: Vec<_> = port
                    .security_groups
                    .iter()
                    .filter(|id| **id != present.id)
                    .collect();
                port_groups(
                    port,
                    &json!(groups),
                    format!("take security group {} from port {}", present.name, port.id),
                )
            });
            let text = format!("delete security group {}", present.name);
            let delete = Step::delete(part, Kind::SecurityGroup, &present.id, text);
            detach.chain([delete]).collect()
        }
    }
}

fn port_groups(port: &crate::wire::network::Port, groups: &Value, text: String) -> Step {
    let call = Call::Update {
        kind: Kind::Port,
        id: port.id.clone(),
        revision: port.revision_number,
        body: json!({ "security_groups": groups }),
    };
    Step::new(Part::SecurityGroup, call, text)
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
    let floating_ip = found
        .floating_ip
        .as_ref()
        .filter(|ip| is_made_for_service(ip));
    steps.extend(
        floating_ip
            .filter(|_| !facts.keeps_floating_ip(balancer_ref))
            .map(delete_floating_ip),
    );
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
    Step::update(
        Part::Balancer,
        Kind::Balancer,
        id,
        json!({ "tags": tags }),
        text,
    )
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
