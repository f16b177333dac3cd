//! Where traffic should go, and which of it fits. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use cloudkeel_api::{
    AddressKind, Event, IpFamily, LoadBalancerSpec, NodeAddress, NodeFacts, TargetBy,
};
use serde_json::{Value, json};

use super::desired::Desired;
use crate::id::{HetznerId, HetznerIdError};
use crate::wire::LoadBalancer;

/// A Node without an ID that this cloud can read.
const UNKNOWN_PREFIX: &str = "UnknownProviderIDPrefix";
/// A Node whose dedicated server cannot be found.
const SERVER_NOT_FOUND: &str = "ServerNotFound";
/// A Node without a private address.
const INTERNAL_IP_NOT_CONFIGURED: &str = "InternalIPNotConfigured";

/// A target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TargetAt {
    /// A cloud server, by its ID.
    Server(u64),
    /// A dedicated server, by its address.
    Ip(IpAddr),
}

impl TargetAt {
    /// What the cloud is sent. Addresses say nothing about the network.
    pub(super) fn body(self, private: Option<bool>) -> Value {
        match (self, private) {
            (Self::Server(id), Some(private)) => {
                json!({"type": "server", "server": {"id": id}, "use_private_ip": private})
            }
            (Self::Server(id), None) => json!({"type": "server", "server": {"id": id}}),
            (Self::Ip(ip), _) => json!({"type": "ip", "ip": {"ip": ip.to_string()}}),
        }
    }
}

impl fmt::Display for TargetAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(id) => write!(f, "server {id}"),
            Self::Ip(ip) => write!(f, "address {ip}"),
        }
    }
}

/// What is known of the dedicated servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Dedicated {
    /// There are none.
    #[default]
    Off,
    /// Nobody may ask about them.
    NoCredentials,
    /// All of the account by number, and their addresses.
    Known(BTreeMap<u64, Option<IpAddr>>),
    /// Robot did not answer.
    Unknown(String),
}

/// The wanted targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    /// Those that can be reached, and the Nodes behind them.
    pub(super) places: BTreeMap<TargetAt, String>,
    /// Addresses that are not wanted but belong to wanted Nodes, so they stay.
    pub(super) tolerated: BTreeSet<IpAddr>,
    /// How many Nodes cannot be reached yet.
    pub(super) unresolved: usize,
    /// Whether every address stays, because nobody knows whose it is.
    pub(super) keeps_addresses: bool,
    /// What is worth telling.
    pub(super) events: Vec<Event>,
}

impl Wanted {
    pub(super) fn of(spec: &LoadBalancerSpec, asked: &Desired, dedicated: &Dedicated) -> Self {
        let mut wanted = Self::default();
        for (name, target) in &spec.targets {
            let node = &target.node;
            let place = match target.by {
                TargetBy::Address => address_of(node, asked.use_private_ip).map(TargetAt::Ip),
                TargetBy::Machine => wanted.machine(spec, asked, dedicated, node),
            };
            match place {
                Some(at) => {
                    wanted.places.insert(at, name.clone());
                }
                None => wanted.unresolved += 1,
            }
        }
        wanted
    }

    fn machine(
        &mut self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
        dedicated: &Dedicated,
        node: &NodeFacts,
    ) -> Option<TargetAt> {
        let id = node.provider_id.as_ref().map(HetznerId::read);
        match id {
            Some(Ok(HetznerId::Cloud(id))) => Some(TargetAt::Server(id)),
            Some(Ok(HetznerId::Robot(number))) => {
                let ip = self.dedicated(spec, asked, dedicated, (node, number));
                ip.map(TargetAt::Ip)
            }
            Some(Err(error)) => {
                self.skip(node, UNKNOWN_PREFIX, &error.to_string());
                None
            }
            None => {
                let error = HetznerIdError::UnknownPrefix(String::new());
                self.skip(node, UNKNOWN_PREFIX, &error.to_string());
                None
            }
        }
    }

    fn dedicated(
        &mut self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
        dedicated: &Dedicated,
        (node, number): (&NodeFacts, u64),
    ) -> Option<IpAddr> {
        let public = match dedicated {
            Dedicated::Off => {
                self.skip(node, SERVER_NOT_FOUND, "Robot is not enabled");
                return None;
            }
            Dedicated::Unknown(_) => {
                self.keeps_addresses = true;
                return None;
            }
            Dedicated::NoCredentials => None,
            Dedicated::Known(servers) => {
                let known = servers.get(&number);
                // An account that does not show it may be another one, and any target may be it.
                self.keeps_addresses |= known.is_none();
                known.copied().flatten()
            }
        };
        if asked.use_private_ip {
            if let Some(private) = internal_ip(node) {
                // Where both are targets already, both stay, unless the public side is to close.
                self.tolerated
                    .extend(public.filter(|_| asked.public != Some(false)));
                return Some(private);
            }
            let message = format!(
                "Node {} is a dedicated server without an InternalIP, so its public address is used \
                 if it is known",
                node.name
            );
            let service = &spec.claim.service;
            let event = Event::warning(service, INTERNAL_IP_NOT_CONFIGURED, message);
            self.events.push(event);
        }
        if public.is_none() {
            let why = format!("the address of dedicated server {number} is not known");
            self.skip(node, SERVER_NOT_FOUND, &why);
        }
        public
    }

    fn skip(&mut self, node: &NodeFacts, reason: &'static str, why: &str) {
        let message = format!("it is no target of load balancers: {why}");
        self.events.push(Event::warning(node, reason, message));
    }

    fn keeps(&self, at: TargetAt) -> bool {
        match at {
            TargetAt::Server(_) => self.places.contains_key(&at),
            TargetAt::Ip(ip) => {
                self.keeps_addresses
                    || self.tolerated.contains(&ip)
                    || self.places.contains_key(&at)
            }
        }
    }
}

/// Whether a Node is a dedicated server.
pub(super) fn is_dedicated(node: &NodeFacts) -> bool {
    let id = node.provider_id.as_ref().map(HetznerId::read);
    matches!(id, Some(Ok(HetznerId::Robot(_))))
}

fn internal_ip(node: &NodeFacts) -> Option<IpAddr> {
    let internal = node.addresses.iter();
    let mut internal = internal.filter(|address| address.kind == AddressKind::InternalIp);
    internal.find_map(NodeAddress::ip)
}

/// The address by which a Node of another cloud is reached.
fn address_of(node: &NodeFacts, private: bool) -> Option<IpAddr> {
    let external = node.ip(AddressKind::ExternalIp, IpFamily::V4);
    if private {
        internal_ip(node).or(external)
    } else {
        external.or_else(|| internal_ip(node))
    }
}

/// What is to be done about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetChange {
    /// It is reached in the wrong way: taken out and put back.
    Turn(TargetAt),
    /// It is missing.
    Add {
        at: TargetAt,
        /// Whether there is only room for it once the balancer has its new type.
        needs_room: bool,
    },
    /// It is not wanted.
    Remove {
        at: TargetAt,
        /// Whether nothing that is there is wanted: then one of the new has to be taken first.
        is_last: bool,
    },
}

/// What differs between the wanted targets and those that are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Difference {
    /// In the order in which it is done: what fits is added before anything is removed, and the rest
    /// takes the places one by one.
    pub(super) changes: Vec<TargetChange>,
    /// Nodes for which there is no room.
    pub(super) left_out: Vec<String>,
}

/// How much a balancer takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room<'a> {
    /// The limit of the type that it has.
    pub(super) now: usize,
    /// The limit of the type that it should have.
    pub(super) then: usize,
    /// Whether the cloud said that there is no room, whatever the type says.
    pub(super) full: bool,
    /// Servers that are not in the network, so that they cannot be reached through it.
    pub(super) outside: &'a BTreeSet<u64>,
}

/// The servers that are reached in the wrong way.
pub(super) fn turned(wanted: &Wanted, have: &LoadBalancer, private: bool) -> Vec<TargetAt> {
    let present = have.targets.iter().filter_map(place_of);
    let turned = present.filter(|(at, is_private)| {
        let is_server = matches!(at, TargetAt::Server(_));
        is_server && wanted.places.contains_key(at) && *is_private != private
    });
    turned.map(|(at, _)| at).collect()
}

/// At the limit, what is a target stays one; the rest of the room goes to Nodes by name. So the choice is
/// the same every time.
pub(super) fn difference(
    wanted: &Wanted,
    have: &LoadBalancer,
    private: bool,
    room: Room<'_>,
) -> Difference {
    let present: BTreeSet<TargetAt> = have
        .targets
        .iter()
        .filter_map(place_of)
        .map(|(at, _)| at)
        .collect();
    let mut remove: Vec<_> = present.iter().copied().collect();
    remove.retain(|at| !wanted.keeps(*at));
    let is_last = !present.is_empty() && remove.len() == present.len();
    if wanted.places.is_empty() && wanted.unresolved > 0 {
        // One of those that are there may well be what cannot be resolved.
        remove.clear();
    }
    let can_turn = |at: &TargetAt| match at {
        TargetAt::Server(id) => !(private && room.outside.contains(id)),
        TargetAt::Ip(_) => false,
    };
    let turned = turned(wanted, have, private).into_iter().filter(can_turn);
    let mut changes: Vec<_> = turned.map(TargetChange::Turn).collect();
    let mut new: Vec<_> = wanted.places.iter().collect();
    new.retain(|(at, _)| !present.contains(at));
    new.sort_by_key(|(at, node)| (*node, *at));
    let mut new = new.into_iter();
    let mut count = have.targets.len();
    let free = |count: usize| room.then.saturating_sub(count);
    let mut fill = |changes: &mut Vec<_>, count: &mut usize, places: usize| {
        for (at, _) in new.by_ref().take(places) {
            let (at, needs_room) = (*at, *count >= room.now);
            changes.push(TargetChange::Add { at, needs_room });
            *count += 1;
        }
    };
    let places = if room.full { 0 } else { free(count) };
    fill(&mut changes, &mut count, places);
    for at in remove {
        changes.push(TargetChange::Remove { at, is_last });
        count = count.saturating_sub(1);
        let places = if room.full {
            free(count).min(1)
        } else {
            free(count)
        };
        fill(&mut changes, &mut count, places);
    }
    let left_out = new.map(|(_, node)| node.clone()).collect();
    Difference { changes, left_out }
}

/// Where a target leads, and whether through the network. Label selectors lead nowhere of ours.
fn place_of(target: &crate::wire::Target) -> Option<(TargetAt, bool)> {
    if target.label_selector.is_some() {
        return None;
    }
    let private = target.use_private_ip.unwrap_or(false);
    let server = target.server.map(|server| TargetAt::Server(server.id));
    let ip = target.ip.map(|ip| TargetAt::Ip(ip.ip));
    server.or(ip).map(|at| (at, private))
}
