//! The Hetzner Cloud API and the Robot web service on loopback: the calls that cloud controller managers make, with
//! paging, label selectors, slow actions, locks, limits, rate limits, lagging reads and faults by script. What you
//! would do in the console (servers, networks) is a function of [`HetznerCloud`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use cloudkeel_emulator_hetzner::{Fault, HetznerCloud, Operation, ServerSpec, Settings};
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
mod fault;
mod gateway;
mod operation;
mod refusal;
mod rest;
mod settings;
mod state;

use std::sync::{Arc, Mutex, PoisonError};

use cloudkeel_emulation::EmulatedClock;
pub use cloudkeel_emulation::list::Labels;
use ipnet::Ipv4Net;
use jiff::Timestamp;
use tokio::time::Instant;

pub use self::control::Served;
pub use self::fault::Fault;
pub use self::gateway::{CallCounts, FaultMatch, FaultRule, Faults, LoggedCall};
pub use self::operation::Operation;
pub use self::refusal::Refusal;
use self::rest::Resource;
pub use self::settings::{Limits, RobotLimit, Settings};
pub use self::state::{
    Certificate, Destination, HealthCheck, HealthCheckHttp, Http, Issued, LOAD_BALANCER_TYPES,
    LoadBalancer, LoadBalancerType, Location, Network, PrivateNet, PublicAddresses, RobotServer,
    Route, Server, ServerSpec, ServerStatus, ServerType, Service, Subnet, Target,
};
use self::state::{ProjectContext, State, first_address};
use cloudkeel_emulation::jobs::RunsJobs as _;
pub use cloudkeel_emulation::{
    CallOutcome, Consistency, InProcess, Latency, Permission, RateLimit,
};

/// An emulated Hetzner Cloud. Clones are the same cloud.
#[derive(Debug, Clone)]
pub struct HetznerCloud(Arc<Mutex<State>>);

impl HetznerCloud {
    /// The project that every emulator has from the start.
    pub const PROJECT: &str = "default";

    /// The token that may do everything in it. It has the length of a real one.
    pub const TOKEN: &str = "emulatoremulatoremulatoremulatoremulatoremulatoremulatoremulator";

    /// The time of a new emulator: 2026-01-01T00:00:00Z.
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
        let clock = EmulatedClock::starting_at(epoch);
        let state = State::new(settings, clock, Instant::now());
        let cloud = Self(Arc::new(Mutex::new(state)));
        cloud.add_project(Self::PROJECT);
        cloud.grant(Self::TOKEN, Self::PROJECT, Permission::ReadWrite);
        cloud
    }

    /// Reads the state, or changes it, at this moment. The lock is never held across an await.
    fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        for project in state.projects.values_mut() {
            project.advance(now);
        }
        act(&mut state, now)
    }

    /// The same for one project.
    fn in_project<R>(
        &self,
        project: &str,
        act: impl FnOnce(&mut ProjectContext<'_>) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        self.with(|state, now| act(&mut state.context(project, now)?))
    }

    /// All resources of a kind in a project, as they really are.
    fn all<T: Resource>(&self, project: &str) -> Vec<T> {
        self.with(|state, _| {
            let project = state.projects.get(project);
            project
                .map(|project| T::table(project).to_vec())
                .unwrap_or_default()
        })
    }

    /// Changes a resource of the first project, without a call.
    fn edit<T: Resource>(&self, id: u64, change: impl FnOnce(&mut T)) -> Result<(), Refusal> {
        self.in_project(Self::PROJECT, |context| {
            let table = T::table_mut(context.project);
            let changed = table.edit(&id, context.now, change);
            changed
                .map(|_| ())
                .ok_or_else(|| Refusal::not_found(T::KIND, id))
        })
    }

    /// Adds a project, which no token sees yet.
    pub fn add_project(&self, name: &str) {
        self.with(|state, _| state.add_project(name));
    }

    /// Adds a running server to the first project.
    pub fn add_server(&self, spec: ServerSpec) -> Result<Server, Refusal> {
        self.add_server_in(Self::PROJECT, spec)
    }

    /// Adds a running server to a project.
    pub fn add_server_in(&self, project: &str, spec: ServerSpec) -> Result<Server, Refusal> {
        self.in_project(project, |context| context.add_server(spec))
    }

    /// The servers of the first project, as they really are.
    pub fn servers(&self) -> Vec<Server> {
        self.all(Self::PROJECT)
    }

    /// Sets the status of a server of the first project, at once.
    pub fn set_status(&self, id: u64, status: ServerStatus) -> Result<(), Refusal> {
        self.edit(id, |server: &mut Server| server.status = status)
    }

    /// Removes a server of the first project, at once and without an action.
    pub fn destroy_server(&self, id: u64) -> Result<(), Refusal> {
        self.in_project(Self::PROJECT, |context| {
            let found = context.project.servers.get(&id);
            found.ok_or_else(|| Refusal::not_found("server", id))?;
            context.project.forget_server(id, context.now);
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
        self.in_project(Self::PROJECT, |context| {
            rest::check_free(&context.project.networks, name, None)?;
            let network = Network {
                id: context.counters.ids.number(),
                name: name.to_owned(),
                ip_range,
                subnets: subnets.iter().map(subnet).collect(),
                routes: Vec::new(),
                labels: Labels::new(),
                created: context.clock.time_at(context.now),
                protected: false,
                expose_routes_to_vswitch: false,
            };
            let networks = &mut context.project.networks;
            networks.put(network.id, network.clone(), context.now);
            Ok(network)
        })
    }

    /// Changes anything about a server of the first project, without the API.
    pub fn change_server(&self, id: u64, change: impl FnOnce(&mut Server)) -> Result<(), Refusal> {
        self.edit(id, change)
    }

    /// The networks of the first project, as they really are.
    pub fn networks(&self) -> Vec<Network> {
        self.all(Self::PROJECT)
    }

    /// Changes anything about a network of the first project, without the API.
    pub fn change_network(
        &self,
        id: u64,
        change: impl FnOnce(&mut Network),
    ) -> Result<(), Refusal> {
        self.edit(id, change)
    }

    /// The balancers of the first project, as they really are.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.load_balancers_of(Self::PROJECT)
    }

    /// The balancers of a project, as they really are.
    pub fn load_balancers_of(&self, project: &str) -> Vec<LoadBalancer> {
        self.all(project)
    }

    /// Adds a balancer of the smallest type to the first project, without the API. It is there when its action is over.
    pub fn add_load_balancer(&self, name: &str, labels: Labels) -> Result<(), Refusal> {
        self.in_project(Self::PROJECT, |context| {
            context.create_plain_balancer(name, labels)
        })
    }

    /// Changes anything about a balancer of the first project, without the API.
    pub fn change_load_balancer(
        &self,
        id: u64,
        change: impl FnOnce(&mut LoadBalancer),
    ) -> Result<(), Refusal> {
        self.edit(id, change)
    }

    /// The certificates of the first project, as they really are.
    pub fn certificates(&self) -> Vec<Certificate> {
        self.all(Self::PROJECT)
    }

    /// Deprecates a type of balancer.
    pub fn deprecate_load_balancer_type(
        &self,
        name: &str,
        announced: Timestamp,
        unavailable_after: Timestamp,
    ) {
        self.with(|state, _| {
            let types = state.balancer_types.iter_mut();
            for kind in types.filter(|kind| kind.name == name) {
                kind.deprecation = Some((announced, unavailable_after));
            }
        });
    }

    /// Sets the login of Robot. Until then, every call is refused.
    pub fn set_robot_login(&self, user: &str, password: &str) {
        let login = (user.to_owned(), password.to_owned());
        self.with(|state, _| state.robot.login = Some(login));
    }

    /// Adds a dedicated server, or replaces the one of its number.
    pub fn add_robot_server(&self, server: RobotServer) {
        self.with(|state, _| state.robot.servers.insert(server.number, server));
    }

    /// Removes a dedicated server.
    pub fn remove_robot_server(&self, number: u64) {
        self.with(|state, _| state.robot.servers.remove(&number));
    }

    /// The dedicated servers.
    pub fn robot_servers(&self) -> Vec<RobotServer> {
        self.with(|state, _| state.robot.servers.values().cloned().collect())
    }
}
