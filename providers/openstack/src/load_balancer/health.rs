//! The health of targets, as Octavia's monitors find it. Pure.

use cloudkeel_api::{HealthState, TargetHealth};

use super::observe::{Found, PoolParts};
use crate::wire::balancer::Member;

/// The health of every target for each port, under the names of the Nodes. Without a monitor nothing is known, and
/// nothing is said.
pub(super) fn target_health(found: &Found) -> Vec<TargetHealth> {
    let pools = found.pools.iter();
    pools.flat_map(|parts| health_of(found, parts)).collect()
}

fn health_of(found: &Found, parts: &PoolParts) -> Vec<TargetHealth> {
    let its = &parts.pool.listeners;
    let mut listeners = found.listeners.iter();
    let listener = listeners.find(|listener| its.iter().any(|id| id.id == listener.id));
    let members = parts.members.iter();
    members
        .filter_map(|member| {
            Some(TargetHealth {
                target: name_of(member),
                listener: listener.map(|listener| listener.settings.protocol_port),
                state: state_of(member)?,
            })
        })
        .collect()
}

/// `None` for a member that is not checked, or that gets no new connections anyway.
fn state_of(member: &Member) -> Option<HealthState> {
    match member.operating_status.as_deref()? {
        "NO_MONITOR" | "DRAINING" => None,
        "ONLINE" => Some(HealthState::Healthy),
        "ERROR" => Some(HealthState::Unhealthy),
        // `OFFLINE` until the first check, too.
        _ => Some(HealthState::Unknown),
    }
}

fn name_of(member: &Member) -> String {
    let (name, address) = (&member.settings.name, member.settings.address);
    if name.is_empty() {
        return address.to_string();
    }
    name.clone()
}
