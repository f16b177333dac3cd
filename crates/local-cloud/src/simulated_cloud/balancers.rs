//! Balancers, as tests read and change them.

use cloudkeel_provider_local::wire::{
    Balancer, HealthCheck, NewBalancer, ReportedHealth, Target, TargetAt, TargetState,
};

use super::SimulatedCloud;
use super::refusal::Refusal;

impl SimulatedCloud {
    /// The balancers of the first project, as they really are.
    pub fn balancers(&self) -> Vec<Balancer> {
        self.balancers_of(Self::PROJECT)
    }

    /// The balancers of a project, as they really are.
    pub fn balancers_of(&self, project: &str) -> Vec<Balancer> {
        self.with(|state, _| {
            let project = state.project(project).ok();
            let balancers = project.iter().flat_map(|project| project.balancers.iter());
            balancers
                .map(|(_, balancer)| (**balancer).clone())
                .collect()
        })
    }

    /// A balancer as it really is.
    pub fn balancer(&self, id: u64) -> Option<Balancer> {
        self.with(|state, _| {
            let home = state.home_of(id).ok()?;
            let balancer = state.project(&home).ok()?.balancers.get(&id)?;
            Some((**balancer).clone())
        })
    }

    /// Adds a balancer to the first project without the API, ready at once.
    pub fn add_balancer(&self, new: NewBalancer) -> Result<Balancer, Refusal> {
        self.with(|state, now| {
            let usual = std::mem::take(&mut state.settings.action_duration);
            let answer = state.create_balancer(Self::PROJECT, new, now);
            state.settings.action_duration = usual;
            Ok(answer?.balancer)
        })
    }

    /// Changes a balancer in any way, without a call.
    pub fn edit_balancer(
        &self,
        id: u64,
        edit: impl FnOnce(&mut Balancer),
    ) -> Result<Balancer, Refusal> {
        self.with(|state, now| {
            let home = state.home_of(id)?;
            let balancer = state.edit_balancer(&home, id, now, edit)?;
            Ok((*balancer).clone())
        })
    }

    /// Takes a balancer away at once, without a call.
    pub fn drop_balancer(&self, id: u64) -> Result<(), Refusal> {
        self.with(|state, now| {
            let home = state.home_of(id)?;
            state.drop_balancer(&home, id, now)
        })
    }

    /// Writes down what keeps a balancer from working, for every client to read.
    pub fn note_problems(&self, id: u64, problems: Vec<String>) -> Result<(), Refusal> {
        self.with(|state, now| state.note_problems(id, problems, now))
    }

    /// Writes down what health checks say of a balancer's targets, for every client to read.
    pub fn note_health(&self, id: u64, health: Vec<ReportedHealth>) -> Result<(), Refusal> {
        self.with(|state, now| state.note_health(id, health, now))
    }

    /// Takes a listener away, without a call.
    pub fn drop_listener(&self, id: u64, port: u16) -> Result<Balancer, Refusal> {
        self.edit_balancer(id, |balancer| balancer.listeners.retain(|l| l.port != port))
    }

    /// Changes how the targets of a port are checked, without a call.
    pub fn change_health_check(
        &self,
        id: u64,
        port: u16,
        check: &HealthCheck,
    ) -> Result<Balancer, Refusal> {
        self.edit_balancer(id, |balancer| {
            for listener in balancer.listeners.iter_mut().filter(|l| l.port == port) {
                listener.health_check = check.clone();
            }
        })
    }

    /// Adds a target that no client asked for, without a call.
    pub fn add_stray_target(&self, id: u64, at: TargetAt) -> Result<Balancer, Refusal> {
        let stray = Target {
            at,
            state: TargetState::Serving,
        };
        self.edit_balancer(id, |balancer| {
            balancer.targets.push(stray);
            balancer.targets.sort();
        })
    }
}
