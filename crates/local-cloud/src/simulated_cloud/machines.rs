//! Machines, as tests make and break them.

use std::net::IpAddr;

use cloudkeel_provider_local::wire::{Machine, MachineAddress, MachineState, NewMachine};

use super::SimulatedCloud;
use super::refusal::Refusal;

/// A machine to be added. What is not said, the cloud chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSpec {
    new: NewMachine,
    state: MachineState,
    project: String,
}

impl MachineSpec {
    /// A running machine of this name in the first project.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            new: NewMachine {
                name: name.into(),
                ..NewMachine::default()
            },
            state: MachineState::Running,
            project: SimulatedCloud::PROJECT.to_owned(),
        }
    }

    /// In another project.
    #[must_use]
    pub fn in_project(mut self, project: impl Into<String>) -> Self {
        self.project = project.into();
        self
    }

    /// In this state.
    #[must_use]
    pub const fn state(mut self, state: MachineState) -> Self {
        self.state = state;
        self
    }

    /// Of this size.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.new.kind = Some(size.into());
        self
    }

    /// In this zone.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.new.zone = Some(zone.into());
        self
    }

    /// With this hardware UUID.
    #[must_use]
    pub fn uuid(mut self, uuid: impl Into<String>) -> Self {
        self.new.uuid = Some(uuid.into());
        self
    }

    /// Calling itself this.
    #[must_use]
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.new.hostname = Some(hostname.into());
        self
    }

    /// With this label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.new.labels.insert(key.into(), value.into());
        self
    }

    /// With this address inside the project's network, behind those it has been given already.
    #[must_use]
    pub fn private(self, ip: IpAddr) -> Self {
        self.address(MachineAddress::private(ip))
    }

    /// With this public address, behind those it has been given already.
    #[must_use]
    pub fn public(self, ip: IpAddr) -> Self {
        self.address(MachineAddress::public(ip))
    }

    fn address(mut self, address: MachineAddress) -> Self {
        self.new.addresses.get_or_insert_default().push(address);
        self
    }
}

impl SimulatedCloud {
    /// Adds a machine.
    pub fn add_machine(&self, spec: MachineSpec) -> Result<Machine, Refusal> {
        let MachineSpec {
            new,
            state: machine_state,
            project,
        } = spec;
        self.with(|state, now| {
            let machine = state.add_machine(&project, new, machine_state, now)?;
            Ok((*machine).clone())
        })
    }

    /// Adds a machine that is remembered elsewhere by its ID, such as on its Node, and that this
    /// cloud has forgotten.
    pub fn revive_machine(&self, id: u64, spec: MachineSpec) -> Result<Machine, Refusal> {
        let MachineSpec { new, project, .. } = spec;
        self.with(|state, now| {
            let machine = state.revive_machine(&project, id, new, now)?;
            Ok((*machine).clone())
        })
    }

    /// Adds many machines, counted from 0.
    pub fn add_machines(
        &self,
        count: usize,
        spec: impl Fn(usize) -> MachineSpec,
    ) -> Result<Vec<Machine>, Refusal> {
        (0..count).map(|i| self.add_machine(spec(i))).collect()
    }

    /// The machines of the first project, as they really are.
    pub fn machines(&self) -> Vec<Machine> {
        self.machines_of(Self::PROJECT)
    }

    /// The machines of a project, as they really are.
    pub fn machines_of(&self, project: &str) -> Vec<Machine> {
        self.with(|state, _| {
            let project = state.project(project).ok();
            let machines = project.iter().flat_map(|project| project.machines.iter());
            machines.map(|(_, machine)| (**machine).clone()).collect()
        })
    }

    /// A machine as it really is.
    pub fn machine(&self, id: u64) -> Option<Machine> {
        self.with(|state, _| {
            let home = state.home_of(id).ok()?;
            let machine = state.project(&home).ok()?.machines.get(&id)?;
            Some((**machine).clone())
        })
    }

    /// Changes a machine in any way.
    pub fn edit_machine(
        &self,
        id: u64,
        edit: impl FnOnce(&mut Machine),
    ) -> Result<Machine, Refusal> {
        self.with(|state, now| {
            let home = state.home_of(id)?;
            let machine = state.edit_machine(&home, id, now, edit)?;
            Ok((*machine).clone())
        })
    }

    /// Switches a machine off, at once.
    pub fn power_off(&self, id: u64) -> Result<Machine, Refusal> {
        self.edit_machine(id, |machine| machine.state = MachineState::Off)
    }

    /// Switches a machine on, at once.
    pub fn power_on(&self, id: u64) -> Result<Machine, Refusal> {
        self.edit_machine(id, |machine| machine.state = MachineState::Running)
    }

    /// Gives a machine another name.
    pub fn rename(&self, id: u64, name: &str) -> Result<Machine, Refusal> {
        self.edit_machine(id, |machine| name.clone_into(&mut machine.name))
    }

    /// Gives a machine another size.
    pub fn resize(&self, id: u64, size: &str) -> Result<Machine, Refusal> {
        self.edit_machine(id, |machine| size.clone_into(&mut machine.kind))
    }

    /// Gives a machine other addresses.
    pub fn set_addresses(
        &self,
        id: u64,
        addresses: Vec<MachineAddress>,
    ) -> Result<Machine, Refusal> {
        self.edit_machine(id, |machine| machine.addresses = addresses)
    }

    /// Destroys a machine. There is no return: its ID is never used again.
    pub fn destroy(&self, id: u64) -> Result<(), Refusal> {
        self.with(|state, now| {
            let home = state.home_of(id)?;
            state.destroy_machine(&home, id, now)
        })
    }
}

/// A running machine in the first project.
impl From<NewMachine> for MachineSpec {
    fn from(new: NewMachine) -> Self {
        Self {
            new,
            ..Self::named("")
        }
    }
}
