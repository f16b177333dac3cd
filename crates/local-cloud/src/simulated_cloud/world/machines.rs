//! The life of machines.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use cloudkeel_provider_local::wire::{
    Hop, Machine, MachineAddress, MachineState, NewMachine, TargetAt,
};
use tokio::time::Instant;

use super::{Due, Event, World};
use crate::simulated_cloud::refusal::Refusal;

/// IDs are counted up from the biggest, and JSON has no bigger whole numbers that are safe.
const BIGGEST_REVIVED: u64 = 1 << 53;

impl World {
    /// Whether reads show a machine.
    pub(in crate::simulated_cloud) fn shows(&self, machine: &Machine) -> bool {
        !self.settings.hidden.contains(&machine.id)
    }

    pub(in crate::simulated_cloud) fn add_machine(
        &mut self,
        project: &str,
        new: NewMachine,
        state: MachineState,
        at: Instant,
    ) -> Result<Arc<Machine>, Refusal> {
        if new.name.is_empty() {
            return Err(Refusal::invalid("name", "a machine needs a name"));
        }
        let id = self.next_id();
        self.insert_machine(project, id, new, state, at)
    }

    /// Adds a machine that somebody remembers by its ID, although this world does not.
    pub(in crate::simulated_cloud) fn revive_machine(
        &mut self,
        project: &str,
        id: u64,
        new: NewMachine,
        at: Instant,
    ) -> Result<Arc<Machine>, Refusal> {
        if id > BIGGEST_REVIVED {
            let message = format!("{id}: expected at most {BIGGEST_REVIVED}");
            return Err(Refusal::invalid("id", message));
        }
        if self.home_of(id).is_ok() {
            let message = format!("something has the ID {id} already");
            return Err(Refusal::already_exists(message));
        }
        self.last_id = self.last_id.max(id);
        self.insert_machine(project, id, new, MachineState::Running, at)
    }

    fn insert_machine(
        &mut self,
        project: &str,
        id: u64,
        new: NewMachine,
        state: MachineState,
        at: Instant,
    ) -> Result<Arc<Machine>, Refusal> {
        let region = self.project(project)?.region.clone();
        let machine = Machine {
            id,
            name: new.name,
            uuid: new.uuid.unwrap_or_else(|| uuid_of(id)),
            state,
            kind: new.kind.unwrap_or_else(|| "standard-2".to_owned()),
            zone: new.zone.unwrap_or_else(|| format!("{region}-a")),
            region,
            hostname: new.hostname,
            addresses: new
                .addresses
                .unwrap_or_else(|| vec![MachineAddress::private(address_of(id))]),
            labels: new.labels,
        };
        let project = self.project_mut(project)?;
        project.machines.put(id, machine, at);
        find_machine(project.machines.get(id), id)
    }

    /// Changes a machine in any way.
    pub(in crate::simulated_cloud) fn edit_machine(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
        edit: impl FnOnce(&mut Machine),
    ) -> Result<Arc<Machine>, Refusal> {
        let project = self.project_mut(project)?;
        let mut machine = Machine::clone(&*find_machine(project.machines.get(id), id)?);
        edit(&mut machine);
        project.machines.put(id, machine, at);
        find_machine(project.machines.get(id), id)
    }

    /// Begins to switch a machine on or off.
    pub(in crate::simulated_cloud) fn power(
        &mut self,
        project: &str,
        id: u64,
        on: bool,
        at: Instant,
    ) -> Result<Arc<Machine>, Refusal> {
        let (passing, final_state) = if on {
            (MachineState::Starting, MachineState::Running)
        } else {
            (MachineState::Stopping, MachineState::Off)
        };
        let machine = find_machine(self.project(project)?.machines.get(id), id)?;
        if machine.state == MachineState::Deleted {
            let message = format!("machine {id} was deleted");
            return Err(Refusal::invalid("state", message));
        }
        if machine.state == final_state {
            return Ok(machine);
        }
        self.edit_machine(project, id, at, |machine| machine.state = passing)?;
        self.machine_will_reach(project, id, final_state, at);
        find_machine(self.project(project)?.machines.get(id), id)
    }

    /// Lets a machine reach a state after the time that actions take.
    pub(in crate::simulated_cloud) fn machine_will_reach(
        &mut self,
        project: &str,
        id: u64,
        state: MachineState,
        at: Instant,
    ) {
        let delay = self.settings.action_duration;
        if delay.is_zero() {
            self.machine_reaches(project, id, state, at);
            return;
        }
        let due = Due {
            project: project.to_owned(),
            id,
            what: Event::MachineReaches(state),
        };
        self.plan(at, delay, due);
    }

    pub(super) fn machine_reaches(
        &mut self,
        project: &str,
        id: u64,
        state: MachineState,
        at: Instant,
    ) {
        // A machine that was destroyed meanwhile reaches nothing any more.
        let alive = |machine: &Arc<Machine>| machine.state != MachineState::Deleted;
        let known = self.project(project).ok();
        let known = known.and_then(|project| project.machines.get(id));
        if known.is_some_and(alive) {
            let _ = self.edit_machine(project, id, at, |machine| machine.state = state);
        }
    }

    /// Destroys a machine: its targets go, its routes lead nowhere.
    pub(in crate::simulated_cloud) fn destroy_machine(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
    ) -> Result<(), Refusal> {
        let machine = find_machine(self.project(project)?.machines.get(id), id)?;
        if machine.state == MachineState::Deleted {
            return Ok(());
        }
        if self.settings.keep_deleted.is_zero() {
            self.project_mut(project)?.machines.remove(id, at);
        } else {
            self.edit_machine(project, id, at, |machine| {
                machine.state = MachineState::Deleted;
            })?;
            let due = Due {
                project: project.to_owned(),
                id,
                what: Event::MachineForgotten,
            };
            self.plan(at, self.settings.keep_deleted, due);
        }
        self.detach_machine(project, &machine, at)
    }

    fn detach_machine(
        &mut self,
        project: &str,
        machine: &Machine,
        at: Instant,
    ) -> Result<(), Refusal> {
        let project = self.project_mut(project)?;
        let target = TargetAt::Machine(machine.id);
        let served_by: Vec<_> = project
            .balancers
            .iter()
            .filter(|(_, balancer)| balancer.targets.iter().any(|t| t.at == target))
            .map(|(id, balancer)| (id, Arc::clone(balancer)))
            .collect();
        for (id, balancer) in served_by {
            let mut balancer = (*balancer).clone();
            balancer.targets.retain(|t| t.at != target);
            balancer.version += 1;
            project.balancers.put(id, balancer, at);
        }
        let leads_there = |hop: Hop| match hop {
            Hop::Machine(id) => id == machine.id,
            Hop::Ip(ip) => machine.has_address(ip),
        };
        let orphans: Vec<_> = project
            .routes
            .iter()
            .filter(|(_, route)| leads_there(route.hop))
            .map(|(id, route)| (id, Arc::clone(route)))
            .collect();
        for (id, route) in orphans {
            let mut route = (*route).clone();
            route.blackhole = true;
            project.routes.put(id, route, at);
        }
        Ok(())
    }
}

pub(in crate::simulated_cloud) fn find_machine(
    found: Option<&Arc<Machine>>,
    id: u64,
) -> Result<Arc<Machine>, Refusal> {
    found
        .map(Arc::clone)
        .ok_or_else(|| Refusal::not_found(format_args!("machine {id}")))
}

fn uuid_of(id: u64) -> String {
    format!("00000000-0000-4000-8000-{id:012x}")
}

/// `10.0.0.0` and the ID.
fn address_of(id: u64) -> IpAddr {
    let [.., a, b, c] = id.to_be_bytes();
    Ipv4Addr::new(10, a, b, c).into()
}
