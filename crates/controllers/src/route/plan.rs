//! From the cloud's routes and the cluster's Nodes to changes. Pure.
//!
//! A route may be changed only if it lies in a cluster CIDR and has nothing in common with the
//! network of a Node that is not ours. Of those, one that leads to another of our Nodes than the one
//! whose network it is, or by an address that the Node no longer has, is replaced. One that leads
//! nowhere, or to nobody we know, is suspect: it is deleted once a second look has confirmed it,
//! because a cloud that lists too few machines makes good routes look like that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use cloudkeel_api::{NodeAddress, NodeFacts, Route, RouteChange, RouteTarget};
use ipnet::IpNet;

use super::condition::Network;
use super::networks::Networks;

/// What a Node is to the cloud whose routes are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its own: its routes are made and kept.
    Own,
    /// Its own, but not initialised yet, so nothing leads to it by right.
    Newcomer,
    /// Somebody else's, or nobody knows whose: left alone.
    Foreign,
}

/// A Node, and what it is to the cloud.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The Node.
    pub facts: &'a NodeFacts,
    /// What it is to the cloud.
    pub standing: Standing,
}

/// What is planned from.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// `--cluster-cidr`
    pub cluster_cidrs: &'a [IpNet],
    /// All routes of the cloud.
    pub routes: &'a [Route],
    /// All Nodes of the cluster.
    pub nodes: &'a [Member<'a>],
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Deletions first.
    pub changes: Vec<RouteChange>,
    /// Routes that lead nowhere, or to nobody we know, whether confirmed or not.
    pub suspects: Vec<Route>,
    /// Whether a suspect still has to be confirmed.
    pub needs_second_look: bool,
    /// What becomes of the Nodes.
    pub nodes: Vec<NodePlan>,
}

/// What becomes of one Node's networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// Its name.
    pub name: String,
    /// Each of its networks.
    pub networks: Vec<(IpNet, Wish)>,
    /// Whether a route leads to it.
    pub is_target: bool,
}

/// What becomes of one network of a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Its route is as it should be.
    Kept,
    /// Its route is made by the change of this index.
    Made(usize),
    /// A suspect route stands in the way until it is confirmed.
    Waits,
    /// It belongs to another Node too.
    Contested {
        /// The other Node.
        with: String,
    },
}

impl NodePlan {
    /// What to tell about the Node's network, or `None` if that cannot be told now. `made` says
    /// whether a change has succeeded; `None` if somebody else takes care of it.
    pub fn network(&self, made: impl Fn(usize) -> Option<bool>) -> Option<Network> {
        if self.networks.is_empty() {
            return self.is_target.then_some(Network::Unavailable);
        }
        let mut network = Some(Network::Available);
        for (_, wish) in &self.networks {
            let is_there = match wish {
                Wish::Kept => Some(true),
                Wish::Made(change) => made(*change),
                Wish::Waits => None,
                Wish::Contested { .. } => Some(false),
            };
            match is_there {
                Some(true) => {}
                Some(false) => return Some(Network::Unavailable),
                None => network = None,
            }
        }
        network
    }
}

/// Plans. `is_confirmed` tells whether a suspect route was one before.
pub fn plan(situation: &Situation<'_>, is_confirmed: impl Fn(&Route) -> bool) -> Plan {
    let map = Map::new(situation);
    let mut plan = Plan::default();
    let mut replaced = Vec::new();
    let mut doubtful = BTreeSet::new();
    for route in situation.routes {
        match map.fate(route) {
            Fate::Serves | Fate::Left => {}
            Fate::Replaced => replaced.push(route),
            Fate::Suspect => {
                plan.suspects.push(route.clone());
                if is_confirmed(route) {
                    replaced.push(route);
                } else {
                    plan.needs_second_look = true;
                    doubtful.insert(route.destination.trunc());
                }
            }
        }
    }
    replaced.retain(|route| !doubtful.contains(&route.destination.trunc()));
    let deletions = replaced.into_iter().cloned().map(RouteChange::Delete);
    plan.changes.extend(deletions);
    for member in situation.nodes.iter().filter(|m| m.is_own()) {
        let node = map.plan_node(member.facts, &doubtful, &mut plan.changes);
        plan.nodes.push(node);
    }
    plan
}

impl Member<'_> {
    fn is_own(&self) -> bool {
        self.standing == Standing::Own
    }
}

/// What becomes of a route that is there.
enum Fate {
    /// It does what it should.
    Serves,
    /// It is not ours to change.
    Left,
    /// It is wrong, and the right one is made in its place.
    Replaced,
    /// It leads nowhere, or to nobody we know.
    Suspect,
}

/// Who is who, and whose network is whose.
struct Map<'a> {
    cluster_cidrs: &'a [IpNet],
    members: BTreeMap<&'a str, Member<'a>>,
    /// Which of our Nodes want a network, in order of their names.
    claims: BTreeMap<IpNet, BTreeSet<&'a str>>,
    /// Networks of Nodes that are not ours, or not yet.
    taken: Networks<'a>,
    /// Routes that do what they should.
    serving: BTreeSet<(IpNet, &'a str)>,
    /// Nodes to which any route leads.
    targets: BTreeSet<&'a str>,
}

impl<'a> Map<'a> {
    fn new(situation: &Situation<'a>) -> Self {
        let members = situation.nodes.iter();
        let networks = |member: &Member<'a>| {
            let name = member.facts.name.as_str();
            let networks = member.facts.pod_cidrs.iter();
            networks.map(move |network| (network.trunc(), name))
        };
        let mut claims = BTreeMap::<_, BTreeSet<_>>::new();
        for (network, name) in members.clone().filter(|m| m.is_own()).flat_map(networks) {
            claims.entry(network).or_default().insert(name);
        }
        let targets = situation.routes.iter().map(|route| &route.target);
        let mut map = Self {
            cluster_cidrs: situation.cluster_cidrs,
            claims,
            taken: members
                .clone()
                .filter(|member| !member.is_own())
                .flat_map(networks)
                .collect(),
            members: members
                .map(|member| (member.facts.name.as_str(), *member))
                .collect(),
            serving: BTreeSet::new(),
            targets: targets.filter_map(RouteTarget::node_name).collect(),
        };
        let serving = situation.routes.iter().filter_map(|route| {
            let name = route.target.node_name()?;
            map.serves(route).then(|| (route.destination.trunc(), name))
        });
        map.serving = serving.collect();
        map
    }

    fn target(&self, route: &Route) -> Option<Member<'a>> {
        self.members.get(route.target.node_name()?).copied()
    }

    /// Whether a route leads one of our Nodes' networks to it.
    fn serves(&self, route: &Route) -> bool {
        self.target(route).is_some_and(|member| {
            self.claims_of(&route.destination)
                .is_some_and(|claims| claims.contains(member.facts.name.as_str()))
                && !route.blackhole
                && !has_moved(route, member.facts)
        })
    }

    fn claims_of(&self, destination: &IpNet) -> Option<&BTreeSet<&'a str>> {
        self.claims.get(&destination.trunc())
    }

    fn fate(&self, route: &Route) -> Fate {
        if self.serves(route) {
            return Fate::Serves;
        }
        if !self.may_change(route.destination) {
            return Fate::Left;
        }
        match self.target(route) {
            Some(member) if !member.is_own() => Fate::Left,
            Some(_) if !route.blackhole && self.claims_of(&route.destination).is_some() => {
                Fate::Replaced
            }
            _ => Fate::Suspect,
        }
    }

    /// Whether routes to this network are ours to change.
    ///
    /// A route that is wider than the cluster CIDR and only begins or ends with it is none: no Node
    /// has such a network. Without any Node of ours that has one, the credential or the cluster CIDR
    /// may be another cluster's, and nothing is.
    fn may_change(&self, destination: IpNet) -> bool {
        let is_inside = self
            .cluster_cidrs
            .iter()
            .any(|cidr| cidr.contains(&destination));
        is_inside && !self.claims.is_empty() && self.taken.owner_of_any_part(destination).is_none()
    }

    fn plan_node(
        &self,
        node: &NodeFacts,
        doubtful: &BTreeSet<IpNet>,
        changes: &mut Vec<RouteChange>,
    ) -> NodePlan {
        // The same network twice is one route.
        let networks: BTreeSet<_> = node.pod_cidrs.iter().map(IpNet::trunc).collect();
        let networks = networks.into_iter().map(|network| {
            let wish = if self.serving.contains(&(network, node.name.as_str())) {
                Wish::Kept
            } else if let Some(other) = self.rival(network, &node.name) {
                let with = other.to_owned();
                Wish::Contested { with }
            } else if doubtful.contains(&network) {
                Wish::Waits
            } else {
                changes.push(RouteChange::Create(route_to(node, network)));
                Wish::Made(changes.len() - 1)
            };
            (network, wish)
        });
        NodePlan {
            networks: networks.collect(),
            is_target: self.targets.contains(node.name.as_str()),
            name: node.name.clone(),
        }
    }

    /// The Node that has more right to a network: one that is not ours, or the one of ours that has
    /// the route already, or else the first.
    fn rival(&self, network: IpNet, name: &str) -> Option<&str> {
        if let Some(stranger) = self.taken.owner_of_any_part(network) {
            return Some(stranger);
        }
        let claims = self.claims.get(&network)?;
        let holder = claims.iter().find(|n| self.serving.contains(&(network, n)));
        let first = holder.or_else(|| claims.first())?;
        (*first != name).then_some(first)
    }
}

/// Whether a route was made for addresses that its Node no longer has. A Node whose addresses are not
/// known has not moved.
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
