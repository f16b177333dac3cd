//! Rules for balancers.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::IpFamily;
use cloudkeel_provider_local::wire::{
    Features, Listener, MachineState, Probe, Protocol, Target, TargetAt, TargetState,
};

use super::{Project, State};
use crate::simulated_cloud::refusal::Refusal;

/// The sizes of balancers, the smallest first.
pub(super) const KINDS: [&str; 3] = ["small", "medium", "large"];

impl State {
    pub(super) fn check_name(
        &self,
        project: &str,
        name: &str,
        own_id: Option<u64>,
    ) -> Result<(), Refusal> {
        if name.is_empty() {
            return Err(Refusal::invalid("name", "a balancer needs a name"));
        }
        let project = self.project(project)?;
        let namesake = project
            .balancers
            .iter()
            .find(|(id, balancer)| Some(*id) != own_id && balancer.name == name);
        match namesake {
            Some((id, _)) if self.settings.unique_names => Err(Refusal::already_exists(format!(
                "the name {name:?} belongs to balancer {id}"
            ))),
            _ => Ok(()),
        }
    }

    pub(super) fn check_listeners(&self, listeners: &mut [Listener]) -> Result<(), Refusal> {
        let limit = self.settings.limits.listeners;
        if listeners.len() > limit {
            let message = format!("{} listeners, at most {limit} are allowed", listeners.len());
            return Err(Refusal::limit_exceeded(message));
        }
        let mut ports = BTreeSet::new();
        for listener in listeners.iter() {
            check_listener(listener, self.settings.features)?;
            if !ports.insert((listener.protocol, listener.port)) {
                let message = format!("two listeners on {} {}", listener.protocol, listener.port);
                return Err(Refusal::invalid("listeners", message));
            }
        }
        let protocols: BTreeSet<_> = listeners.iter().map(|l| l.protocol).collect();
        if protocols.len() > 1 && !self.settings.features.mixed_protocols {
            let message = "this cloud cannot mix protocols on one balancer";
            return Err(Refusal::invalid("listeners", message));
        }
        listeners.sort();
        Ok(())
    }

    pub(super) fn check_targets(
        &self,
        project: &Project,
        targets: &BTreeMap<TargetAt, TargetState>,
    ) -> Result<(), Refusal> {
        let limit = self.settings.limits.targets;
        if targets.len() > limit {
            let message = format!("{} targets, at most {limit} are allowed", targets.len());
            return Err(Refusal::limit_exceeded(message));
        }
        let features = &self.settings.features;
        for (at, state) in targets {
            check_target(project, *at)?;
            if matches!(at, TargetAt::Ip(_)) && !features.targets_by_address {
                let message = format!("{at}: this cloud only takes machines as targets");
                return Err(Refusal::invalid("targets", message));
            }
            if *state == TargetState::Draining && !features.drain {
                let message = format!("{at}: this cloud cannot drain");
                return Err(Refusal::invalid("targets", message));
            }
        }
        Ok(())
    }

    pub(super) fn check_families(&self, families: &BTreeSet<IpFamily>) -> Result<(), Refusal> {
        if families.is_empty() {
            let message = "a balancer needs at least one kind of address";
            return Err(Refusal::invalid("families", message));
        }
        if families.len() > 1 && !self.settings.features.dual_stack {
            let message = "this cloud gives a balancer only one kind of address";
            return Err(Refusal::invalid("families", message));
        }
        Ok(())
    }
}

pub(super) fn check_kind(kind: &str) -> Result<(), Refusal> {
    if KINDS.contains(&kind) {
        return Ok(());
    }
    let message = format!("{kind:?}: expected one of {}", KINDS.join(", "));
    Err(Refusal::invalid("type", message))
}

fn check_listener(listener: &Listener, features: Features) -> Result<(), Refusal> {
    let refuse = |why: &str| {
        let message = format!("{} {}: {why}", listener.protocol, listener.port);
        Err(Refusal::invalid("listeners", message))
    };
    let possible = match listener.protocol {
        Protocol::Tcp => true,
        Protocol::Udp => features.udp,
        Protocol::Sctp => features.sctp,
    };
    if !possible {
        return refuse("this cloud does not have this protocol");
    }
    if listener.port == 0 || listener.target_port == 0 || listener.health_check.port == Some(0) {
        return refuse("ports go from 1 to 65535");
    }
    let check = &listener.health_check;
    if check.interval_seconds == 0 || check.timeout_seconds == 0 || check.retries == 0 {
        return refuse("the numbers of a health check are at least 1");
    }
    match &check.probe {
        Probe::Http { path } | Probe::Https { path } if !path.starts_with('/') => {
            refuse("the path of a health check starts with /")
        }
        _ => Ok(()),
    }
}

fn check_target(project: &Project, at: TargetAt) -> Result<(), Refusal> {
    let TargetAt::Machine(id) = at else {
        return Ok(());
    };
    let machine = project.machines.get(&id);
    if machine.is_some_and(|machine| machine.state != MachineState::Deleted) {
        return Ok(());
    }
    let message = format!("there is no machine {id} in this project");
    Err(Refusal::invalid("targets", message))
}

/// Targets by place, as they are compared and changed.
pub(super) fn by_place(targets: &[Target]) -> BTreeMap<TargetAt, TargetState> {
    targets.iter().map(|t| (t.at, t.state)).collect()
}

/// Targets as they are shown.
pub(super) fn listed(targets: BTreeMap<TargetAt, TargetState>) -> Vec<Target> {
    targets
        .into_iter()
        .map(|(at, state)| Target { at, state })
        .collect()
}
