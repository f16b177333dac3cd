//! The state as a value, to be written to a file and restored from it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use cloudkeel_provider_local::wire::{
    Balancer, BalancerState, Cluster, Machine, MachineState, Route, Volume,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Project, State};
use crate::simulated_cloud::SimulatedCloud;
use crate::simulated_cloud::settings::Settings;

/// Everything that a cloud has, without tokens and settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// The last ID that was given to anything: none is ever used twice.
    pub last_id: u64,
    /// The projects by name.
    pub projects: BTreeMap<String, ProjectSnapshot>,
}

/// Everything that a project has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectSnapshot {
    /// Its region.
    pub region: String,
    /// Its machines.
    pub machines: Vec<Machine>,
    /// Its balancers.
    pub balancers: Vec<Balancer>,
    /// Its routes.
    pub routes: Vec<Route>,
    /// Its disks.
    pub volumes: Vec<Volume>,
    /// Its managed clusters.
    pub clusters: Vec<Cluster>,
    /// Which balancer has which address.
    pub leases: BTreeMap<IpAddr, u64>,
}

impl Snapshot {
    /// What makes no sense in it, if anything does.
    fn nonsense(&self) -> Option<String> {
        let mut seen = BTreeSet::new();
        for (name, project) in &self.projects {
            let machines = project.machines.iter().map(|machine| machine.id);
            let balancers = project.balancers.iter().map(|balancer| balancer.id);
            let routes = project.routes.iter().map(|route| route.id);
            for id in machines.chain(balancers).chain(routes) {
                if id > self.last_id {
                    let last = self.last_id;
                    return Some(format!("ID {id} is beyond lastId, which is {last}"));
                }
                if !seen.insert(id) {
                    return Some(format!("two resources have the ID {id}"));
                }
            }
            let known: BTreeSet<_> = project.balancers.iter().map(|b| b.id).collect();
            let stray = project.leases.iter().find(|(_, id)| !known.contains(id));
            if let Some((address, id)) = stray {
                return Some(format!(
                    "{address} belongs to balancer {id}, which project {name:?} does not have"
                ));
            }
        }
        None
    }
}

impl SimulatedCloud {
    /// Everything that it has, as of now.
    pub fn snapshot(&self) -> Snapshot {
        self.with(|state, _| Snapshot {
            last_id: state.ids.last(),
            projects: state
                .projects
                .iter()
                .map(|(name, project)| (name.clone(), project.snapshot()))
                .collect(),
        })
    }

    /// A cloud that goes on from there. On failure: what makes no sense. Work that was under way is
    /// done by now.
    pub fn restore(settings: Settings, region: &str, snapshot: Snapshot) -> Result<Self, String> {
        if let Some(nonsense) = snapshot.nonsense() {
            return Err(nonsense);
        }
        let now = Instant::now();
        let mut state = State::new(settings, now);
        state.ids.skip_to(snapshot.last_id);
        for (name, kept) in snapshot.projects {
            state.add_project(&name, &kept.region);
            if let Some(project) = state.projects.get_mut(&name) {
                project.resume(kept, now);
            }
        }
        state.add_project(Self::PROJECT, region);
        Ok(Self {
            state: Arc::new(Mutex::new(state)),
            commit_hook: Arc::default(),
        })
    }
}

impl Project {
    fn snapshot(&self) -> ProjectSnapshot {
        let balancers = self.balancers.iter();
        ProjectSnapshot {
            region: self.region.clone(),
            machines: self.machines.to_vec(),
            balancers: balancers
                .map(|(_, balancer)| Balancer {
                    problems: Vec::new(),
                    health: Vec::new(),
                    ..(**balancer).clone()
                })
                .collect(),
            routes: self.routes.to_vec(),
            volumes: self.volumes.values().cloned().collect(),
            clusters: self.clusters.values().cloned().collect(),
            leases: self.leases.clone(),
        }
    }

    fn resume(&mut self, kept: ProjectSnapshot, at: Instant) {
        self.leases = kept.leases;
        for mut machine in kept.machines {
            machine.state = match machine.state {
                MachineState::Deleted => continue,
                MachineState::Starting => MachineState::Running,
                MachineState::Stopping => MachineState::Off,
                settled => settled,
            };
            self.machines.put(machine.id, machine, at);
        }
        for mut balancer in kept.balancers {
            if balancer.state == BalancerState::Deleting {
                self.release(balancer.id);
                continue;
            }
            balancer.state = BalancerState::Active;
            balancer.addresses = self.addresses_of(balancer.id);
            self.balancers.put(balancer.id, balancer, at);
        }
        for route in kept.routes {
            self.destinations.insert(route.destination, route.id);
            self.routes.put(route.id, route, at);
        }
        let volumes = kept.volumes.into_iter();
        self.volumes = volumes.map(|v| (v.id.clone(), v)).collect();
        let clusters = kept.clusters.into_iter();
        self.clusters = clusters.map(|c| (c.name.clone(), c)).collect();
    }
}
