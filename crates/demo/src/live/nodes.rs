//! Nodes beside their machines.

use std::collections::BTreeSet;

use cloudkeel_local_cloud::simulated_cloud::wire::{Machine, MachineState};
use cloudkeel_page::{Action, Level, NodeRow};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::action;
use crate::scenario::{is_initialised, is_ready};

/// A row for every Node and every machine, by name. Only machines of the fleet can be worked on.
pub(super) fn rows(nodes: &[Node], machines: &[Machine], fleet: &[String]) -> Vec<NodeRow> {
    let of_nodes = nodes.iter().map(ResourceExt::name_any);
    let of_machines = machines.iter().map(|machine| machine.name.clone());
    let names: BTreeSet<String> = of_nodes.chain(of_machines).collect();
    names
        .into_iter()
        .map(|name| {
            let node = nodes.iter().find(|node| node.name_any() == name);
            let machine = machines.iter().find(|machine| machine.name == name);
            let ours = fleet.contains(&name);
            row(name, node, machine.filter(|_| ours || node.is_none()))
        })
        .collect()
}

fn row(name: String, node: Option<&Node>, machine: Option<&Machine>) -> NodeRow {
    let (state, level) = node.map_or(("no Node yet", Level::Neutral), state);
    let taints = node.and_then(|node| node.spec.as_ref()?.taints.clone());
    let mut taints: Vec<_> = taints
        .into_iter()
        .flatten()
        .map(|taint| taint.key)
        .collect();
    taints.dedup();
    NodeRow {
        state: state.to_owned(),
        level,
        cloud: "local".to_owned(),
        machine: machine.map_or_else(String::new, |machine| machine.id.to_string()),
        machine_state: machine_state(machine).to_owned(),
        kind: machine.map_or_else(String::new, |m| format!("{} · {}", m.kind, m.zone)),
        addresses: node.map(addresses).unwrap_or_default(),
        taints,
        note: None,
        actions: machine
            .map(|machine| actions(&name, machine))
            .unwrap_or_default(),
        name,
    }
}

fn state(node: &Node) -> (&'static str, Level) {
    match (is_initialised(node), is_ready(node)) {
        (true, true) => ("Ready", Level::Good),
        (true, false) => ("NotReady", Level::Bad),
        (false, _) => ("not initialised", Level::Warning),
    }
}

const fn machine_state(machine: Option<&Machine>) -> &'static str {
    let Some(machine) = machine else {
        return "gone";
    };
    match machine.state {
        MachineState::Running => "running",
        MachineState::Starting => "starting",
        MachineState::Stopping => "stopping",
        MachineState::Off => "shut down",
        MachineState::Deleted => "gone",
    }
}

fn addresses(node: &Node) -> Vec<String> {
    let addresses = node.status.as_ref().and_then(|s| s.addresses.as_ref());
    let addresses = addresses.into_iter().flatten();
    addresses
        .filter(|address| address.type_ != "Hostname")
        .map(|address| address.address.clone())
        .collect()
}

fn actions(name: &str, machine: &Machine) -> Vec<Action> {
    let power = match machine.state {
        MachineState::Off => Action::new(action::POWER_ON, "Power on"),
        _ => Action::new(action::POWER_OFF, "Power off"),
    };
    let destroy = Action::new(action::DESTROY, "Destroy");
    vec![power.on(name), destroy.on(name).destructive()]
}
