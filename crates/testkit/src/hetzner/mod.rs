//! The Hetzner Cloud API and the Robot web service on loopback: what the Go hcloud-ccm and hcloud-go
//! call, with paging, label selectors, slow actions, locks, limits, rate limits, lagging reads and
//! faults by script.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use cloudkeel_testkit::hetzner::{Fault, HetznerCloud, Operation, ServerSpec, Settings};
//!
//! let cloud = HetznerCloud::new(Settings::default());
//! let network = cloud.add_network("kube", "10.0.0.0/16".parse()?)?;
//! cloud.add_server(ServerSpec::named("node-1").in_network(network.id))?;
//! cloud.faults().once(Operation::AddTarget, Fault::code("locked"));
//! let served = cloud.serve_on_loopback().await?;
//! println!("HCLOUD_ENDPOINT={} HCLOUD_TOKEN={}", served.api_url(), HetznerCloud::TOKEN);
//! # Ok(())
//! # }
//! ```
//!
//! Time is tokio's, so a paused runtime owns it; wall-clock time starts at a fixed moment and follows.
//! Nothing else is random but what follows from [`Settings::seed`], and the keys of certificates.

mod control;
mod door;
mod fault;
mod operation;
mod refusal;
mod rest;
mod serve;
mod settings;
mod tokens;
mod world;

use std::sync::{Arc, Mutex, PoisonError};

use cloudkeel_emulation::history::Table;
use ipnet::Ipv4Net;
use jiff::Timestamp;
use tokio::time::Instant;

pub use self::door::{CallCounts, FaultMatch, FaultRule, Faults, LoggedCall};
pub use self::fault::Fault;
pub use self::operation::Operation;
pub use self::refusal::Refusal;
pub use self::serve::Served;
pub use self::settings::{Limits, RobotLimit, Settings};
pub use self::world::{
    Certificate, Destination, HealthCheck, HealthCheckHttp, Http, Issued, LOAD_BALANCER_TYPES,
    Labels, LoadBalancer, LoadBalancerType, Location, Network, PrivateNet, PublicAddresses,
    RobotServer, Route, Server, ServerSpec, ServerStatus, ServerType, Service, Subnet, Target,
};
use self::world::{Moment, Project, Scene, World, edit, first_address};
pub use cloudkeel_emulation::{
    CallOutcome, Consistency, InProcess, Latency, Permission, RateLimit,
};

/// An emulated Hetzner Cloud. Clones are the same cloud.
#[derive(Debug, Clone)]
pub struct HetznerCloud {
    world: Arc<Mutex<World>>,
    started: Instant,
    epoch: Timestamp,
}

impl HetznerCloud {
    /// The project that every emulator has from the start.
    pub const PROJECT: &str = "default";

    /// The token that may do everything in it. It has the length of a real one.
    pub const TOKEN: &str = "emulatoremulatoremulatoremulatoremulatoremulatoremulatoremulator";

    /// When a new emulator believes to be: 2026-01-01T00:00:00Z.
    const EPOCH: i64 = 1_767_225_600;

    /// A new cloud with nothing in it but one project and one token, at a fixed time. Must be called
    /// inside the runtime if that pauses its clock.
    pub fn new(settings: Settings) -> Self {
        Self::starting_at(
            settings,
            Timestamp::from_second(Self::EPOCH).unwrap_or_default(),
        )
    }

    /// The same, at another time.
    pub fn starting_at(settings: Settings, epoch: Timestamp) -> Self {
        let started = Instant::now();
        let cloud = Self {
            world: Arc::new(Mutex::new(World::new(settings, started))),
            started,
            epoch,
        };
        cloud.add_project(Self::PROJECT);
        cloud.grant(Self::TOKEN, Self::PROJECT, Permission::ReadWrite);
        cloud
    }

    /// Looks at the world, or changes it, at this moment. The lock is never held across an await.
    fn with<R>(&self, act: impl FnOnce(&mut World, Moment) -> R) -> R {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Moment {
            instant: self.started,
            time: self.epoch,
        };
        let now = start.plus(self.started.elapsed());
        world.advance(now);
        act(&mut world, now)
    }

    /// The same for one project.
    fn in_project<R>(
        &self,
        project: &str,
        act: impl FnOnce(&mut Scene<'_>) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        self.with(|world, now| match world.scene(project, now) {
            Some(mut scene) => act(&mut scene),
            None => Err(Refusal::not_found("project", project)),
        })
    }

    /// All things of a kind in the first project, as they really are.
    fn all<T: Clone>(&self, table: impl FnOnce(&Project) -> &Table<T>) -> Vec<T> {
        self.all_of(Self::PROJECT, table)
    }

    /// All things of a kind in a project, as they really are.
    fn all_of<T: Clone>(&self, project: &str, table: impl FnOnce(&Project) -> &Table<T>) -> Vec<T> {
        self.with(|world, _| {
            let table = world.projects.get(project).map(table);
            let things = table.into_iter().flat_map(Table::iter);
            things.map(|(_, thing)| (**thing).clone()).collect()
        })
    }

    /// Adds a project, which no token sees yet.
    pub fn add_project(&self, name: &str) {
        self.with(|world, _| world.add_project(name));
    }

    /// Adds a running server to the first project.
    pub fn add_server(&self, spec: ServerSpec) -> Result<Server, Refusal> {
        self.add_server_in(Self::PROJECT, spec)
    }

    /// Adds a running server to a project.
    pub fn add_server_in(&self, project: &str, spec: ServerSpec) -> Result<Server, Refusal> {
        self.in_project(project, |scene| {
            scene.add_server(spec, ServerStatus::Running)
        })
    }

    /// The servers of the first project, as they really are.
    pub fn servers(&self) -> Vec<Server> {
        self.all(|project| &project.servers)
    }

    /// Sets what a server of the first project does, at once.
    pub fn set_status(&self, id: u64, status: ServerStatus) -> Result<(), Refusal> {
        self.in_project(Self::PROJECT, |scene| {
            let found = scene.project.servers.get(id);
            found.ok_or_else(|| Refusal::not_found("server", id))?;
            edit(&mut scene.project.servers, id, scene.now, |server| {
                server.status = status;
            });
            Ok(())
        })
    }

    /// Makes a server of the first project vanish, at once and without an action.
    pub fn destroy_server(&self, id: u64) -> Result<(), Refusal> {
        self.in_project(Self::PROJECT, |scene| {
            let found = scene.project.servers.get(id);
            found.ok_or_else(|| Refusal::not_found("server", id))?;
            scene.project.forget_server(id, scene.now);
            Ok(())
        })
    }

    /// Adds a network to the first project, with one subnet for all of it in `eu-central`.
    pub fn add_network(&self, name: &str, ip_range: Ipv4Net) -> Result<Network, Refusal> {
        self.add_network_with(name, ip_range, &[ip_range])
    }

    /// Adds a network to the first project, with these subnets in `eu-central`.
    pub fn add_network_with(
        &self,
        name: &str,
        ip_range: Ipv4Net,
        subnets: &[Ipv4Net],
    ) -> Result<Network, Refusal> {
        let subnet = |range: &Ipv4Net| Subnet {
            kind: "cloud".to_owned(),
            ip_range: *range,
            network_zone: "eu-central".to_owned(),
            gateway: first_address(ip_range),
            vswitch_id: None,
        };
        self.in_project(Self::PROJECT, |scene| {
            let network = Network {
                id: scene.counters.id(),
                name: name.to_owned(),
                ip_range,
                subnets: subnets.iter().map(subnet).collect(),
                routes: Vec::new(),
                labels: Labels::new(),
                created: scene.now.time,
                protected: false,
                expose_routes_to_vswitch: false,
            };
            let now = scene.now.instant;
            scene.project.networks.put(network.id, network.clone(), now);
            Ok(network)
        })
    }

    /// The networks of the first project, as they really are.
    pub fn networks(&self) -> Vec<Network> {
        self.all(|project| &project.networks)
    }

    /// The balancers of the first project, as they really are.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.all(|project| &project.balancers)
    }

    /// The balancers of a project, as they really are.
    pub fn load_balancers_of(&self, project: &str) -> Vec<LoadBalancer> {
        self.all_of(project, |project| &project.balancers)
    }

    /// Changes anything about a balancer of the first project behind everybody's back.
    pub fn change_load_balancer(
        &self,
        id: u64,
        change: impl FnOnce(&mut LoadBalancer),
    ) -> Result<(), Refusal> {
        self.in_project(Self::PROJECT, |scene| {
            let found = scene.project.balancers.get(id);
            found.ok_or_else(|| Refusal::not_found("load balancer", id))?;
            edit(&mut scene.project.balancers, id, scene.now, change);
            Ok(())
        })
    }

    /// The certificates of the first project, as they really are.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.all(|project| &project.certificates)
    }

    /// Puts a type of balancer on its way out.
    pub fn deprecate_load_balancer_type(
        &self,
        name: &str,
        announced: Timestamp,
        unavailable_after: Timestamp,
    ) {
        self.with(|world, _| {
            let types = world.balancer_types.iter_mut();
            for kind in types.filter(|kind| kind.name == name) {
                kind.deprecation = Some((announced, unavailable_after));
            }
        });
    }

    /// Says how healthy a server (by ID) or an address is; `None` lets its state speak again.
    pub fn set_health(&self, server_or_ip: &str, status: Option<&str>) {
        self.with(|world, _| match status {
            Some(status) => {
                let (key, status) = (server_or_ip.to_owned(), status.to_owned());
                world.health.insert(key, status);
            }
            None => {
                world.health.remove(server_or_ip);
            }
        });
    }

    /// Sets who may call Robot. Until then, nobody may.
    pub fn set_robot_login(&self, user: &str, password: &str) {
        let login = (user.to_owned(), password.to_owned());
        self.with(|world, _| world.robot.login = Some(login));
    }

    /// Adds a dedicated server, or replaces the one of its number.
    pub fn add_robot_server(&self, server: RobotServer) {
        self.with(|world, _| world.robot.servers.insert(server.number, server));
    }

    /// Removes a dedicated server.
    pub fn remove_robot_server(&self, number: u64) {
        self.with(|world, _| world.robot.servers.remove(&number));
    }

    /// The dedicated servers.
    pub fn robot_servers(&self) -> Vec<RobotServer> {
        self.with(|world, _| world.robot.servers.values().cloned().collect())
    }
}
