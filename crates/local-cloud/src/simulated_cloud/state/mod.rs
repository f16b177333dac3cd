//! The state of the cloud: projects and their machines, balancers and routes.

mod addresses;
mod balancer_rules;
mod balancers;
mod machines;
mod routes;
mod snapshot;

use std::collections::BTreeMap;
use std::net::IpAddr;

use cloudkeel_emulation::history::Table;
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::jobs::{Job, JobStatus, Jobs, NewJob, RunsJobs};
use cloudkeel_emulation::rate_limit::Buckets;
use cloudkeel_emulation::{Gateway, Tokens};
use cloudkeel_provider_local::wire::{
    Action, ActionStatus, Balancer, Cluster, Machine, Route, Volume,
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
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) tokens: Tokens,
    pub(super) gateway: Gateway<Operation, Fault>,
    pub(super) buckets: Buckets,
    projects: BTreeMap<String, Project>,
    /// IDs are counted up over everything, so none is ever used twice or for two resources.
    ids: Ids,
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
    pub(super) jobs: Jobs<Self>,
    /// Which route leads where.
    destinations: BTreeMap<IpNet, u64>,
    /// Which balancer has which address.
    leases: BTreeMap<IpAddr, u64>,
}

impl RunsJobs for Project {
    type Key = u64;

    fn jobs(&mut self) -> &mut Jobs<Self> {
        &mut self.jobs
    }
}

impl Project {
    /// Work on a balancer, as the API shows it.
    pub(super) fn action(&self, id: u64) -> Option<Action> {
        self.jobs.get(&id).and_then(action_of)
    }
}

fn action_of(job: &Job) -> Option<Action> {
    match job.resources.first() {
        Some(("balancer", balancer)) => Some(Action {
            id: job.id,
            what: job.command.to_owned(),
            balancer: *balancer,
            status: match job.status() {
                JobStatus::Running => ActionStatus::Running,
                JobStatus::Succeeded | JobStatus::Failed => ActionStatus::Done,
            },
        }),
        _ => None,
    }
}

impl State {
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            tokens: Tokens::default(),
            gateway: Gateway::new(settings.seed, now),
            buckets: Buckets::default(),
            projects: BTreeMap::new(),
            ids: Ids::default(),
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
                jobs: Jobs::default(),
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
                project.machines.get(&id).is_some()
                    || project.balancers.get(&id).is_some()
                    || project.routes.get(&id).is_some()
            })
            .map(|(name, _)| name.clone())
            .ok_or_else(|| Refusal::not_found(format_args!("resource with ID {id}")))
    }

    fn next_id(&mut self) -> u64 {
        self.ids.number()
    }

    /// Work that takes as long as actions take.
    fn job(&mut self, command: &'static str, kind: &'static str, id: u64) -> NewJob {
        NewJob {
            id: self.next_id(),
            command,
            resources: vec![(kind, id)],
            duration: self.settings.action_duration,
            failure: None,
        }
    }

    /// Ends all work that is due by now, at its own moment.
    pub(super) fn advance(&mut self, now: Instant) {
        for project in self.projects.values_mut() {
            project.advance(now);
        }
    }
}
