//! Machines are created, stopped, started and deleted.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use cloudkeel_emulation::ids::uuid_of;
use cloudkeel_emulation::jobs::RunsJobs as _;
use cloudkeel_provider_local::wire::{
    Hop, Machine, MachineAddress, MachineState, NewMachine, TargetAt,
};
use tokio::time::Instant;

use super::{Project, State};
use crate::simulated_cloud::refusal::Refusal;

/// IDs are counted up from the biggest, and JSON has no bigger whole numbers that are safe.
const BIGGEST_REVIVED: u64 = 1 << 53;

impl State {
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

    /// Adds a machine that is remembered elsewhere by its ID, although this state does not know it.
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
        self.ids.skip_to(id);
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
        find_machine(project.machines.get(&id), id)
    }

    /// Changes a machine in any way.
    pub(in crate::simulated_cloud) fn edit_machine(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
        edit: impl FnOnce(&mut Machine),
    ) -> Result<Arc<Machine>, Refusal> {
        let machines = &mut self.project_mut(project)?.machines;
        find_machine(machines.edit(&id, at, edit), id)
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
        let machine = find_machine(self.project(project)?.machines.get(&id), id)?;
        if machine.state == MachineState::Deleted {
            let message = format!("machine {id} was deleted");
            return Err(Refusal::invalid("state", message));
        }
        if machine.state == final_state {
            return Ok(machine);
        }
        self.edit_machine(project, id, at, |machine| machine.state = passing)?;
        self.machine_will_reach(project, id, final_state, at)?;
        find_machine(self.project(project)?.machines.get(&id), id)
    }

    /// Lets a machine reach a state after the time that actions take.
    pub(in crate::simulated_cloud) fn machine_will_reach(
        &mut self,
        project: &str,
        id: u64,
        state: MachineState,
        at: Instant,
    ) -> Result<(), Refusal> {
        if self.settings.action_duration.is_zero() {
            self.project_mut(project)?.machine_reaches(id, state, at);
            return Ok(());
        }
        let job = self.job("reach a state", "machine", id);
        self.project_mut(project)?
            .begin(job, at, move |project, at| {
                project.machine_reaches(id, state, at);
            });
        Ok(())
    }

    /// Destroys a machine: its targets go, its routes lead nowhere.
    pub(in crate::simulated_cloud) fn destroy_machine(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
    ) -> Result<(), Refusal> {
        let machine = find_machine(self.project(project)?.machines.get(&id), id)?;
        if machine.state == MachineState::Deleted {
            return Ok(());
        }
        if self.settings.keep_deleted.is_zero() {
            self.project_mut(project)?.machines.remove(&id, at);
        } else {
            self.edit_machine(project, id, at, |machine| {
                machine.state = MachineState::Deleted;
            })?;
            let mut job = self.job("forget", "machine", id);
            job.duration = self.settings.keep_deleted;
            self.project_mut(project)?
                .begin(job, at, move |project, at| {
                    project.machines.remove(&id, at);
                });
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
        project.balancers.edit_where(
            at,
            |balancer| balancer.targets.iter().any(|t| t.at == target),
            |balancer| {
                balancer.targets.retain(|t| t.at != target);
                balancer.version += 1;
            },
        );
        let leads_there = |hop: Hop| match hop {
            Hop::Machine(id) => id == machine.id,
            Hop::Ip(ip) => machine.has_address(ip),
        };
        project.routes.edit_where(
            at,
            |route| leads_there(route.hop),
            |route| route.blackhole = true,
        );
        Ok(())
    }
}

impl Project {
    fn machine_reaches(&mut self, id: u64, state: MachineState, at: Instant) {
        // A machine that was destroyed meanwhile reaches nothing any more.
        let is_alive = |machine: &Arc<Machine>| machine.state != MachineState::Deleted;
        if self.machines.get(&id).is_some_and(is_alive) {
            self.machines.edit(&id, at, |machine| machine.state = state);
        }
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

/// `10.0.0.0` and the ID.
fn address_of(id: u64) -> IpAddr {
    let [.., a, b, c] = id.to_be_bytes();
    Ipv4Addr::new(10, a, b, c).into()
}
