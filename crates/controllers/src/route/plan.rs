//! Plans which routes are created and deleted, from the cloud's routes and the cluster's Nodes. Pure.
//!
//! A route may be changed only if it lies in a cluster CIDR and does not overlap the Pod CIDR of a Node of another
//! owner. Of those, a route to the wrong Node of this cloud, or by an address that the Node no longer has, is replaced.
//! A blackhole, or a route to no known Node, is suspect: it is deleted only when a later list shows it too, because a
//! cloud that lists too few instances makes good routes look like blackholes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cloudkeel_api::{NodeAddress, NodeFacts, Route, RouteChange, RouteTarget};
use ipnet::IpNet;

use super::condition::Network;
use super::networks::Networks;
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;

/// Whose a Node is, as seen by the cloud whose routes are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Its own: its routes are created and kept.
    Own,
    /// Its own, but not initialized yet, so no route should lead to it.
    Uninitialized,
    /// Another owner's, or not known: left alone.
    Foreign,
}

impl Ownership {
    /// Whose a Node is, if it is known whether it belongs to the cloud whose routes are planned.
    pub fn of(node: &NodeView, is_own: bool) -> Self {
        if !is_own {
            Self::Foreign
        } else if node.facts.provider_id.is_none() && node.has_taint(UNINITIALIZED_TAINT) {
            // Its instance has not been found yet: there is nothing that a route could lead to.
            Self::Uninitialized
        } else {
            Self::Own
        }
    }
}

/// A Node, and whose it is.
pub type OwnedNode<'a> = (&'a NodeFacts, Ownership);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Deletions first.
    pub changes: Vec<RouteChange>,
    /// Blackholes and routes to no known Node, whether confirmed or not.
    pub suspects: Vec<Route>,
    /// Whether a suspect still has to be confirmed.
    pub has_unconfirmed: bool,
    /// The Nodes of this cloud.
    pub nodes: Vec<NodePlan>,
}

impl Plan {
    /// Whether a Pod CIDR gets no route because this Node has it too.
    pub(crate) fn has_conflict_with(&self, node: &str) -> bool {
        let networks = self.nodes.iter().flat_map(|it| &it.networks);
        let mut planned = networks.map(|(_, planned)| planned);
        planned.any(|it| matches!(it, NetworkPlan::Conflict { with } if with == node))
    }
}

/// What is planned for one Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// Its name.
    pub name: String,
    /// Each of its Pod CIDRs.
    pub networks: Vec<(IpNet, NetworkPlan)>,
    /// Whether any route leads to it.
    pub is_target: bool,
}

/// What is planned for one Pod CIDR of a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkPlan {
    /// Its route is right.
    Keep,
    /// Its route is created by the change of this index.
    Create(usize),
    /// A suspect route has to be confirmed first.
    Wait,
    /// It is the Pod CIDR of another Node too.
    Conflict {
        /// The other Node.
        with: String,
    },
}

impl NodePlan {
    /// What the Node's condition should say; `None` leaves it as it is. `is_created` says whether a change has
    /// succeeded; `None` if another component creates the route.
    pub fn network(&self, is_created: impl Fn(usize) -> Option<bool>) -> Option<Network> {
        if self.networks.is_empty() {
            return self.is_target.then_some(Network::Unavailable);
        }
        let mut network = Some(Network::Available);
        for (_, planned) in &self.networks {
            let has_route = match planned {
                NetworkPlan::Keep => Some(true),
                NetworkPlan::Create(change) => is_created(*change),
                NetworkPlan::Wait => None,
                NetworkPlan::Conflict { .. } => Some(false),
            };
            match has_route {
                Some(true) => {}
                Some(false) => return Some(Network::Unavailable),
                None => network = None,
            }
        }
        network
    }
}

/// Plans from `--cluster-cidr`, all routes of the cloud and all Nodes of the cluster. `is_confirmed` says whether a
/// suspect route was one before.
pub fn plan(
    cluster_cidrs: &[IpNet],
    routes: &[Route],
    nodes: &[OwnedNode<'_>],
    is_confirmed: impl Fn(&Route) -> bool,
) -> Plan {
    let index = Index::new(cluster_cidrs, routes, nodes);
    let mut plan = Plan::default();
    let mut replaced = Vec::new();
    let mut unconfirmed = BTreeSet::new();
    for route in routes {
        match index.classify_route(route) {
            Class::Right | Class::Foreign => {}
            Class::Wrong => replaced.push(route),
            Class::Suspect => {
                plan.suspects.push(route.clone());
                if is_confirmed(route) {
                    replaced.push(route);
                } else {
                    unconfirmed.insert(route.destination.trunc());
                }
            }
        }
    }
    plan.has_unconfirmed = !unconfirmed.is_empty();
    replaced.retain(|route| !unconfirmed.contains(&route.destination.trunc()));
    let deletions = replaced.into_iter().cloned().map(RouteChange::Delete);
    plan.changes.extend(deletions);
    for (node, _) in nodes.iter().filter(|node| is_own(node)) {
        let node = index.plan_node(node, &unconfirmed, &mut plan.changes);
        plan.nodes.push(node);
    }
    plan
}

fn is_own((_, ownership): &OwnedNode<'_>) -> bool {
    *ownership == Ownership::Own
}

/// What a route of the cloud is.
enum Class {
    /// It leads a Pod CIDR to its Node.
    Right,
    /// It is not ours to change.
    Foreign,
    /// It is replaced by the right one.
    Wrong,
    /// It is a blackhole, or leads to no known Node.
    Suspect,
}

/// Nodes by name, and Pod CIDRs by Node.
struct Index<'a> {
    cluster_cidrs: &'a [IpNet],
    nodes: BTreeMap<&'a str, OwnedNode<'a>>,
    /// The Pod CIDRs of our Nodes, with the Nodes that have them.
    own: BTreeMap<IpNet, BTreeSet<&'a str>>,
    /// The Pod CIDRs of Nodes that are not ours, or not yet.
    others: Networks<'a>,
    /// The right routes.
    right: BTreeSet<(IpNet, &'a str)>,
    /// Nodes to which any route leads.
    targets: BTreeSet<&'a str>,
}

impl<'a> Index<'a> {
    fn new(cluster_cidrs: &'a [IpNet], routes: &'a [Route], nodes: &[OwnedNode<'a>]) -> Self {
        let networks = |(facts, _): &OwnedNode<'a>| {
            let name = facts.name.as_str();
            let networks = facts.pod_cidrs.iter();
            networks.map(move |network| (network.trunc(), name))
        };
        let mut own = BTreeMap::<_, BTreeSet<_>>::new();
        for (network, name) in nodes.iter().filter(|it| is_own(it)).flat_map(networks) {
            own.entry(network).or_default().insert(name);
        }
        let others = nodes.iter().filter(|it| !is_own(it)).flat_map(networks);
        let targets = routes.iter().filter_map(|route| route.target.node_name());
        let mut index = Self {
            cluster_cidrs,
            own,
            others: others.collect(),
            nodes: nodes.iter().map(|it| (it.0.name.as_str(), *it)).collect(),
            right: BTreeSet::new(),
            targets: targets.collect(),
        };
        let right = routes.iter().filter_map(|route| {
            let name = route.target.node_name()?;
            index
                .is_right(route)
                .then(|| (route.destination.trunc(), name))
        });
        index.right = right.collect();
        index
    }

    fn target(&self, route: &Route) -> Option<OwnedNode<'a>> {
        self.nodes.get(route.target.node_name()?).copied()
    }

    /// Whether a route leads a Pod CIDR of one of our Nodes to it.
    fn is_right(&self, route: &Route) -> bool {
        let own = self.own.get(&route.destination.trunc());
        self.target(route).is_some_and(|(node, _)| {
            own.is_some_and(|nodes| nodes.contains(node.name.as_str()))
                && !route.blackhole
                && !has_moved(route, node)
        })
    }

    fn classify_route(&self, route: &Route) -> Class {
        if self.is_right(route) {
            return Class::Right;
        }
        if !self.may_change(route.destination) {
            return Class::Foreign;
        }
        let is_own_network = self.own.contains_key(&route.destination.trunc());
        match self.target(route) {
            Some(node) if !is_own(&node) => Class::Foreign,
            Some(_) if !route.blackhole && is_own_network => Class::Wrong,
            _ => Class::Suspect,
        }
    }

    /// Whether routes to this network are ours to change. A route that is wider than the cluster CIDR is not: no
    /// Node has such a network. Without any Node of ours that has a Pod CIDR, the credential or the cluster CIDR
    /// may be another cluster's, and no route is.
    fn may_change(&self, destination: IpNet) -> bool {
        let mut cluster_cidrs = self.cluster_cidrs.iter();
        cluster_cidrs.any(|cidr| cidr.contains(&destination))
            && !self.own.is_empty()
            && self.others.owner_of_any_part(destination).is_none()
    }

    fn plan_node(
        &self,
        node: &NodeFacts,
        unconfirmed: &BTreeSet<IpNet>,
        changes: &mut Vec<RouteChange>,
    ) -> NodePlan {
        // The same network twice is one route.
        let networks: BTreeSet<_> = node.pod_cidrs.iter().map(IpNet::trunc).collect();
        let networks = networks.into_iter().map(|network| {
            let planned = if self.right.contains(&(network, node.name.as_str())) {
                NetworkPlan::Keep
            } else if let Some(other) = self.conflicting_node(network, &node.name) {
                let with = other.to_owned();
                NetworkPlan::Conflict { with }
            } else if unconfirmed.contains(&network) {
                NetworkPlan::Wait
            } else {
                changes.push(RouteChange::Create(route_to(node, network)));
                NetworkPlan::Create(changes.len() - 1)
            };
            (network, planned)
        });
        NodePlan {
            networks: networks.collect(),
            is_target: self.targets.contains(node.name.as_str()),
            name: node.name.clone(),
        }
    }

    /// The other Node that gets the route to a network: one that is not ours, or the one of ours that has the
    /// route already, or else the first by name.
    fn conflicting_node(&self, network: IpNet, name: &str) -> Option<&str> {
        if let Some(other) = self.others.owner_of_any_part(network) {
            return Some(other);
        }
        let nodes = self.own.get(&network)?;
        let holder = nodes.iter().find(|n| self.right.contains(&(network, n)));
        let first = holder.or_else(|| nodes.first())?;
        (*first != name).then_some(first)
    }
}

/// Whether a route was created for addresses that its Node no longer has. A Node without addresses has not moved.
fn has_moved(route: &Route, node: &NodeFacts) -> bool {
    let RouteTarget::Node { addresses, .. } = &route.target else {
        return false;
    };
    let then = sorted(addresses.iter().copied());
    let now = sorted(node.addresses.iter().filter_map(NodeAddress::ip));
    route.follows_addresses && !now.is_empty() && then != now
}

fn sorted(addresses: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort_unstable();
    addresses
}

fn route_to(node: &NodeFacts, destination: IpNet) -> Route {
    Route {
        name: String::new(),
        destination,
        target: RouteTarget::node(node),
        blackhole: false,
        follows_addresses: false,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
