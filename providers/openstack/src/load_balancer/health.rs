//! The health of targets, as Octavia's monitors find it. Pure.

use cloudkeel_api::{HealthState, TargetHealth};

use super::observe::{Found, PoolParts};
use crate::wire::balancer::{Listener, Member};

/// The health of every target for each port, under the names of the Nodes. Without a monitor nothing is known, and
/// nothing is said.
pub(super) fn target_health(found: &Found) -> Vec<TargetHealth> {
    let listeners = found.our_listeners();
    let health = listeners.filter_map(|it| Some(health_of(it, found.pool_of(&it.id)?)));
    health.flatten().collect()
}

fn health_of(listener: &Listener, parts: &PoolParts) -> Vec<TargetHealth> {
    let members = parts.members.iter();
    members
        .filter_map(|member| {
            Some(TargetHealth {
                target: name_of(member),
                listener: Some(listener.settings.protocol_port),
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
