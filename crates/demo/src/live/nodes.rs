//! Rows of Nodes with their instances.

use std::collections::BTreeSet;

use cloudkeel_local_cloud::simulated_cloud::wire::{Machine, MachineState};
use cloudkeel_page::{Action, Level, NodeRow};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::action;
use crate::managers::Status;
use crate::scenario::{SHUT_DOWN, has_taint, is_initialised, is_ready};

/// The Nodes and instances to be shown.
pub(super) struct Shown<'a> {
    /// The cloud's name in the configuration, and the prefix of its provider IDs.
    pub(super) cloud: &'a str,
    pub(super) id_prefix: &'a str,
    pub(super) machines: &'a [Machine],
    /// The instances that have buttons.
    pub(super) fleet: &'a [String],
    pub(super) leader: Option<&'a Status>,
}

/// A row for every Node and every instance, by name. Only instances of the fleet have buttons.
pub(super) fn rows(nodes: &[Node], shown: &Shown<'_>) -> Vec<NodeRow> {
    let of_nodes = nodes.iter().map(ResourceExt::name_any);
    let of_machines = shown.machines.iter().map(|machine| machine.name.clone());
    let names: BTreeSet<String> = of_nodes.chain(of_machines).collect();
    names
        .into_iter()
        .map(|name| {
            let node = nodes.iter().find(|node| node.name_any() == name);
            row(name, node, shown)
        })
        .collect()
}

fn row(name: String, node: Option<&Node>, shown: &Shown<'_>) -> NodeRow {
    let machine = shown.machines.iter().find(|machine| machine.name == name);
    let (state, level) = node.map_or(("no Node yet", Level::Neutral), state);
    let taints = node.and_then(|node| node.spec.as_ref()?.taints.clone());
    let mut taints: Vec<_> = taints
        .into_iter()
        .flatten()
        .map(|taint| taint.key)
        .collect();
    taints.dedup();
    let had_machine = node.is_some_and(|node| has_id_of(node, shown.id_prefix));
    let is_of_cloud = machine.is_some() || had_machine;
    let ours = machine.filter(|_| shown.fleet.contains(&name));
    NodeRow {
        state: state.to_owned(),
        level,
        cloud: if is_of_cloud { shown.cloud } else { "" }.to_owned(),
        machine: machine.map_or_else(String::new, |machine| machine.id.to_string()),
        machine_state: machine_state(machine, had_machine).to_owned(),
        kind: machine.map_or_else(String::new, |m| format!("{} · {}", m.kind, m.zone)),
        addresses: node.map(addresses).unwrap_or_default(),
        taints,
        note: waits_for(&name, shown.leader),
        created: node
            .and_then(|node| node.metadata.creation_timestamp.as_ref())
            .map(|time| time.0.to_string()),
        actions: ours
            .map(|machine| actions(&name, machine))
            .unwrap_or_default(),
        name,
    }
}

/// What the leader reports that a Node waits for.
fn waits_for(name: &str, leader: Option<&Status>) -> Option<String> {
    let waiting = leader.into_iter().flat_map(|status| &status.waiting_nodes);
    let mut reasons = waiting.filter(|waiting| waiting.node == name);
    reasons.next().map(|waiting| waiting.waits_for.clone())
}

fn has_id_of(node: &Node, prefix: &str) -> bool {
    let id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_ref());
    id.is_some_and(|id| id.starts_with(prefix))
}

fn state(node: &Node) -> (&'static str, Level) {
    if has_taint(node, SHUT_DOWN) && !is_ready(node) {
        return ("shut down", Level::Warning);
    }
    match (is_initialised(node), is_ready(node)) {
        (true, true) => ("Ready", Level::Good),
        (true, false) => ("NotReady", Level::Bad),
        (false, _) => ("not initialised", Level::Warning),
    }
}

/// An instance is gone only if there was one.
const fn machine_state(machine: Option<&Machine>, had_machine: bool) -> &'static str {
    let Some(machine) = machine else {
        return if had_machine { "gone" } else { "none found" };
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, spec: &Value) -> Node {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        let node = json!({
            "metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions},
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_machine_is_gone_only_where_there_was_one_and_a_node_says_what_it_waits_for() {
        let taint = "node.cloudprovider.kubernetes.io/uninitialized";
        let new = json!({"taints": [{"key": taint, "effect": "NoSchedule"}]});
        let nodes = [
            node("foreign", &json!({"providerID": "other://1"})),
            node("had", &json!({"providerID": "local://demo/1"})),
            node("never", &new),
        ];
        let why = "no machine of this name";
        let leader = json!({"waitingNodes": [{"node": "never", "waitsFor": why}]});
        let leader = serde_json::from_value(leader).unwrap();
        let shown = Shown {
            cloud: "local",
            id_prefix: "local://",
            machines: &[],
            fleet: &[],
            leader: Some(&leader),
        };
        let rows = rows(&nodes, &shown);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.machine_state.as_str(),
                    row.cloud.as_str(),
                    row.note.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("none found", "", None),
                ("gone", "local", None),
                ("none found", "", Some(why)),
            ]
        );
    }
}
