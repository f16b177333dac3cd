//! What can be ordered, and where. Names, IDs and sizes are the real ones; prices are not here.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::rest::wire_time;

/// A place with its network zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Location {
    /// Its number.
    pub id: u64,
    /// Its short name.
    pub name: &'static str,
    /// What it is called.
    pub description: &'static str,
    /// ISO 3166-1.
    pub country: &'static str,
    /// The nearest town.
    pub city: &'static str,
    /// Networks do not reach beyond it.
    pub network_zone: &'static str,
}

const fn location(
    id: u64,
    name: &'static str,
    description: &'static str,
    country: &'static str,
    city: &'static str,
    network_zone: &'static str,
) -> Location {
    Location {
        id,
        name,
        description,
        country,
        city,
        network_zone,
    }
}

/// All locations.
#[rustfmt::skip]
pub(crate) static LOCATIONS: [Location; 6] = [
    location(1, "fsn1", "Falkenstein DC Park 1", "DE", "Falkenstein", "eu-central"),
    location(2, "nbg1", "Nuremberg DC Park 1", "DE", "Nuremberg", "eu-central"),
    location(3, "hel1", "Helsinki DC Park 1", "FI", "Helsinki", "eu-central"),
    location(4, "ash", "Ashburn, VA", "US", "Ashburn, VA", "us-east"),
    location(5, "hil", "Hillsboro, OR", "US", "Hillsboro, OR", "us-west"),
    location(6, "sin", "Singapore", "SG", "Singapore", "ap-southeast"),
];

/// A type of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ServerType {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: &'static str,
    /// The CPU: `x86` or `arm`.
    pub architecture: &'static str,
}

const fn server_type(id: u64, name: &'static str, architecture: &'static str) -> ServerType {
    ServerType {
        id,
        name,
        architecture,
    }
}

/// Some types of servers, of every kind.
pub(crate) static SERVER_TYPES: [ServerType; 7] = [
    server_type(22, "cpx11", "x86"),
    server_type(23, "cpx21", "x86"),
    server_type(45, "cax11", "arm"),
    server_type(93, "cax21", "arm"),
    server_type(96, "ccx13", "x86"),
    server_type(104, "cx22", "x86"),
    server_type(105, "cx32", "x86"),
];

/// A type of balancer, with its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadBalancerType {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: &'static str,
    /// How many connections at the same time.
    pub max_connections: u32,
    /// How many services.
    pub max_services: usize,
    /// How many targets.
    pub max_targets: usize,
    /// How many certificates, over all services.
    pub max_assigned_certificates: usize,
    /// Since when it is deprecated, and when it can no longer be ordered.
    pub deprecation: Option<(Timestamp, Timestamp)>,
}

const fn load_balancer_type(
    id: u64,
    name: &'static str,
    max_connections: u32,
    (max_services, max_targets, max_assigned_certificates): (usize, usize, usize),
) -> LoadBalancerType {
    LoadBalancerType {
        id,
        name,
        max_connections,
        max_services,
        max_targets,
        max_assigned_certificates,
        deprecation: None,
    }
}

/// All types of balancers.
pub static LOAD_BALANCER_TYPES: [LoadBalancerType; 3] = [
    load_balancer_type(1, "lb11", 10_000, (5, 25, 10)),
    load_balancer_type(2, "lb21", 20_000, (15, 75, 25)),
    load_balancer_type(3, "lb31", 40_000, (30, 150, 50)),
];

/// The location of this name or number.
pub(crate) fn find_location(key: &str) -> Option<&'static Location> {
    let id = key.parse().ok();
    LOCATIONS
        .iter()
        .find(|location| location.name == key || Some(location.id) == id)
}

impl LoadBalancerType {
    pub(crate) fn wire(&self) -> Value {
        let deprecation = self.deprecation.map(|(announced, unavailable_after)| {
            json!({
                "announced": wire_time(announced),
                "unavailable_after": wire_time(unavailable_after),
            })
        });
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.name.to_uppercase(),
            "max_connections": self.max_connections,
            "max_services": self.max_services,
            "max_targets": self.max_targets,
            "max_assigned_certificates": self.max_assigned_certificates,
            "prices": [],
            "deprecated": self.deprecation.map(|(announced, _)| wire_time(announced)),
            "deprecation": deprecation,
        })
    }
}
