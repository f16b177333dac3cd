//! Where traffic should go, and which of it fits. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use cloudkeel_api::{
    AddressKind, Event, IpFamily, LoadBalancerSpec, NodeFacts, TargetBy, TargetState,
};
use cloudkeel_toolkit::{Capacity, DesiredTargets, Sharing, TargetDiff, internal_ip};
use serde::Serialize;

use super::desired::Desired;
use crate::id::HetznerId;
use crate::wire::{LoadBalancer, Target, TargetIp, TargetServer};

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

/// What the cloud is sent about a target. Addresses say nothing about the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct TargetBody {
    #[serde(rename = "type")]
    by: &'static str,
    pub(super) server: Option<TargetServer>,
    ip: Option<TargetIp>,
    pub(super) use_private_ip: Option<bool>,
}

impl TargetAt {
    pub(super) fn body(self, private: Option<bool>) -> TargetBody {
        let (by, server, ip) = match self {
            Self::Server(id) => ("server", Some(TargetServer { id }), None),
            Self::Ip(ip) => ("ip", None, Some(TargetIp { ip })),
        };
        TargetBody {
            by,
            server,
            ip,
            use_private_ip: private.filter(|_| server.is_some()),
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
    /// There are no credentials to ask about them.
    NoCredentials,
    /// All of the account by number, and their addresses.
    Known(BTreeMap<u64, Option<IpAddr>>),
    /// Robot did not answer.
    Unknown(String),
}

/// The wanted targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    pub(super) targets: DesiredTargets<TargetAt>,
    /// Addresses that are not wanted but belong to wanted Nodes, so they stay.
    tolerated: BTreeSet<IpAddr>,
    /// Whether every address stays, because it is not known whose it is.
    keeps_addresses: bool,
    /// What is worth an event.
    pub(super) events: Vec<Event>,
}

impl Wanted {
    pub(super) fn of(spec: &LoadBalancerSpec, asked: &Desired, dedicated: &Dedicated) -> Self {
        let mut wanted = Self::default();
        let targets = DesiredTargets::resolve(spec, |target| {
            let node = &target.node;
            let place = match target.by {
                TargetBy::Address => address_of(node, asked.use_private_ip).map(TargetAt::Ip),
                TargetBy::Machine => wanted.machine(spec, asked, dedicated, node),
            };
            place.ok_or_else(String::new)
        });
        Self { targets, ..wanted }
    }

    fn machine(
        &mut self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
        dedicated: &Dedicated,
        node: &NodeFacts,
    ) -> Option<TargetAt> {
        let text = node.provider_id.as_ref().map_or("", |id| id.as_str());
        match text.parse() {
            Ok(HetznerId::Cloud(id)) => Some(TargetAt::Server(id)),
            Ok(HetznerId::Robot(number)) => {
                let ip = self.dedicated(spec, asked, dedicated, (node, number));
                ip.map(TargetAt::Ip)
            }
            Err(error) => {
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
            let service = &spec.balancer_ref.service;
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
        let message = format!("the Node is not a load balancer target: {why}");
        self.events.push(Event::warning(node, reason, message));
    }

    fn keeps(&self, at: TargetAt) -> bool {
        match at {
            TargetAt::Server(_) => false,
            TargetAt::Ip(ip) => self.keeps_addresses || self.tolerated.contains(&ip),
        }
    }

    /// The servers that are reached in the wrong way.
    pub(super) fn misrouted(&self, have: &LoadBalancer, private: bool) -> Vec<u64> {
        let present = have.targets.iter().filter_map(place_of);
        let wrong = present.filter(|(_, is_private)| *is_private != private);
        let wrong = wrong.filter(|(at, _)| self.targets.places.contains_key(at));
        let servers = wrong.filter_map(|(at, _)| match at {
            TargetAt::Server(id) => Some(id),
            TargetAt::Ip(_) => None,
        });
        servers.collect()
    }

    /// What differs from the targets that are there.
    pub(super) fn diff(
        &self,
        have: &LoadBalancer,
        capacity: Capacity,
        sharing: &Sharing,
    ) -> TargetDiff<TargetAt> {
        let present = have.targets.iter().filter_map(place_of);
        let present: BTreeMap<_, _> = present.map(|(at, _)| (at, TargetState::Serving)).collect();
        let others = have.targets.len().saturating_sub(present.len());
        let diff = &self.targets;
        let keeps = |at: &TargetAt| self.keeps(*at) || sharing.is_foreign_target(at);
        diff.diff(&present, others, capacity, keeps)
    }
}

/// Whether a Node is a dedicated server.
pub(super) fn is_dedicated(node: &NodeFacts) -> bool {
    let id = node.provider_id.as_ref();
    id.is_some_and(|id| HetznerId::read_robot(id).is_some())
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

/// Where a target leads, and whether through the network. Label selectors lead nowhere of ours.
pub(super) fn place_of(target: &Target) -> Option<(TargetAt, bool)> {
    if target.label_selector.is_some() {
        return None;
    }
    let private = target.use_private_ip.unwrap_or(false);
    let server = target.server.map(|server| TargetAt::Server(server.id));
    let ip = target.ip.map(|ip| TargetAt::Ip(ip.ip));
    server.or(ip).map(|at| (at, private))
}
