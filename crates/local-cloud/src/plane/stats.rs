//! What the proxies have done, for people and pages to look at.

use std::net::{IpAddr, SocketAddr};

use cloudkeel_provider_local::wire::{Protocol, TargetAt};
use serde::{Deserialize, Serialize};

use super::Health;
use super::pool::Phase;
use super::port::{Frontend, Port};

/// What a balancer has done since it was last started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancerStats {
    /// Its ID.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortStats>,
}

/// What a port has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStats {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
    /// Where clients come in.
    pub frontends: Vec<FrontendStats>,
    /// Clients that were turned away by their address.
    pub denied: u64,
    /// Clients for which there was no target.
    pub unserved: u64,
    /// Its targets.
    pub targets: Vec<TargetStats>,
}

/// A place where clients come in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontendStats {
    /// The address.
    pub address: IpAddr,
    /// Whether it is open.
    pub listening: bool,
    /// Why it is not.
    pub problem: Option<String>,
}

/// A target and what it has carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetStats {
    /// As the API names it.
    #[serde(flatten)]
    pub at: TargetAt,
    /// Where it is.
    pub address: SocketAddr,
    /// Whether it gets new connections.
    pub phase: Phase,
    /// What the checks say.
    pub health: Health,
    /// What the last check complained of.
    pub complaint: Option<String>,
    /// Connections that it has now.
    pub active: u64,
    /// Connections that it has had.
    pub connections: u64,
    /// Attempts that did not reach it.
    pub failures: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
}

impl PortStats {
    pub(super) fn of(protocol: Protocol, number: u16, port: &Port) -> Self {
        let frontends = port
            .frontends
            .iter()
            .map(|(address, frontend)| FrontendStats {
                address: *address,
                listening: matches!(frontend, Frontend::Open(_)),
                problem: match frontend {
                    Frontend::Open(_) => None,
                    Frontend::Failed(why) => Some(why.clone()),
                },
            });
        let members = port.pool.members();
        let targets = members.iter().map(|(target, phase)| TargetStats {
            at: target.at,
            address: target.address,
            phase: *phase,
            health: target.health(),
            complaint: target.complaint(),
            active: target.active(),
            connections: target.traffic.connections.get(),
            failures: target.traffic.failures.get(),
            bytes_in: target.traffic.bytes_in.get(),
            bytes_out: target.traffic.bytes_out.get(),
        });
        Self {
            protocol,
            port: number,
            frontends: frontends.collect(),
            denied: port.pool.denied.get(),
            unserved: port.pool.unserved.get(),
            targets: targets.collect(),
        }
    }
}
