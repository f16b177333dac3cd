//! The report about balancers, from what the service controller remembers, without a cloud call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::{
    AddressKind, HealthState, HealthSummary, InstanceState, NodeAddress, ProviderId, TargetBy,
    TargetHealth,
};
use tokio::time::Instant;

use super::{
    BalancerReport, BalancerState, ControllerReport, HealthReport, ManagedResources, QueueReport,
    TargetReport, TargetUse, truncate,
};
use crate::clouds::Snapshot;
use crate::service::ServiceParts;
use crate::service::owner::owner_of_service;
use crate::service::targets::keys::{TargetKey, TargetKeys};
use crate::view::{NodeView, Readiness};
use crate::wellknown::SHUTDOWN_TAINT;

/// What the service controller remembers of a balancer.
#[derive(Default)]
pub(crate) struct BalancerSnapshot {
    /// `namespace/name` of its Service.
    pub(crate) service: String,
    /// The clouds in which there may be something of it.
    pub(crate) clouds: Vec<String>,
    /// What pauses it.
    pub(crate) paused: Option<String>,
    /// What went wrong last, until a reconciliation succeeds.
    pub(crate) error: Option<String>,
    /// What the cloud is waiting for.
    pub(crate) pending: Option<String>,
    /// Whether it is as the Service asks for.
    pub(crate) is_settled: bool,
    /// The targets that it has.
    pub(crate) applied: Option<Arc<TargetKeys>>,
    /// The targets that are being applied.
    pub(crate) applying: Option<Arc<TargetKeys>>,
    /// What the cloud said of its targets.
    pub(crate) health: Option<Arc<ObservedHealth>>,
}

/// The health of a balancer's targets, and when it was observed.
pub(crate) struct ObservedHealth {
    pub(crate) targets: Vec<TargetHealth>,
    pub(crate) at: Instant,
}

impl ObservedHealth {
    pub(crate) fn summary(&self) -> Option<HealthSummary> {
        HealthSummary::of(&self.targets)
    }

    fn report(&self) -> Option<HealthReport> {
        Some(HealthReport {
            summary: self.summary()?,
            seconds_ago: self.at.elapsed().as_secs(),
        })
    }
}

impl BalancerSnapshot {
    fn waits_for(&self) -> Option<&str> {
        let paused = self.paused.as_deref();
        paused.or(self.error.as_deref()).or(self.pending.as_deref())
    }

    /// A Service that failed stays so until a reconciliation succeeds: a retry that has begun is no success.
    fn state(&self) -> BalancerState {
        if self.paused.is_some() {
            BalancerState::Paused
        } else if self.error.is_some() {
            BalancerState::Failing
        } else if self.applying.is_some() {
            BalancerState::Working
        } else if self.is_settled {
            BalancerState::Settled
        } else {
            BalancerState::Waiting
        }
    }

    fn report(&self, nodes: &ObservedNodes) -> BalancerReport {
        let mut targets = self.targets(nodes);
        targets.sort_by(|one, other| one.order().cmp(&other.order()));
        let more_targets = truncate(&mut targets, BalancerReport::MOST_TARGETS);
        BalancerReport {
            service: self.service.clone(),
            clouds: self.clouds.clone(),
            state: self.state(),
            waits_for: self.waits_for().map(str::to_owned),
            targets,
            more_targets,
            health: self.health.as_ref().and_then(|health| health.report()),
        }
    }

    /// Of those in the same state, the one without a healthy target comes first.
    fn order(&self) -> (BalancerState, bool, &str) {
        let health = self.health.as_ref().and_then(|health| health.summary());
        let is_out = health.is_some_and(HealthSummary::is_outage);
        (self.state(), !is_out, &self.service)
    }

    /// The targets that the balancer has, and those that it is about to have.
    fn targets(&self, nodes: &ObservedNodes) -> Vec<TargetReport> {
        let has = self.applied.as_deref();
        let gets = self.applying.as_deref().or(has);
        let names = has.into_iter().chain(gets).flat_map(TargetKeys::keys);
        let names: BTreeSet<&String> = names.collect();
        let health = self.health.as_ref();
        let health = health.map(|health| HealthState::by_target(&health.targets));
        let report = |node: &String| TargetReport {
            node: node.clone(),
            health: health
                .as_ref()
                .and_then(|it| it.get(node.as_str()).copied()),
            role: match (
                has.and_then(|it| it.get(node)),
                gets.and_then(|it| it.get(node)),
            ) {
                (None, key) => key.and_then(unresolved).unwrap_or(TargetUse::Joining),
                (Some(_), None) => TargetUse::Leaving,
                (Some(_), Some(key)) if key.is_serving() => nodes.use_of(node, key),
                (Some(_), Some(_)) => TargetUse::Draining,
            },
        };
        names.into_iter().map(report).collect()
    }
}

impl ControllerReport {
    /// The state of the service controller with its balancers, and with the Services that cannot get one; those that
    /// need attention first.
    pub(crate) fn of_services(
        mut balancers: Vec<BalancerSnapshot>,
        queue: QueueReport,
        parts: &ServiceParts,
    ) -> Self {
        let waiting = balancers.iter().filter_map(|balancer| {
            let why = balancer.waits_for()?;
            Some(format!("{}: {why}", balancer.service))
        });
        let report = Self::new(queue, waiting).after_first_list(&parts.services);
        let nodes = ObservedNodes::new(parts);
        balancers.retain(|it| !it.clouds.is_empty() || it.waits_for().is_some());
        balancers.sort_by(|one, other| one.order().cmp(&other.order()));
        let more_balancers = truncate(&mut balancers, ManagedResources::MOST_BALANCERS);
        let mut unserved_services = unserved(parts);
        let most = ManagedResources::MOST_UNSERVED_SERVICES;
        let managed = ManagedResources {
            balancers: balancers.iter().map(|it| it.report(&nodes)).collect(),
            more_balancers,
            more_unserved_services: truncate(&mut unserved_services, most),
            unserved_services,
            ..ManagedResources::default()
        };
        Self { managed, ..report }
    }
}

/// The Services that wait for a balancer which no cloud here makes.
fn unserved(parts: &ServiceParts) -> Vec<String> {
    let mut services = parts.services.all();
    services.retain(|service| {
        service.is_load_balancer() && owner_of_service(service, &parts.classes).is_none()
    });
    let services = services.iter();
    services
        .map(|service| service.service.to_string())
        .collect()
}

/// What is known of Nodes and of their instances without asking a cloud.
#[derive(Default)]
struct ObservedNodes {
    nodes: BTreeMap<String, Arc<NodeView>>,
    /// The last list of each cloud.
    lists: Vec<Arc<Snapshot>>,
}

impl ObservedNodes {
    fn new(parts: &ServiceParts) -> Self {
        let nodes = parts.nodes.all().into_iter();
        let clouds = parts.clouds.iter();
        Self {
            nodes: nodes.map(|node| (node.facts.name.clone(), node)).collect(),
            lists: clouds.filter_map(|it| it.inventory.latest()).collect(),
        }
    }

    /// What a target is that a balancer should send traffic to.
    fn use_of(&self, name: &str, key: &TargetKey) -> TargetUse {
        if let Some(unresolved) = unresolved(key) {
            return unresolved;
        }
        let node = self.nodes.get(name);
        let is_tainted = node.is_some_and(|node| node.has_taint(SHUTDOWN_TAINT));
        let id = key.provider_id.as_ref();
        if is_tainted || id.is_some_and(|id| self.is_shut_down(id)) {
            return TargetUse::ShutDown;
        }
        match node.map(|node| node.readiness) {
            Some(Readiness::Ready) => TargetUse::Serving,
            Some(Readiness::NotReady | Readiness::Unknown) | None => TargetUse::NotReady,
        }
    }

    fn is_shut_down(&self, id: &ProviderId) -> bool {
        let found = self.lists.iter().find_map(|list| list.list.get(id));
        found.is_some_and(|instance| instance.state == InstanceState::ShutDown)
    }
}

impl TargetReport {
    /// Those that get no traffic come first.
    fn order(&self) -> (TargetUse, bool, &str) {
        let is_unhealthy = self.health == Some(HealthState::Unhealthy);
        (self.role, !is_unhealthy, &self.node)
    }
}

/// Why the cloud cannot find a target yet: a provider adds such a target once it can be found.
fn unresolved(key: &TargetKey) -> Option<TargetUse> {
    let is_address = |address: &NodeAddress| address.kind != AddressKind::Hostname;
    match key.by {
        TargetBy::Machine if key.provider_id.is_none() => Some(TargetUse::NoProviderId),
        TargetBy::Address if !key.addresses.iter().any(is_address) => Some(TargetUse::NoAddress),
        TargetBy::Machine | TargetBy::Address => None,
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::TargetState;

    use super::*;

    fn keys(targets: &[(&str, TargetState)]) -> Arc<TargetKeys> {
        let key = |(name, state): &(&str, TargetState)| {
            let key = TargetKey {
                provider_id: format!("local://p/{name}").parse().ok(),
                addresses: Vec::new(),
                by: TargetBy::Machine,
                state: *state,
            };
            ((*name).to_owned(), key)
        };
        Arc::new(targets.iter().map(key).collect())
    }

    fn ready(names: &[&str]) -> ObservedNodes {
        let node = |name: &&str| {
            let node = NodeView {
                readiness: Readiness::Ready,
                ..NodeView::default()
            };
            ((*name).to_owned(), Arc::new(node))
        };
        ObservedNodes {
            nodes: names.iter().map(node).collect(),
            ..ObservedNodes::default()
        }
    }

    fn reported(has: Option<Arc<TargetKeys>>, gets: Option<Arc<TargetKeys>>) -> BalancerReport {
        let snapshot = BalancerSnapshot {
            service: "shop/web".to_owned(),
            is_settled: has.is_some() && gets.is_none(),
            applied: has,
            applying: gets,
            ..BalancerSnapshot::default()
        };
        snapshot.report(&ready(&["a", "b", "c"]))
    }

    #[test]
    fn targets_are_reported_by_what_becomes_of_them_those_that_change_first() {
        use TargetState::{Draining, Serving};
        let (a, b, c) = (("a", Serving), ("b", Serving), ("c", Serving));
        let drained = ("b", Draining);
        let rest = |targets: &[_]| (Some(keys(targets)), None);
        let work = |has: &[_], gets: &[_]| (Some(keys(has)), Some(keys(gets)));
        for (case, (has, gets), state, expected) in [
            (
                "at rest",
                rest(&[a, drained]),
                BalancerState::Settled,
                &[("b", TargetUse::Draining), ("a", TargetUse::Serving)][..],
            ),
            (
                "at work",
                work(&[a, b], &[a, c]),
                BalancerState::Working,
                &[
                    ("b", TargetUse::Leaving),
                    ("c", TargetUse::Joining),
                    ("a", TargetUse::Serving),
                ],
            ),
            (
                "drained from now on",
                work(&[a, b], &[a, drained]),
                BalancerState::Working,
                &[("b", TargetUse::Draining), ("a", TargetUse::Serving)],
            ),
            (
                "the first time",
                (None, Some(keys(&[a]))),
                BalancerState::Working,
                &[("a", TargetUse::Joining)],
            ),
            ("not yet", (None, None), BalancerState::Waiting, &[]),
        ] {
            let report = reported(has, gets);
            let targets: Vec<_> = report
                .targets
                .iter()
                .map(|target| (target.node.as_str(), target.role))
                .collect();
            assert_eq!(targets, expected, "{case}");
            assert_eq!(report.state, state, "{case}");
        }
    }

    #[test]
    fn of_many_targets_the_rest_is_counted() {
        let names: Vec<_> = (0..50).map(|number| format!("n{number:02}")).collect();
        let all: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), TargetState::Serving))
            .collect();
        let report = reported(Some(keys(&all)), None);
        assert_eq!(report.targets.len(), BalancerReport::MOST_TARGETS);
        assert_eq!(report.more_targets, 30);
    }

    #[test]
    fn the_health_of_targets_is_reported_those_that_are_out_first() {
        let state = |target: &str, state| TargetHealth {
            target: target.to_owned(),
            listener: Some(80),
            state,
        };
        let of = |targets: Vec<TargetHealth>| BalancerSnapshot {
            service: "shop/web".to_owned(),
            is_settled: true,
            applied: Some(keys(&[
                ("a", TargetState::Serving),
                ("b", TargetState::Serving),
                ("c", TargetState::Serving),
            ])),
            health: Some(Arc::new(ObservedHealth {
                targets,
                at: Instant::now(),
            })),
            ..BalancerSnapshot::default()
        };
        let (up, down) = (HealthState::Healthy, HealthState::Unhealthy);
        let report = of(vec![state("a", up), state("c", down)]).report(&ready(&["a", "b", "c"]));
        let reported = report.targets.iter();
        let reported: Vec<_> = reported.map(|it| (it.node.as_str(), it.health)).collect();
        assert_eq!(reported, [("c", Some(down)), ("a", Some(up)), ("b", None)]);
        let summary = report.health.unwrap().summary;
        assert_eq!((summary.healthy, summary.unhealthy), (1, 1));
        let out = of(vec![state("a", down)]);
        let fine = BalancerSnapshot {
            service: "a/first".to_owned(),
            ..of(vec![state("a", up)])
        };
        assert!(
            out.order() < fine.order(),
            "one without a healthy target comes first"
        );
    }
}
