//! Which changes of a Service matter to its balancer. Pure.

use super::wants::{Classes, wants_balancer};
use crate::view::ServiceView;

/// Whether the balancer has to be looked at again.
///
/// Everything counts that upstream counts: source ranges, ports, affinity, addresses, all
/// annotations, the UID, the traffic policy with its health check port, and how many IP families
/// there are (not their order). Labels, status and finalizers do not.
pub fn needs_update(before: &ServiceView, after: &ServiceView, classes: &Classes) -> bool {
    match (
        wants_balancer(before, classes),
        wants_balancer(after, classes),
    ) {
        (false, false) => false,
        (true, true) => differs(before, after),
        _ => true,
    }
}

fn differs(before: &ServiceView, after: &ServiceView) -> bool {
    before.class != after.class
        || before.source_ranges != after.source_ranges
        || before.ports != after.ports
        || before.affinity != after.affinity
        || before.load_balancer_ip != after.load_balancer_ip
        || before.external_ips != after.external_ips
        || before.annotations != after.annotations
        || before.service.uid != after.service.uid
        || before.traffic_policy != after.traffic_policy
        || before.health_check_node_port != after.health_check_node_port
        || before.families.len() != after.families.len()
}

#[cfg(test)]
mod tests;
