//! What can be ordered, and where. Names, IDs and sizes are the real ones; prices are not here.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::rest::wire_time;

/// A place with its network zone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// Networks do not reach beyond it.
    pub network_zone: &'static str,
}

const fn location(
    id: u64,
    (name, description): (&'static str, &'static str),
    (country, city): (&'static str, &'static str),
    (latitude, longitude): (f64, f64),
    network_zone: &'static str,
) -> Location {
    Location {
        id,
        name,
        description,
        country,
        city,
        latitude,
        longitude,
        network_zone,
    }
}

/// All locations.
pub(in super::super) static LOCATIONS: [Location; 6] = [
    location(
        1,
        ("fsn1", "Falkenstein DC Park 1"),
        ("DE", "Falkenstein"),
        (50.476_12, 12.370_071),
        "eu-central",
    ),
    location(
        2,
        ("nbg1", "Nuremberg DC Park 1"),
        ("DE", "Nuremberg"),
        (49.452_102, 11.076_665),
        "eu-central",
    ),
    location(
        3,
        ("hel1", "Helsinki DC Park 1"),
        ("FI", "Helsinki"),
        (60.169_855, 24.938_379),
        "eu-central",
    ),
    location(
        4,
        ("ash", "Ashburn, VA"),
        ("US", "Ashburn, VA"),
        (39.045_821, -77.487_073),
        "us-east",
    ),
    location(
        5,
        ("hil", "Hillsboro, OR"),
        ("US", "Hillsboro, OR"),
        (45.542_22, -122.951_924),
        "us-west",
    ),
    location(
        6,
        ("sin", "Singapore"),
        ("SG", "Singapore"),
        (1.283_333, 103.833_333),
        "ap-southeast",
    ),
];

/// The data centre of each location: ID, name, ID of the location.
static DATACENTERS: [(u64, &str, u64); 6] = [
    (4, "fsn1-dc14", 1),
    (2, "nbg1-dc3", 2),
    (3, "hel1-dc2", 3),
    (5, "ash-dc1", 4),
    (6, "hil-dc1", 5),
    (7, "sin-dc1", 6),
];

/// A type of server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerType {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: &'static str,
    cores: u32,
    memory: f64,
    disk: u32,
    cpu: &'static str,
    architecture: &'static str,
}

const fn server_type(
    id: u64,
    name: &'static str,
    (cores, memory, disk): (u32, f64, u32),
    cpu: &'static str,
    architecture: &'static str,
) -> ServerType {
    ServerType {
        id,
        name,
        cores,
        memory,
        disk,
        cpu,
        architecture,
    }
}

/// Some types of servers, of every kind.
pub(in super::super) static SERVER_TYPES: [ServerType; 7] = [
    server_type(22, "cpx11", (2, 2.0, 40), "shared", "x86"),
    server_type(23, "cpx21", (3, 4.0, 80), "shared", "x86"),
    server_type(45, "cax11", (2, 4.0, 40), "shared", "arm"),
    server_type(93, "cax21", (4, 8.0, 80), "shared", "arm"),
    server_type(96, "ccx13", (2, 8.0, 80), "dedicated", "x86"),
    server_type(104, "cx22", (2, 4.0, 40), "shared", "x86"),
    server_type(105, "cx32", (4, 8.0, 80), "shared", "x86"),
];

/// An image that servers start from: ID, name, flavour, version, architecture.
static IMAGES: [(u64, &str, &str, &str, &str); 4] = [
    (114_690_387, "debian-12", "debian", "12", "x86"),
    (114_690_389, "debian-12", "debian", "12", "arm"),
    (161_547_269, "ubuntu-24.04", "ubuntu", "24.04", "x86"),
    (161_547_270, "ubuntu-24.04", "ubuntu", "24.04", "arm"),
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
    /// Since when it is on its way out, and when it can no longer be ordered.
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
pub(in super::super) fn find_location(key: &str) -> Option<&'static Location> {
    let id = key.parse().ok();
    LOCATIONS
        .iter()
        .find(|location| location.name == key || Some(location.id) == id)
}

/// The type of server of this name or number.
pub(in super::super) fn find_server_type(key: &str) -> Option<&'static ServerType> {
    let id = key.parse().ok();
    SERVER_TYPES
        .iter()
        .find(|kind| kind.name == key || Some(kind.id) == id)
}

impl ServerType {
    pub(in super::super) fn wire(&self) -> Value {
        let everywhere = LOCATIONS.iter().map(|location| {
            json!({
                "id": location.id,
                "name": location.name,
                "available": true,
                "recommended": true,
                "deprecation": null,
            })
        });
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.name.to_uppercase(),
            "category": if self.cpu == "shared" { "cost_optimized" } else { "general_purpose" },
            "cores": self.cores,
            "memory": self.memory,
            "disk": self.disk,
            "prices": [],
            "storage_type": "local",
            "cpu_type": self.cpu,
            "architecture": self.architecture,
            "included_traffic": 0,
            "deprecated": false,
            "deprecation": null,
            "locations": everywhere.collect::<Vec<_>>(),
        })
    }

    /// The image of this name or number that runs on it.
    pub(in super::super) fn image(&self, key: &str) -> Option<u64> {
        let id = key.parse().ok();
        let found = IMAGES.iter().find(|(image, name, .., architecture)| {
            (*name == key && *architecture == self.architecture) || Some(*image) == id
        });
        found.map(|(id, ..)| *id)
    }
}

impl LoadBalancerType {
    pub(in super::super) fn wire(&self) -> Value {
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

pub(in super::super) fn datacenters() -> Vec<Value> {
    let wire = |(id, name, location): &(u64, &str, u64)| {
        let location = LOCATIONS.iter().find(|place| place.id == *location);
        json!({"id": id, "name": name, "description": name, "location": location})
    };
    DATACENTERS.iter().map(wire).collect()
}

pub(in super::super) fn images() -> Vec<Value> {
    let wire = |(id, name, flavor, version, architecture): &(u64, &str, &str, &str, &str)| {
        json!({
            "id": id,
            "type": "system",
            "status": "available",
            "name": name,
            "description": format!("{flavor} {version}"),
            "image_size": null,
            "disk_size": 5,
            "created": "2024-04-25T00:00:00+00:00",
            "created_from": null,
            "bound_to": null,
            "os_flavor": flavor,
            "os_version": version,
            "architecture": architecture,
            "rapid_deploy": true,
            "protection": {"delete": false},
            "deprecated": null,
            "deleted": null,
            "labels": {},
        })
    };
    IMAGES.iter().map(wire).collect()
}
