//! What really is: projects and their machines, balancers and routes.

mod addresses;
mod balancer_rules;
mod balancers;
mod machines;
mod routes;
mod snapshot;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_emulation::history::Table;
use cloudkeel_emulation::rate_limit::Buckets;
use cloudkeel_emulation::{Door, Tokens};
use cloudkeel_provider_local::wire::{
    Action, Balancer, Cluster, Machine, MachineState, Route, Volume,
};
use ipnet::IpNet;
use tokio::time::Instant;

pub(super) use self::balancers::{Subject, find_balancer};
pub(super) use self::machines::find_machine;
pub use self::snapshot::{ProjectSnapshot, Snapshot};
use super::fault::Fault;
use super::operation::Operation;
use super::refusal::Refusal;
use super::settings::Settings;

/// Everything that the cloud knows. Reached only under its lock.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) tokens: Tokens,
    pub(super) door: Door<Operation, Fault>,
    pub(super) buckets: Buckets,
    projects: BTreeMap<String, Project>,
    agenda: BTreeMap<(Instant, u64), Due>,
    last_id: u64,
}

/// What belongs together and is seen by one credential.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) region: String,
    pub(super) machines: Table<Machine>,
    pub(super) balancers: Table<Balancer>,
    pub(super) routes: Table<Route>,
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) clusters: BTreeMap<String, Cluster>,
    pub(super) actions: BTreeMap<u64, Action>,
    /// Which route leads where.
    destinations: BTreeMap<IpNet, u64>,
    /// Which balancer has which address.
    leases: BTreeMap<IpAddr, u64>,
}

/// Something that happens later by itself.
#[derive(Debug)]
struct Due {
    project: String,
    id: u64,
    what: Event,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    MachineReaches(MachineState),
    MachineForgotten,
    BalancerSettled { action: u64 },
    BalancerForgotten { action: u64 },
}

impl World {
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            tokens: Tokens::default(),
            door: Door::new(settings.seed, now),
            buckets: Buckets::default(),
            projects: BTreeMap::new(),
            agenda: BTreeMap::new(),
            last_id: 0,
            settings,
        }
    }

    pub(super) fn add_project(&mut self, name: &str, region: &str) {
        let keep = self.settings.history;
        self.projects
            .entry(name.to_owned())
            .or_insert_with(|| Project {
                region: region.to_owned(),
                machines: Table::remembering(keep),
                balancers: Table::remembering(keep),
                routes: Table::remembering(keep),
                volumes: BTreeMap::new(),
                clusters: BTreeMap::new(),
                actions: BTreeMap::new(),
                destinations: BTreeMap::new(),
                leases: BTreeMap::new(),
            });
    }

    pub(super) fn project(&self, name: &str) -> Result<&Project, Refusal> {
        self.projects
            .get(name)
            .ok_or_else(|| Refusal::not_found(format_args!("project {name:?}")))
    }

    pub(super) fn project_mut(&mut self, name: &str) -> Result<&mut Project, Refusal> {
        self.projects
            .get_mut(name)
            .ok_or_else(|| Refusal::not_found(format_args!("project {name:?}")))
    }

    /// Everything that belongs together, by name.
    pub(super) fn projects(&self) -> impl Iterator<Item = (&str, &Project)> {
        self.projects
            .iter()
            .map(|(name, project)| (&**name, project))
    }

    /// How often anything changed, in all projects together.
    pub(super) fn changes(&self) -> u64 {
        let tables = |project: &Project| {
            project.machines.changes() + project.balancers.changes() + project.routes.changes()
        };
        self.projects.values().map(tables).sum()
    }

    /// The project in which there is a machine, a balancer or a route of this ID.
    pub(super) fn home_of(&self, id: u64) -> Result<String, Refusal> {
        self.projects
            .iter()
            .find(|(_, project)| {
                project.machines.get(id).is_some()
                    || project.balancers.get(id).is_some()
                    || project.routes.get(id).is_some()
            })
            .map(|(name, _)| name.clone())
            .ok_or_else(|| Refusal::not_found(format_args!("thing with ID {id}")))
    }

    /// IDs are counted up over everything, so none is ever used twice or for two things.
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn plan(&mut self, at: Instant, delay: Duration, due: Due) {
        let order = self.next_id();
        self.agenda.insert((at + delay, order), due);
    }

    /// Lets everything happen that was due by now, at its own moment.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(entry) = self.agenda.first_entry() {
            let (at, _) = *entry.key();
            if at > now {
                return;
            }
            let due = entry.remove();
            self.happen(&due, at);
        }
    }

    fn happen(&mut self, due: &Due, at: Instant) {
        let Due { project, id, what } = due;
        match *what {
            Event::MachineReaches(state) => self.machine_reaches(project, *id, state, at),
            Event::MachineForgotten => {
                if let Some(project) = self.projects.get_mut(project) {
                    project.machines.remove(*id, at);
                }
            }
            Event::BalancerSettled { action } => self.balancer_settled(project, *id, action, at),
            Event::BalancerForgotten { action } => {
                self.balancer_forgotten(project, *id, action, at);
            }
        }
    }
}
