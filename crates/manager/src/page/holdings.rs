//! The rows of what the controllers keep in the clouds, and of what they told.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::Severity;
use cloudkeel_controllers::report::{
    BalancerReport, BalancerState, Holdings, RouteReport, RouteUse, TargetReport, TargetUse,
};
use cloudkeel_controllers::runtime::RecentEvent;
use cloudkeel_controllers::view::{NodeView, Readiness, ServiceView};
use cloudkeel_page::{BalancerRow, EventRow, Level, RouteRow, TargetRow};

use super::rows::count;

/// The Services that want a balancer or still have one, by name.
pub(super) fn balancers(
    services: &[Arc<ServiceView>],
    nodes: &[Arc<NodeView>],
    holdings: &Holdings,
) -> Vec<BalancerRow> {
    let reports = holdings.balancers.iter();
    let mut reports: BTreeMap<&str, _> = reports
        .map(|report| (report.service.as_str(), report))
        .collect();
    let ready: BTreeMap<&str, Readiness> = nodes
        .iter()
        .map(|node| (node.facts.name.as_str(), node.readiness))
        .collect();
    let mut rows = Vec::new();
    for service in services {
        let name = service.service.to_string();
        let report = reports.remove(name.as_str());
        if service.is_load_balancer || report.is_some() {
            rows.push(row(name, Some(service), report, &ready));
        }
    }
    let left = reports.into_iter();
    rows.extend(left.map(|(name, report)| row(name.to_owned(), None, Some(report), &ready)));
    rows.sort_by(|one, other| one.service.cmp(&other.service));
    rows
}

fn row(
    name: String,
    service: Option<&Arc<ServiceView>>,
    report: Option<&BalancerReport>,
    ready: &BTreeMap<&str, Readiness>,
) -> BalancerRow {
    let addresses = service.map(|service| addresses(service));
    let addresses = addresses.unwrap_or_default();
    let stays = service.is_some_and(|service| service.is_load_balancer && !service.deleting);
    let (state, level) = state(stays, !addresses.is_empty(), report);
    let targets = report.into_iter().flat_map(|report| &report.targets);
    let clouds = report.map(|report| report.clouds.join(", "));
    BalancerRow {
        service: name,
        state: state.to_owned(),
        level,
        cloud: clouds.unwrap_or_default(),
        addresses,
        listeners: service
            .map(|service| listeners(service))
            .unwrap_or_default(),
        targets: targets.map(|target| target_row(target, ready)).collect(),
        more_targets: report.map_or(0, |report| count(report.more_targets)),
        traffic: None,
        note: report.and_then(|report| report.waits_for.clone()),
    }
}

fn state(stays: bool, published: bool, report: Option<&BalancerReport>) -> (&'static str, Level) {
    let report = report.map(|report| (report.state, report.waits_for.is_some()));
    match (stays, published, report) {
        (false, _, Some((BalancerState::Waiting, true))) => ("cannot be removed", Level::Warning),
        (false, _, _) => ("is being removed", Level::Neutral),
        (true, true, Some((BalancerState::Waiting, _))) => ("in service, waits", Level::Warning),
        (true, true, Some((BalancerState::Working, _))) => ("in service, changes", Level::Good),
        (true, true, _) => ("in service", Level::Good),
        (true, false, Some((BalancerState::Waiting, true))) => ("waits", Level::Warning),
        (true, false, _) => ("pending", Level::Neutral),
    }
}

fn addresses(service: &ServiceView) -> Vec<String> {
    let ingress = service.ingress.iter();
    ingress
        .filter_map(|ingress| ingress.ip.clone().or_else(|| ingress.hostname.clone()))
        .collect()
}

fn listeners(service: &ServiceView) -> Vec<String> {
    let ports = service.ports.iter();
    ports
        .map(|port| {
            let to = port.node_port.map(|to| format!(" → {to}"));
            format!("{} {}{}", port.protocol, port.port, to.unwrap_or_default())
        })
        .collect()
}

/// Whether a target is healthy is known only to the cloud; whether its Node is ready is known here.
fn target_row(target: &TargetReport, ready: &BTreeMap<&str, Readiness>) -> TargetRow {
    let is_ready = ready.get(target.node.as_str()) == Some(&Readiness::Ready);
    let (state, level) = match target.role {
        TargetUse::Serving if is_ready => ("serving", Level::Good),
        TargetUse::Serving => ("not ready", Level::Warning),
        TargetUse::Draining => ("draining", Level::Warning),
        TargetUse::Joining => ("joining", Level::Neutral),
        TargetUse::Leaving => ("leaving", Level::Neutral),
    };
    TargetRow {
        node: target.node.clone(),
        state: state.to_owned(),
        level,
        ..TargetRow::default()
    }
}

pub(super) fn route(route: &RouteReport) -> RouteRow {
    let (state, level) = match &route.role {
        RouteUse::Serving => ("ours".to_owned(), Level::Good),
        RouteUse::Foreign => ("somebody else's".to_owned(), Level::Neutral),
        RouteUse::Suspect => ("leads nowhere".to_owned(), Level::Warning),
        RouteUse::Missing { why } => (format!("missing: {why}"), Level::Bad),
    };
    RouteRow {
        destination: route.destination.clone(),
        to: route.to.clone(),
        cloud: route.cloud.clone(),
        state,
        level,
    }
}

pub(super) fn event(event: RecentEvent) -> EventRow {
    EventRow {
        id: event.id.to_string(),
        time: event.at.to_string(),
        level: match event.severity {
            Severity::Normal => Level::Neutral,
            Severity::Warning => Level::Warning,
        },
        reason: event.reason,
        object: event.object,
        message: event.message,
        count: u64::try_from(event.count).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests;
