//! A small but real cloud: it has state, a REST API, a rate limit, slow actions, lagging reads and
//! whatever else goes wrong in clouds, all of it by setting or by script and all of it repeatable.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use cloudkeel_local_cloud::simulated_cloud::{Fault, MachineSpec, Operation, Settings, SimulatedCloud};
//!
//! let cloud = SimulatedCloud::new(Settings::default());
//! let machine = cloud.add_machine(MachineSpec::named("node-1"))?;
//! cloud.faults().once(Operation::GetMachine, Fault::status(503));
//! cloud.destroy(machine.id)?;
//! let served = cloud.serve_on_loopback().await?;
//! println!("curl -H 'Authorization: Bearer {}' {}/v1/machines", SimulatedCloud::TOKEN, served.url());
//! # Ok(())
//! # }
//! ```
//!
//! The provider that speaks this API is `cloudkeel-provider-local`; its wire types are used here.
//! Time is tokio's, so a paused runtime owns it. Nothing else is random but what follows from
//! [`Settings::seed`].

mod balancers;
mod commit;
mod fault;
mod gateway;
mod machines;
mod operation;
mod provider;
mod refusal;
mod rest;
mod serve;
mod settings;
mod state;
mod wanted;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cloudkeel_provider_local::wire::{Cluster, NewRoute, Route, Volume};
use tokio::time::Instant;

/// The words of the REST API and the IDs of its machines, so that tests need not name the provider.
pub use cloudkeel_provider_local::{LocalId, wire};

pub use self::commit::CommitHook;
pub use self::fault::Fault;
pub use self::gateway::{CallCounts, FaultMatch, FaultRule, Faults, LoggedCall};
pub use self::machines::MachineSpec;
pub use self::operation::Operation;
pub use self::refusal::Refusal;
pub use self::settings::{Limits, Pools, Settings};
use self::state::State;
pub use self::state::{ProjectSnapshot, Snapshot};
pub use self::wanted::{Wanted, WantedBalancer, WantedRoute, WantedTarget};
pub use cloudkeel_emulation::{
    CallOutcome, Consistency, Grant, InProcess, Latency, Permission, RateLimit, Served,
};

/// A simulated cloud. Clones are the same cloud.
#[derive(Debug, Clone)]
pub struct SimulatedCloud {
    state: Arc<Mutex<State>>,
    commit_hook: Arc<OnceLock<Arc<dyn CommitHook>>>,
}

impl SimulatedCloud {
    /// The project that every cloud has from the start.
    pub const PROJECT: &str = "demo";

    /// The token that may do everything in it.
    pub const TOKEN: &str = "demo-token";

    /// The region of projects, unless they are made with another.
    pub const REGION: &str = "sim-1";

    /// A new cloud with nothing in it but one project and one token. Must be called inside the
    /// runtime if that pauses its clock.
    pub fn new(settings: Settings) -> Self {
        Self::in_region(settings, Self::REGION)
    }

    /// The same, with its one project in this region.
    pub fn in_region(settings: Settings, region: &str) -> Self {
        let mut state = State::new(settings, Instant::now());
        state.add_project(Self::PROJECT, region);
        let cloud = Self {
            state: Arc::new(Mutex::new(state)),
            commit_hook: Arc::default(),
        };
        cloud.grant(Self::TOKEN, Self::PROJECT, Permission::ReadWrite);
        cloud
    }

    /// Reads the state, or changes it, at this moment. The lock is never held across an await.
    fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        state.advance(now);
        act(&mut state, now)
    }

    /// Adds a project, which no token sees yet.
    pub fn add_project(&self, name: &str) {
        self.with(|state, _| state.add_project(name, Self::REGION));
    }

    /// The routes of the first project, as they really are.
    pub fn routes(&self) -> Vec<Route> {
        self.routes_of(Self::PROJECT)
    }

    /// The routes of a project, as they really are.
    pub fn routes_of(&self, project: &str) -> Vec<Route> {
        self.with(|state, _| {
            let project = state.project(project).ok();
            let routes = project.iter().flat_map(|project| project.routes.iter());
            routes.map(|(_, route)| (**route).clone()).collect()
        })
    }

    /// Adds a route to the first project.
    pub fn add_route(&self, route: NewRoute) -> Result<Route, Refusal> {
        self.add_route_to(Self::PROJECT, route)
    }

    /// Adds a route to a project.
    pub fn add_route_to(&self, project: &str, route: NewRoute) -> Result<Route, Refusal> {
        self.with(|state, now| state.create_route(project, route, now))
    }

    /// Removes a route, without a call.
    pub fn drop_route(&self, id: u64) -> Result<(), Refusal> {
        self.with(|state, now| {
            let home = state.home_of(id)?;
            state.delete_route(&home, id, now)
        })
    }

    /// Adds a disk to the first project.
    pub fn add_volume(&self, volume: Volume) -> Result<(), Refusal> {
        self.with(|state, _| {
            let volumes = &mut state.project_mut(Self::PROJECT)?.volumes;
            volumes.insert(volume.id.clone(), volume);
            Ok(())
        })
    }

    /// Adds a managed cluster to the first project.
    pub fn add_cluster(&self, cluster: Cluster) -> Result<(), Refusal> {
        self.with(|state, _| {
            let clusters = &mut state.project_mut(Self::PROJECT)?.clusters;
            clusters.insert(cluster.name.clone(), cluster);
            Ok(())
        })
    }
}
