//! The state of the cloud: projects and what they hold.

mod catalogue;
mod certificates;
mod networks;
mod resources;
mod robot;
mod servers;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::jobs::{Jobs, NewJob, ResourceRef, RunsJobs};
use cloudkeel_emulation::rate_limit::Buckets;
use cloudkeel_emulation::{EmulatedClock, Gateway, Tokens};
use ipnet::Ipv6Net;
use tokio::time::Instant;

pub use self::catalogue::{LOAD_BALANCER_TYPES, LoadBalancerType, Location, ServerType};
pub(crate) use self::catalogue::{LOCATIONS, find_location};
pub(crate) use self::certificates::{issue, read_certificate};
pub(crate) use self::networks::{AddressRequest, first_address};
pub use self::resources::{
    Certificate, Destination, HealthCheck, HealthCheckHttp, Http, Issued, LoadBalancer, Network,
    PrivateNet, PublicAddresses, Route, Server, ServerStatus, Service, Subnet, Target,
};
pub(crate) use self::robot::Robot;
pub use self::robot::RobotServer;
pub use self::servers::ServerSpec;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::settings::Settings;

/// Everything that the emulator knows. Reached only under its lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) tokens: Tokens,
    pub(crate) gateway: Gateway<Operation, Fault>,
    pub(crate) buckets: Buckets,
    pub(crate) robot: Robot,
    pub(crate) balancer_types: Vec<LoadBalancerType>,
    pub(crate) projects: BTreeMap<String, Project>,
    pub(crate) clock: EmulatedClock,
    counters: Counters,
}

/// What is given out once and never again.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) ids: Ids,
    v4: u32,
    v6: u16,
}

/// Balancers and servers get their addresses from networks that are set aside for tests.
impl Counters {
    pub(crate) fn ipv4(&mut self) -> Ipv4Addr {
        self.v4 += 1;
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)).wrapping_add(self.v4))
    }

    pub(crate) const fn ipv6(&mut self) -> Ipv6Net {
        self.v6 = self.v6.wrapping_add(1);
        let network = Ipv6Addr::new(0x2001, 0xdb8, 1, self.v6, 0, 0, 0, 0);
        Ipv6Net::new_assert(network, 64)
    }
}

/// What belongs together and is seen by one token.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) servers: Table<Server>,
    pub(crate) networks: Table<Network>,
    pub(crate) balancers: Table<LoadBalancer>,
    pub(crate) certificates: Table<Certificate>,
    pub(crate) jobs: Jobs<Self>,
    /// Addresses of networks that a running action will take, by its ID.
    pub(crate) reserved: BTreeMap<u64, (u64, Ipv4Addr)>,
}

impl RunsJobs for Project {
    type Key = u64;

    fn jobs(&mut self) -> &mut Jobs<Self> {
        &mut self.jobs
    }
}

impl Project {
    /// Removes a server, and every target that leads to it.
    pub(crate) fn forget_server(&mut self, id: u64, at: Instant) {
        self.servers.remove(&id, at);
        let gone = Destination::Server(id);
        self.balancers.edit_where(
            at,
            |balancer| balancer.targets.iter().any(|target| target.to == gone),
            |balancer| balancer.targets.retain(|target| target.to != gone),
        );
    }
}

/// One project with everything that is needed to change it.
#[derive(Debug)]
pub(crate) struct ProjectContext<'a> {
    pub(crate) project: &'a mut Project,
    pub(crate) settings: &'a Settings,
    pub(crate) counters: &'a mut Counters,
    pub(crate) robot: &'a Robot,
    pub(crate) balancer_types: &'a [LoadBalancerType],
    pub(crate) clock: EmulatedClock,
    pub(crate) now: Instant,
    /// Which moment a read shows.
    pub(crate) view: View,
    /// How the next action will fail, if it will.
    pub(crate) failure: Option<String>,
}

impl State {
    pub(crate) fn new(settings: Settings, clock: EmulatedClock, now: Instant) -> Self {
        Self {
            tokens: Tokens::default(),
            gateway: Gateway::new(settings.seed, now),
            buckets: Buckets::default(),
            robot: Robot::default(),
            balancer_types: LOAD_BALANCER_TYPES.to_vec(),
            projects: BTreeMap::new(),
            clock,
            counters: Counters {
                ids: Ids::after(1_000_000),
                v4: 0,
                v6: 0,
            },
            settings,
        }
    }

    pub(crate) fn add_project(&mut self, name: &str) {
        let keep = self.settings.history;
        let project = self.projects.entry(name.to_owned());
        project.or_insert_with(|| Project {
            servers: Table::remembering(keep),
            networks: Table::remembering(keep),
            balancers: Table::remembering(keep),
            certificates: Table::remembering(keep),
            jobs: Jobs::default(),
            reserved: BTreeMap::new(),
        });
    }

    /// The project of that name with all that is needed to change it.
    pub(crate) fn context(
        &mut self,
        project: &str,
        now: Instant,
    ) -> Result<ProjectContext<'_>, Refusal> {
        let found = self.projects.get_mut(project);
        Ok(ProjectContext {
            project: found.ok_or_else(|| Refusal::not_found("project", project))?,
            settings: &self.settings,
            counters: &mut self.counters,
            robot: &self.robot,
            balancer_types: &self.balancer_types,
            clock: self.clock,
            now,
            view: View::Now,
            failure: None,
        })
    }
}

impl ProjectContext<'_> {
    /// An action that begins now and takes as long as actions take.
    pub(crate) fn job(
        &mut self,
        command: &'static str,
        resources: Vec<ResourceRef<u64>>,
    ) -> NewJob {
        NewJob {
            id: self.counters.ids.number(),
            command,
            resources,
            duration: self.settings.action_duration,
            failure: self.failure.take(),
        }
    }
}
