//! Listeners and what is behind them.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_toolkit::{HasListenerKey as _, json};
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use crate::load_balancer::Facts;
use crate::load_balancer::desired::FORWARDED_FOR;
use crate::load_balancer::desired::{Desired, DesiredListener};
use crate::load_balancer::observe::{Found, Observed, PoolParts, Role};
use crate::load_balancer::owner::{cut, is_others};
use crate::load_balancer::step::{Call, Kind, Part, Step};
use crate::wire::balancer::{
    Listener, ListenerSettings, MemberSettings, MonitorSettings, Persistence,
};

pub(super) fn listener_steps(
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
    if let Some(patch) = listener_changes(wanted, listener, asked, have) {
        let patch = json::body(&patch);
        let text = format!("update listener on port {key}");
        steps.push(Step::update(
            part,
            Kind::Listener,
            &listener.id,
            &patch,
            text,
        ));
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

/// What differs of a listener.
#[derive(Debug, PartialEq, Eq, Default, Serialize)]
struct ListenerPatch {
    connection_limit: Option<i32>,
    timeout_client_data: Option<u32>,
    timeout_member_connect: Option<u32>,
    timeout_member_data: Option<u32>,
    timeout_tcp_inspect: Option<u32>,
    allowed_cidrs: Option<Vec<IpNet>>,
    insert_headers: Option<BTreeMap<String, String>>,
    default_tls_container_ref: Option<String>,
    tags: Option<Vec<String>>,
}

/// A value that is asked for and differs.
fn changed<T: PartialEq + Clone>(want: Option<&T>, is: Option<&T>) -> Option<T> {
    want.filter(|_| want != is).cloned()
}

fn listener_changes(
    wanted: &DesiredListener,
    listener: &Listener,
    asked: &Desired,
    have: &Observed,
) -> Option<ListenerPatch> {
    let (want, is) = (&wanted.settings, &listener.settings);
    let set = |cidrs: &Option<Vec<IpNet>>| cidrs.iter().flatten().copied().collect::<BTreeSet<_>>();
    let has_cidrs = set(&want.allowed_cidrs) == set(&is.allowed_cidrs);
    let header = |settings: &ListenerSettings| {
        let headers = settings.insert_headers.as_ref();
        headers.and_then(|headers| headers.get(FORWARDED_FOR).cloned())
    };
    let has_header = header(want) == header(is);
    let has_tag = listener.tags.contains(&asked.service_name);
    let tags = listener.tags.iter().chain([&asked.service_name]);
    let certificate = changed(
        want.default_tls_container_ref.as_ref(),
        is.default_tls_container_ref.as_ref(),
    );
    let patch = ListenerPatch {
        connection_limit: changed(want.connection_limit.as_ref(), is.connection_limit.as_ref()),
        timeout_client_data: changed(
            want.timeout_client_data.as_ref(),
            is.timeout_client_data.as_ref(),
        ),
        timeout_member_connect: changed(
            want.timeout_member_connect.as_ref(),
            is.timeout_member_connect.as_ref(),
        ),
        timeout_member_data: changed(
            want.timeout_member_data.as_ref(),
            is.timeout_member_data.as_ref(),
        ),
        timeout_tcp_inspect: changed(
            want.timeout_tcp_inspect.as_ref(),
            is.timeout_tcp_inspect.as_ref(),
        ),
        allowed_cidrs: want.allowed_cidrs.clone().filter(|_| !has_cidrs),
        insert_headers: (!has_header).then(|| want.insert_headers.clone().unwrap_or_default()),
        // One that cannot be had is not asked for.
        default_tls_container_ref: certificate.filter(|_| have.unresolved.is_empty()),
        tags: (!has_tag).then(|| tags.cloned().collect()),
    };
    (patch != ListenerPatch::default()).then_some(patch)
}

/// What can be changed of a pool. `null` lets clients go.
#[derive(Serialize)]
struct PoolPatch<'a> {
    lb_algorithm: &'a str,
    session_persistence: &'a Option<Persistence>,
}

fn pool_steps(wanted: &DesiredListener, parts: &PoolParts, part: Part, facts: &Facts) -> Vec<Step> {
    let PoolParts { pool, monitor, .. } = parts;
    let port = wanted.settings.protocol_port;
    let mut steps = members_steps(wanted, parts, part, facts);
    let (want, is) = (&wanted.pool, &pool.settings);
    if want.lb_algorithm != is.lb_algorithm || want.session_persistence != is.session_persistence {
        let patch = PoolPatch {
            lb_algorithm: &want.lb_algorithm,
            session_persistence: &want.session_persistence,
        };
        let text = format!("update the pool of port {port}");
        steps.push(Step::update(part, Kind::Pool, &pool.id, &patch, text));
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
            if !json::is_met(want, &is.settings) {
                let text = format!("check the targets of port {port} otherwise");
                steps.push(Step::update(
                    part,
                    Kind::Monitor,
                    &is.id,
                    &monitor_body(want),
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
    cut(format!(
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
pub(super) fn extra_listeners(asked: &Desired, found: &Found) -> Vec<Step> {
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
pub(super) fn is_ours(listener: &Listener, found: &Found, name: &str) -> bool {
    match found.role {
        Role::Sharer => listener.tags.iter().any(|tag| tag == name),
        Role::Owner | Role::Adopter => !is_others(listener, &found.balancer, name),
    }
}

pub(super) fn ours_among<'a>(
    found: &'a Found,
    name: &'a str,
) -> impl Iterator<Item = &'a Listener> {
    found
        .listeners
        .iter()
        .filter(move |listener| is_ours(listener, found, name))
}

pub(super) fn remove_listener(listener: &Listener, found: &Found) -> Vec<Step> {
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

pub(super) fn delete_pool(part: Part, parts: &PoolParts) -> Step {
    Step::delete(
        part,
        Kind::Pool,
        &parts.pool.id,
        format!("delete pool {}", parts.pool.name),
    )
}
