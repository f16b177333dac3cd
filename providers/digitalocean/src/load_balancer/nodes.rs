//! Which Nodes are targets. Pure.

use cloudkeel_api::{AddressKind, IpFamily, LoadBalancerSpec, NodeFacts, Target};
use cloudkeel_toolkit::{DesiredTargets, instance_of};

use crate::annotations::Network;
use crate::config::BalancerType;
use crate::id::droplet_id;

/// How many Nodes are targets, and how many of them have addresses of both families.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackCount {
    pub(super) nodes: usize,
    pub(super) dual: usize,
    /// Nodes that cannot be reached by their addresses.
    pub(super) unreachable: usize,
}

/// The droplets of Nodes that the load balancer can reach.
pub(super) fn resolve(
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    network: &str,
) -> (DesiredTargets<u64>, StackCount) {
    let mut count = StackCount::default();
    let targets = DesiredTargets::resolve(spec, |target: &Target| {
        // A Node without an ID is being initialized: it gets its addresses at the same time.
        let id = instance_of(target, droplet_id)?;
        let is_dual = network != Network::Internal.as_str()
            && reach(&target.node, kind).inspect_err(|_| count.unreachable += 1)?;
        count.nodes += 1;
        count.dual += usize::from(is_dual);
        Ok(id)
    });
    (targets, count)
}

/// Whether a Node is reached by both families, or why it is not reached at all.
fn reach(node: &NodeFacts, kind: BalancerType) -> Result<bool, &'static str> {
    let external = |family| node.ip(AddressKind::ExternalIp, family).is_some();
    let (v4, v6) = (external(IpFamily::V4), external(IpFamily::V6));
    let has_internal = node.ip(AddressKind::InternalIp, IpFamily::V4).is_some();
    match (v4, v6, kind) {
        (true, is_dual, _) => Ok(is_dual),
        (false, true, _) => Err("it has no public IPv4 address"),
        (false, false, BalancerType::Regional) if has_internal => Ok(false),
        (false, false, BalancerType::Regional) => Err("it has no IPv4 address"),
        (false, false, BalancerType::Network) => {
            Err("it has no public address, which a REGIONAL_NETWORK load balancer needs")
        }
    }
}
