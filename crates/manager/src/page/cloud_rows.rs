//! The page's rows of load balancers, routes and events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::{HealthState, HealthSummary, Severity, TrafficPolicy};
use cloudkeel_controllers::report::{
    BalancerReport, BalancerState, HealthReport, ManagedResources, RouteReport, RouteUse,
    TargetReport, TargetUse,
};
use cloudkeel_controllers::runtime::RecentEvent;
use cloudkeel_controllers::view::ServiceView;
use cloudkeel_page::{
    BalancerRow, EventRow, Level, RouteRow, ServiceFacts, SyncState, TargetRow, Unhealthy,
};

use super::node_rows::count;

/// The Services that need a load balancer or still have one, by name.
pub(super) fn balancers(
    services: &[Arc<ServiceView>],
    managed: &ManagedResources,
) -> Vec<BalancerRow> {
    let reports = managed.balancers.iter();
    let mut reports: BTreeMap<&str, _> = reports
        .map(|report| (report.service.as_str(), report))
        .collect();
    let unserved = managed.unserved_services.iter();
    let unserved: BTreeSet<&str> = unserved.map(String::as_str).collect();
    let mut rows = Vec::new();
    for service in services {
        let name = service.service.to_string();
        let report = reports.remove(name.as_str());
        if service.is_load_balancer() || report.is_some() {
            let is_served = !unserved.contains(name.as_str());
            rows.push(row(name, Some(service), report, is_served));
        }
    }
    let left = reports.into_iter();
    rows.extend(left.map(|(name, report)| row(name.to_owned(), None, Some(report), true)));
    rows.sort_by(|one, other| one.service.cmp(&other.service));
    rows
}

fn row(
    name: String,
    service: Option<&Arc<ServiceView>>,
    report: Option<&BalancerReport>,
    is_served: bool,
) -> BalancerRow {
    let addresses = service.map(|service| addresses(service));
    let addresses = addresses.unwrap_or_default();
    let targets = report.into_iter().flat_map(|report| &report.targets);
    let targets: Vec<_> = targets.map(target_row).collect();
    let more_targets = report.map_or(0, |report| count(report.more_targets));
    let health = report.and_then(|report| report.health);
    let facts = ServiceFacts {
        is_wanted: service.is_some_and(|service| service.is_load_balancer() && !service.deleting),
        is_served,
        has_address: !addresses.is_empty(),
        sync: report.map(|report| sync_state(report.state)),
        targets: Some((&targets, more_targets)),
        unhealthy: health.map_or(Unhealthy::None, |it| unhealthy(service, it)),
    };
    let (state, level) = facts.state();
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
        targets,
        more_targets,
        health: health.map(health_text),
        traffic: None,
        note: report.and_then(|report| report.waits_for.clone()),
    }
}

/// With `externalTrafficPolicy: Local`, a Node without a Pod of the Service is meant to fail its health check.
fn unhealthy(service: Option<&Arc<ServiceView>>, health: HealthReport) -> Unhealthy {
    let is_local = service.is_some_and(|it| it.traffic_policy == TrafficPolicy::Local);
    if health.summary.is_outage() {
        Unhealthy::All
    } else if health.summary.unhealthy > 0 && !is_local {
        Unhealthy::Some
    } else {
        Unhealthy::None
    }
}

fn health_text(health: HealthReport) -> String {
    let HealthSummary {
        healthy,
        unhealthy,
        unknown,
    } = health.summary;
    let all = healthy + unhealthy + unknown;
    let ago = match health.seconds_ago {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => format!("{}m", seconds / 60),
    };
    format!("{healthy} of {all} targets healthy, checked {ago} ago")
}

const fn sync_state(state: BalancerState) -> SyncState {
    match state {
        BalancerState::Failing => SyncState::Failing,
        BalancerState::Waiting => SyncState::Waiting,
        BalancerState::Paused => SyncState::Paused,
        BalancerState::Working => SyncState::Working,
        BalancerState::Settled => SyncState::Settled,
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
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            format!("{protocol} {}{}", port.port, to.unwrap_or_default())
        })
        .collect()
}

/// Only the cloud knows whether a target is healthy; whether it can be is known here.
fn target_row(target: &TargetReport) -> TargetRow {
    let (state, level) = match target.role {
        TargetUse::Serving => serving(target.health),
        TargetUse::NotReady => ("not ready", Level::Warning),
        TargetUse::ShutDown => ("shut down", Level::Warning),
        TargetUse::NoProviderId => ("no provider ID", Level::Warning),
        TargetUse::NoAddress => ("no address", Level::Warning),
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

/// A cloud that says nothing of health is taken to serve them all.
const fn serving(health: Option<HealthState>) -> (&'static str, Level) {
    match health {
        None => ("serving", Level::Good),
        Some(HealthState::Healthy) => ("serving, healthy", Level::Good),
        Some(HealthState::Unhealthy) => ("unhealthy", Level::Bad),
        Some(HealthState::Unknown) => ("serving, not checked yet", Level::Neutral),
    }
}

pub(super) fn route(route: &RouteReport) -> RouteRow {
    let (state, level) = match &route.role {
        RouteUse::Serving => ("ours".to_owned(), Level::Good),
        RouteUse::Foreign => ("not ours".to_owned(), Level::Neutral),
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

pub(super) fn event(event: &RecentEvent) -> EventRow {
    EventRow {
        id: event.id.to_string(),
        time: event.at.to_string(),
        level: match event.severity {
            Severity::Normal => Level::Neutral,
            Severity::Warning => Level::Warning,
        },
        reason: event.reason.clone(),
        object: event.object.clone(),
        message: event.message.clone(),
        count: u64::try_from(event.count).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests;
