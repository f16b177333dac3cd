//! What really is: projects and what they hold.

pub(super) mod actions;
mod catalogue;
mod certificates;
mod networks;
mod robot;
mod servers;
mod things;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::rate_limit::Buckets;
use cloudkeel_emulation::{Door, Tokens};
use ipnet::Ipv6Net;
use jiff::Timestamp;
use tokio::time::Instant;

use self::actions::{Action, Pending, Work};
pub use self::catalogue::{LOAD_BALANCER_TYPES, LoadBalancerType, Location, ServerType};
pub(super) use self::catalogue::{
    LOCATIONS, SERVER_TYPES, datacenters, find_location, find_server_type, images,
};
pub(super) use self::certificates::{issue, read_certificate};
pub(super) use self::networks::{Place, first_address};
pub(super) use self::robot::Robot;
pub use self::robot::RobotServer;
pub use self::servers::ServerSpec;
pub(super) use self::servers::mac_address;
pub use self::things::{
    Certificate, Destination, HealthCheck, HealthCheckHttp, Http, Issued, Labels, LoadBalancer,
    Network, PrivateNet, PublicAddresses, Route, Server, ServerStatus, Service, Subnet, Target,
};
use super::fault::Fault;
use super::operation::Operation;
use super::settings::Settings;

/// A moment, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) time: Timestamp,
}

impl Moment {
    /// An earlier moment, by its instant.
    fn back_to(self, instant: Instant) -> Self {
        let ago = self.instant.saturating_duration_since(instant);
        Self {
            instant,
            time: self.time.checked_sub(ago).unwrap_or(self.time),
        }
    }

    pub(super) fn plus(self, duration: std::time::Duration) -> Self {
        Self {
            instant: self.instant + duration,
            time: self.time.checked_add(duration).unwrap_or(self.time),
        }
    }
}

/// Everything that the emulator knows. Reached only under its lock.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) tokens: Tokens,
    pub(super) door: Door<Operation, Fault>,
    pub(super) buckets: Buckets,
    pub(super) robot: Robot,
    pub(super) balancer_types: Vec<LoadBalancerType>,
    pub(super) projects: BTreeMap<String, Project>,
    /// What somebody says about the health of a server or an address.
    pub(super) health: BTreeMap<String, String>,
    counters: Counters,
}

/// What is given out once and never again.
#[derive(Debug, Default)]
pub(super) struct Counters {
    ids: u64,
    v4: u32,
    v6: u16,
}

/// Balancers and servers get their addresses from networks that are set aside for tests.
impl Counters {
    pub(super) const fn id(&mut self) -> u64 {
        self.ids += 1;
        1_000_000 + self.ids
    }

    pub(super) fn ipv4(&mut self) -> Ipv4Addr {
        self.v4 += 1;
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)).wrapping_add(self.v4))
    }

    pub(super) const fn ipv6(&mut self) -> Ipv6Net {
        self.v6 = self.v6.wrapping_add(1);
        let network = Ipv6Addr::new(0x2001, 0xdb8, 1, self.v6, 0, 0, 0, 0);
        Ipv6Net::new_assert(network, 64)
    }
}

/// What belongs together and is seen by one token.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) servers: Table<Server>,
    pub(super) networks: Table<Network>,
    pub(super) balancers: Table<LoadBalancer>,
    pub(super) certificates: Table<Certificate>,
    pub(super) actions: BTreeMap<u64, Action>,
    pending: Vec<Pending>,
}

/// One project with everything that is needed to change it.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) project: &'a mut Project,
    pub(super) settings: &'a Settings,
    pub(super) counters: &'a mut Counters,
    pub(super) robot: &'a Robot,
    pub(super) balancer_types: &'a [LoadBalancerType],
    pub(super) health: &'a BTreeMap<String, String>,
    pub(super) now: Moment,
    /// Which moment a read shows.
    pub(super) view: View,
    /// How the next action will fail, if it will.
    pub(super) failure: Option<String>,
}

impl World {
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            tokens: Tokens::default(),
            door: Door::new(settings.seed, now),
            buckets: Buckets::default(),
            robot: Robot::default(),
            balancer_types: LOAD_BALANCER_TYPES.to_vec(),
            projects: BTreeMap::new(),
            health: BTreeMap::new(),
            counters: Counters::default(),
            settings,
        }
    }

    pub(super) fn add_project(&mut self, name: &str) {
        let keep = self.settings.history;
        self.projects
            .entry(name.to_owned())
            .or_insert_with(|| Project {
                servers: Table::remembering(keep),
                networks: Table::remembering(keep),
                balancers: Table::remembering(keep),
                certificates: Table::remembering(keep),
                actions: BTreeMap::new(),
                pending: Vec::new(),
            });
    }

    pub(super) fn advance(&mut self, now: Moment) {
        for project in self.projects.values_mut() {
            project.advance(now);
        }
    }

    /// The project of that name, if there is one, with all that is needed to change it.
    pub(super) fn scene(&mut self, project: &str, now: Moment) -> Option<Scene<'_>> {
        Some(Scene {
            project: self.projects.get_mut(project)?,
            settings: &self.settings,
            counters: &mut self.counters,
            robot: &self.robot,
            balancer_types: &self.balancer_types,
            health: &self.health,
            now,
            view: View::Now,
            failure: None,
        })
    }
}

impl Scene<'_> {
    /// The record of work that begins now and takes as long as actions take.
    pub(super) fn work(
        &mut self,
        command: &'static str,
        resources: Vec<(&'static str, u64)>,
    ) -> Work {
        Work {
            id: self.counters.id(),
            command,
            resources,
            failure: self.failure.take(),
            place: None,
            begun: self.now,
            due: self.now.plus(self.settings.action_duration),
        }
    }
}

/// Changes a thing of a table, if it is there.
pub(super) fn edit<T: Clone>(
    table: &mut Table<T>,
    id: u64,
    now: Moment,
    change: impl FnOnce(&mut T),
) {
    if let Some(thing) = table.get(id) {
        let mut thing = (**thing).clone();
        change(&mut thing);
        table.put(id, thing, now.instant);
    }
}
