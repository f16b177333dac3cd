//! The page's rows of Nodes, controllers and clouds.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{AddressKind, Instance, InstanceState};
use cloudkeel_controllers::clouds::{Cloud, Snapshot};
use cloudkeel_controllers::report::{QueueReport, WaitingNode};
use cloudkeel_controllers::view::{NodeView, Readiness};
use cloudkeel_controllers::wellknown::{SHUTDOWN_TAINT, UNINITIALIZED_TAINT};
use cloudkeel_page::{Budget, CloudRow, ControllerRow, Level, NodeRow};

use crate::health::{CloudStatus, ControllerStatus};
use crate::metrics::Spent;

/// The instances of all clouds, as last listed.
pub(super) struct Machines(Vec<(String, Arc<Snapshot>)>);

impl Machines {
    pub(super) fn of(clouds: &[Arc<Cloud>]) -> Self {
        let seen = clouds.iter().filter_map(|cloud| {
            let snapshot = cloud.inventory.latest()?;
            Some((cloud.name.clone(), snapshot))
        });
        Self(seen.collect())
    }

    fn were_listed(&self) -> bool {
        !self.0.is_empty()
    }

    fn find(&self, node: &NodeView) -> Option<(&str, &Instance)> {
        let id = node.facts.provider_id.as_ref()?;
        let mut clouds = self.0.iter();
        clouds.find_map(|(cloud, seen)| Some((cloud.as_str(), seen.list.get(id)?)))
    }
}

/// The Nodes, by name.
pub(super) fn nodes(
    nodes: &[Arc<NodeView>],
    machines: &Machines,
    waiting: &[WaitingNode],
) -> Vec<NodeRow> {
    let waiting: BTreeMap<&str, &str> = waiting
        .iter()
        .map(|it| (it.node.as_str(), it.waits_for.as_str()))
        .collect();
    let mut rows: Vec<_> = nodes
        .iter()
        .map(|node| {
            let waits_for = waiting.get(node.facts.name.as_str());
            node_row(node, machines, waits_for.copied())
        })
        .collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

fn node_row(node: &NodeView, machines: &Machines, waits_for: Option<&str>) -> NodeRow {
    let facts = &node.facts;
    let found = machines.find(node);
    let (state, level) = node_state(node);
    let mut taints: Vec<_> = node.taints.iter().map(|taint| taint.key.clone()).collect();
    taints.dedup();
    let machine_state = match found.map(|(_, machine)| machine.state) {
        Some(InstanceState::Running) => "running",
        Some(InstanceState::Changing) => "changing",
        Some(InstanceState::ShutDown) => "shut down",
        Some(InstanceState::Unknown) => "unknown",
        None if facts.provider_id.is_none() => "not known",
        None if machines.were_listed() => "not in the last list",
        None => "not seen yet",
    };
    let kind = found.map(|(_, machine)| {
        let parts = [&machine.instance_type, &machine.zone];
        let parts: Vec<_> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join(" · ")
    });
    let addresses = facts.addresses.iter();
    let addresses = addresses.filter(|address| address.kind != AddressKind::Hostname);
    NodeRow {
        name: facts.name.clone(),
        state: state.to_owned(),
        level,
        cloud: found.map_or_else(String::new, |(cloud, _)| cloud.to_owned()),
        machine: facts
            .provider_id
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
        machine_state: machine_state.to_owned(),
        kind: kind.unwrap_or_default(),
        addresses: addresses.map(|address| address.address.clone()).collect(),
        taints,
        note: if node.deleting {
            Some("is being deleted".to_owned())
        } else {
            waits_for.map(str::to_owned)
        },
        created: facts.created.map(|created| created.to_string()),
        actions: Vec::new(),
    }
}

fn node_state(node: &NodeView) -> (&'static str, Level) {
    if node.has_taint(UNINITIALIZED_TAINT) {
        return ("not initialised", Level::Warning);
    }
    if node.has_taint(SHUTDOWN_TAINT) && node.readiness != Readiness::Ready {
        return ("shut down", Level::Warning);
    }
    match node.readiness {
        Readiness::Ready => ("Ready", Level::Good),
        Readiness::NotReady => ("NotReady", Level::Bad),
        Readiness::Unknown => ("Unknown", Level::Bad),
    }
}

pub(super) fn count(things: usize) -> u64 {
    u64::try_from(things).unwrap_or(u64::MAX)
}

pub(super) fn controller(controller: &ControllerStatus) -> ControllerRow {
    let (state, level) = if controller.running {
        ("runs", Level::Good)
    } else {
        ("stopped", Level::Warning)
    };
    let report = &controller.report;
    ControllerRow {
        name: controller.name.to_owned(),
        state: state.to_owned(),
        level,
        waiting: count(report.queue.ready.saturating_add(report.queue.delayed)),
        working: count(report.queue.working),
        note: doing(controller),
    }
}

/// What a controller waits for, or that it is idle.
fn doing(controller: &ControllerStatus) -> Option<String> {
    let report = &controller.report;
    if !report.waits_for.is_empty() {
        return Some(report.waits_for.join("; "));
    }
    let is_idle = controller.running && report.queue == QueueReport::default();
    is_idle.then(|| "nothing to do".to_owned())
}

pub(super) fn cloud(cloud: &CloudStatus, spent: Spent) -> CloudRow {
    let stop = cloud.deletions.as_ref().and_then(|d| d.stopped.as_ref());
    let list = cloud.last_list.as_ref();
    // A failure counts until the next successful list.
    let failure = cloud.last_failure.as_ref();
    let failure = failure.filter(|failure| list.is_none_or(|list| list.at < failure.at));
    let (state, level, note) = match (failure, stop) {
        (Some(failure), _) => ("does not answer", Level::Bad, Some(failure.error.clone())),
        (None, Some(stop)) => {
            let note = format!("{}. {}", stop.reason, stop.what_to_do);
            ("deletions are stopped", Level::Warning, Some(note))
        }
        (None, None) if list.is_none() => ("not listed yet", Level::Neutral, None),
        (None, None) => ("answers", Level::Good, None),
    };
    CloudRow {
        name: cloud.name.clone(),
        provider: cloud.provider.clone(),
        state: state.to_owned(),
        level,
        machines: list.map(|list| count(list.machines)),
        seen: list.map(|list| list.at.to_string()),
        budget: spent.budget.map(|budget| Budget {
            left: budget.remaining,
            of: budget.limit,
        }),
        calls: Some((spent.calls, spent.changes)),
        note,
        ..CloudRow::default()
    }
}
