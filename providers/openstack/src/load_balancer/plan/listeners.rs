//! Listeners and what is behind them.

use std::collections::BTreeSet;

use cloudkeel_toolkit::{HasListenerKey, Sharing, json};
use serde_json::{Map, Value, json};

use crate::load_balancer::Facts;
use crate::load_balancer::desired::FORWARDED_FOR;
use crate::load_balancer::desired::{Desired, DesiredListener};
use crate::load_balancer::observe::{Found, Observed, PoolParts};
use crate::load_balancer::owner::cut;
use crate::load_balancer::step::{Call, Kind, Part, Step};
use crate::wire::balancer::{Listener, ListenerSettings, Member, MemberSettings};

pub(super) fn listener_steps(
    wanted: &DesiredListener,
    asked: &Desired,
    found: &Found,
    have: &Observed,
    facts: &Facts,
) -> Vec<Step> {
    let part = Part::Listener(wanted.settings.protocol_port);
    let key = wanted.listener_key();
    let mut listeners = found.listeners.iter();
    let create = || {
        let mut new = wanted.new_listener(vec![asked.service_name.clone()]);
        new.loadbalancer_id = Some(found.balancer.id.clone());
        let text = format!("add listener on port {key}");
        Step::create(part, Kind::Listener, &new, text)
    };
    let Some(listener) = listeners.find(|listener| listener.listener_key() == key) else {
        let is_resolved = have.unresolved.is_empty();
        return is_resolved.then(create).into_iter().collect();
    };
    if !found.is_ours(listener) {
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
    let patch = listener_changes(wanted, listener, asked, have);
    if !patch.is_empty() {
        let (id, text) = (&listener.id, format!("update listener on port {key}"));
        steps.push(Step::update(part, Kind::Listener, id, &patch, text));
    }
    match found.pool_of(&listener.id) {
        Some(parts) if parts.pool.settings.protocol == wanted.pool.protocol => {
            steps.extend(pool_steps(wanted, parts, asked, found, facts));
        }
        parts => {
            steps.extend(parts.map(|parts| delete_pool(part, parts)));
            let mut new = wanted.new_pool();
            new.listener_id = Some(listener.id.clone());
            let text = format!("add the pool of port {key}");
            steps.push(Step::create(part, Kind::Pool, &new, text));
        }
    }
    steps
}

/// What differs of a listener.
fn listener_changes(
    wanted: &DesiredListener,
    listener: &Listener,
    asked: &Desired,
    have: &Observed,
) -> Map<String, Value> {
    let (want, is) = (&wanted.settings, &listener.settings);
    let mut patch = json::unmet(want, is);
    // One that cannot be had is not asked for.
    if !have.unresolved.is_empty() {
        patch.remove("default_tls_container_ref");
    }
    let header = |settings: &ListenerSettings| {
        let headers = settings.insert_headers.as_ref();
        headers.and_then(|headers| headers.get(FORWARDED_FOR).cloned())
    };
    if header(want) != header(is) {
        let headers = want.insert_headers.clone().unwrap_or_default();
        patch.insert("insert_headers".to_owned(), json!(headers));
    }
    if !listener.tags.contains(&asked.service_name) {
        let tags = listener.tags.iter().chain([&asked.service_name]);
        patch.insert("tags".to_owned(), tags.cloned().collect());
    }
    patch
}

fn pool_steps(
    wanted: &DesiredListener,
    parts: &PoolParts,
    asked: &Desired,
    found: &Found,
    facts: &Facts,
) -> Vec<Step> {
    let PoolParts { pool, monitor, .. } = parts;
    let port = wanted.settings.protocol_port;
    let part = Part::Listener(port);
    let mut steps = members_steps(wanted, parts, asked, &found.sharing, facts);
    let (want, is) = (&wanted.pool, &pool.settings);
    let persistence = &want.session_persistence;
    if want.lb_algorithm != is.lb_algorithm || *persistence != is.session_persistence {
        // `null` lets clients go.
        let body = json!({"lb_algorithm": want.lb_algorithm, "session_persistence": persistence});
        let text = format!("update the pool of port {port}");
        steps.push(Step::update(part, Kind::Pool, &pool.id, &body, text));
    }
    let create = || {
        let mut new = wanted.new_monitor()?;
        new.pool_id = Some(pool.id.clone());
        let text = format!("check the targets of port {port}");
        Some(Step::create(part, Kind::Monitor, &new, text))
    };
    match (&wanted.monitor, monitor) {
        (Some(want), Some(is)) if want.kind == is.settings.kind => {
            let patch = json::unmet(want, &is.settings);
            let text = format!("check the targets of port {port} otherwise");
            let update = Step::update(part, Kind::Monitor, &is.id, &patch, text);
            steps.extend(Some(update).filter(|_| !patch.is_empty()));
        }
        (_, is) => {
            steps.extend(is.as_ref().map(|is| {
                let kind = &is.settings.kind;
                let text = format!("check the targets of port {port} no longer by {kind}");
                Step::delete(part, Kind::Monitor, &is.id, text)
            }));
            steps.extend(create());
        }
    }
    steps
}

fn members_steps(
    wanted: &DesiredListener,
    parts: &PoolParts,
    asked: &Desired,
    sharing: &Sharing,
    facts: &Facts,
) -> Vec<Step> {
    let (pool, port) = (&parts.pool.id, wanted.settings.protocol_port);
    let is_ours = |member: &MemberSettings| !sharing.is_foreign_target(&member.place());
    let ours = parts.members.iter().filter(|is| is_ours(&is.settings));
    let ours: Vec<_> = ours.collect();
    let is_met = |want: &MemberSettings| ours.iter().any(|is| is_same_member(want, &is.settings));
    let missing = wanted.members.iter().filter(|want| is_ours(want));
    let missing: Vec<_> = missing.filter(|want| !is_met(want)).collect();
    let has_place = |is: &Member, want: &MemberSettings| is.settings.place() == want.place();
    let is_wanted = |is: &Member| wanted.members.iter().any(|want| has_place(is, want));
    let (kept, extra): (Vec<&Member>, Vec<&Member>) = ours
        .iter()
        .filter(|is| !is_wanted(is))
        .partition(|is| asked.keeps_draining && is.settings.drains());
    if missing.is_empty() && extra.is_empty() {
        return Vec::new();
    }
    let part = Part::Listener(port);
    if !facts.serial && !sharing.is_shared() {
        let count = wanted.members.len();
        let members = wanted.members.iter();
        let members: Vec<_> = members.chain(kept.iter().map(|is| &is.settings)).collect();
        let (pool, members) = (pool.clone(), json::body(&members));
        let text = format!("set the {count} targets of port {port}");
        return vec![Step::new(part, Call::SetMembers { pool, members }, text)];
    }
    let add = missing.iter().map(|want| {
        let mut member = (*want).clone();
        if facts.serial {
            member.name = serial_name(want);
        }
        let (pool, name) = (pool.clone(), &want.name);
        let Some(is) = ours.iter().find(|is| has_place(is, want)) else {
            let text = format!("add target {name} to port {port}");
            let member = json::body(&member);
            return Step::new(part, Call::AddMember { pool, member }, text);
        };
        let text = format!("update target {name} of port {port}");
        let (port, weight) = (member.monitor_port, want.weight.unwrap_or(1));
        let body = json!({"name": member.name, "monitor_port": port, "weight": weight});
        let member = is.id.clone();
        Step::new(part, Call::UpdateMember { pool, member, body }, text)
    });
    let remove = extra.iter().map(|is| {
        let text = format!("remove target {} from port {port}", is.settings.name);
        let (pool, member) = (pool.clone(), is.id.clone());
        Step::new(part, Call::RemoveMember { pool, member }, text)
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
    let wanted = asked.listeners.iter().map(HasListenerKey::listener_key);
    let wanted: Vec<_> = wanted.collect();
    let is_wanted = |listener: &Listener| wanted.contains(&listener.listener_key());
    let extra = found.our_listeners().filter(|it| !is_wanted(it));
    extra
        .flat_map(|listener| remove_listener(listener, found))
        .collect()
}

pub(super) fn remove_listener(listener: &Listener, found: &Found) -> Vec<Step> {
    let part = Part::Listener(listener.settings.protocol_port);
    let pool = found.pool_of(&listener.id);
    let pool = pool.map(|parts| delete_pool(part, parts));
    let text = format!("delete listener on port {}", listener.listener_key());
    let listener = Step::delete(part, Kind::Listener, &listener.id, text);
    pool.into_iter().chain([listener]).collect()
}

pub(super) fn delete_pool(part: Part, parts: &PoolParts) -> Step {
    let (id, text) = (&parts.pool.id, format!("delete pool {}", parts.pool.name));
    Step::delete(part, Kind::Pool, id, text)
}

/// How many targets drain that are not asked for.
pub(in crate::load_balancer) fn draining(asked: &Desired, found: &Found) -> usize {
    let wanted = asked.listeners.iter().flat_map(|port| &port.members);
    let wanted: Vec<_> = wanted.map(MemberSettings::place).collect();
    let pools = found.our_listeners().filter_map(|it| found.pool_of(&it.id));
    let members = pools
        .flat_map(|parts| &parts.members)
        .map(|is| &is.settings);
    let members = members.filter(|is| is.drains() && !wanted.contains(&is.place()));
    let ours = members.filter(|is| !found.sharing.is_foreign_target(&is.place()));
    ours.map(|is| is.address).collect::<BTreeSet<_>>().len()
}
