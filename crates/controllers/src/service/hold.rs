//! What is told of balancers to people who ask: only what is remembered anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::{InstanceState, ProviderId};

use super::controller::ServiceController;
use super::marks::{Aimed as _, Mark, Marks};
use super::records::Record;
use super::wants::owner_of_service;
use crate::clouds::Snapshot;
use crate::report::{
    BalancerReport, BalancerState, ControllerReport, Holdings, TargetReport, TargetUse,
};
use crate::view::{NodeView, Readiness, ServiceView};
use crate::wellknown::SHUTDOWN_TAINT;

impl ServiceController {
    pub(super) fn tell(&self) -> ControllerReport {
        let mut report = ControllerReport {
            queue: self.queue.report(),
            ..ControllerReport::default()
        };
        if !self.parts.services.has_synced() {
            let first = "the first list of Services".to_owned();
            report.waits_for.push(first);
        }
        let mut waiting = Vec::new();
        self.records.for_each(|key, record| {
            if let Some(why) = waits_for(record) {
                waiting.push(format!("{key}: {why}"));
            }
        });
        report.wait_for(waiting);
        report
    }

    /// The balancers, and the Services that cannot get one; those with something to do first.
    pub(super) fn hold(&self) -> Holdings {
        let mut order: Vec<(BalancerState, String)> = Vec::new();
        self.records.for_each(|key, record| {
            if record.may_have_balancer() || waits_for(record).is_some() {
                order.push((state_of(record), key.to_owned()));
            }
        });
        order.sort_unstable();
        let more_balancers = order.len().saturating_sub(Holdings::MOST_BALANCERS);
        order.truncate(Holdings::MOST_BALANCERS);
        let nodes = self.observed_nodes();
        let told = order.iter().filter_map(|(_, key)| {
            self.records
                .read(key, |record| report_of(key.clone(), record, &nodes))
        });
        let mut unserved_services = self.unserved();
        let most = Holdings::MOST_UNSERVED_SERVICES;
        let more_unserved_services = unserved_services.len().saturating_sub(most);
        unserved_services.truncate(most);
        Holdings {
            balancers: told.collect(),
            more_balancers,
            unserved_services,
            more_unserved_services,
            ..Holdings::default()
        }
    }

    /// The Services that wait for a balancer which no cloud here makes.
    fn unserved(&self) -> Vec<String> {
        let services = self.parts.services.all().into_iter();
        let is_unserved = |service: &Arc<ServiceView>| {
            service.is_load_balancer && owner_of_service(service, &self.parts.classes).is_none()
        };
        let unserved = services.filter(is_unserved);
        unserved
            .map(|service| service.service.to_string())
            .collect()
    }

    fn observed_nodes(&self) -> ObservedNodes {
        let clouds = self.parts.clouds.iter();
        let nodes = self.parts.nodes.all().into_iter();
        ObservedNodes {
            nodes: nodes.map(|node| (node.facts.name.clone(), node)).collect(),
            lists: clouds.filter_map(|it| it.inventory.latest()).collect(),
        }
    }
}

/// What is known of Nodes and of their machines without asking a cloud.
#[derive(Default)]
struct ObservedNodes {
    nodes: BTreeMap<String, Arc<NodeView>>,
    /// The last list of each cloud.
    lists: Vec<Arc<Snapshot>>,
}

impl ObservedNodes {
    /// What a target is that a balancer should send traffic to.
    fn use_of(&self, name: &str, mark: &Mark) -> TargetUse {
        if let Some(unresolved) = mark.unresolved() {
            return unresolved;
        }
        let node = self.nodes.get(name);
        let is_tainted = node.is_some_and(|node| node.has_taint(SHUTDOWN_TAINT));
        if is_tainted || mark.provider_id().is_some_and(|id| self.is_shut_down(id)) {
            return TargetUse::ShutDown;
        }
        match node.map(|node| node.readiness) {
            Some(Readiness::Ready) => TargetUse::Serving,
            Some(Readiness::NotReady | Readiness::Unknown) | None => TargetUse::NotReady,
        }
    }

    fn is_shut_down(&self, id: &ProviderId) -> bool {
        let found = self.lists.iter().find_map(|list| list.sweep.get(id));
        found.is_some_and(|instance| instance.state == InstanceState::ShutDown)
    }
}

/// A Service that failed stays so until it is as wished: a retry that has begun is no success.
fn state_of(record: &Record) -> BalancerState {
    if record.complaint.is_some() {
        BalancerState::Failing
    } else if record.applying.is_some() {
        BalancerState::Working
    } else if record.at_rest().is_some() {
        BalancerState::Settled
    } else {
        BalancerState::Waiting
    }
}

fn waits_for(record: &Record) -> Option<&str> {
    let complaint = record.complaint.as_deref();
    complaint.or(record.told.pending.as_deref())
}

fn report_of(service: String, record: &Record, nodes: &ObservedNodes) -> BalancerReport {
    let mut targets = targets_of(record, nodes);
    targets.sort_by(|one, other| (one.role, &one.node).cmp(&(other.role, &other.node)));
    let more_targets = targets.len().saturating_sub(BalancerReport::MOST_TARGETS);
    targets.truncate(BalancerReport::MOST_TARGETS);
    BalancerReport {
        service,
        clouds: record.clouds().cloned().collect(),
        state: state_of(record),
        waits_for: waits_for(record).map(str::to_owned),
        targets,
        more_targets,
    }
}

/// The targets that the balancer has, and those that it is about to have.
fn targets_of(record: &Record, nodes: &ObservedNodes) -> Vec<TargetReport> {
    let has = record.applied();
    let gets = record.applying.as_ref().or(has);
    let names = has.into_iter().chain(gets).flat_map(|marks| marks.keys());
    let names: BTreeSet<&String> = names.collect();
    names
        .into_iter()
        .map(|node| {
            let mark_in = |marks: Option<&'_ Arc<Marks>>| marks?.get(node).cloned();
            let role = match (mark_in(has), mark_in(gets)) {
                (None, gets) => {
                    let unresolved = gets.and_then(|mark| mark.unresolved());
                    unresolved.unwrap_or(TargetUse::Joining)
                }
                (Some(_), None) => TargetUse::Leaving,
                (Some(_), Some(mark)) if mark.is_serving() => nodes.use_of(node, &mark),
                (Some(_), Some(_)) => TargetUse::Draining,
            };
            let node = node.clone();
            TargetReport { node, role }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{NodeFacts, Target, TargetBy, TargetState};
    use serde_json::json;

    use super::super::fixtures::service;
    use super::super::marks::marks_of;
    use super::super::records::{Records, Settled};
    use super::*;

    fn marks(targets: &[(&str, TargetState)]) -> Arc<Marks> {
        let target = |(name, state): &(&str, TargetState)| {
            let node = NodeFacts {
                name: (*name).to_owned(),
                provider_id: format!("local://p/{name}").parse().ok(),
                ..NodeFacts::default()
            };
            let node = node.into();
            let by = TargetBy::Machine;
            let state = *state;
            ((*name).to_owned(), Target { node, by, state })
        };
        let targets: BTreeMap<_, _> = targets.iter().map(target).collect();
        Arc::new(marks_of(&targets))
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

    fn told(has: Option<Arc<Marks>>, gets: Option<Arc<Marks>>) -> BalancerReport {
        let service = Arc::new(service(json!({})));
        let records = Records::default();
        records.update(&service, |record| {
            record.settled = has.map(|marks| Settled {
                service: Arc::clone(&service),
                marks,
            });
            record.applying = gets;
            report_of("shop/web".to_owned(), record, &ready(&["a", "b", "c"]))
        })
    }

    #[test]
    fn targets_are_told_by_what_becomes_of_them_those_that_change_first() {
        use TargetState::{Draining, Serving};
        let (a, b, c) = (("a", Serving), ("b", Serving), ("c", Serving));
        let drained = ("b", Draining);
        let rest = |targets: &[_]| (Some(marks(targets)), None);
        let work = |has: &[_], gets: &[_]| (Some(marks(has)), Some(marks(gets)));
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
                (None, Some(marks(&[a]))),
                BalancerState::Working,
                &[("a", TargetUse::Joining)],
            ),
            ("not yet", (None, None), BalancerState::Waiting, &[]),
        ] {
            let report = told(has, gets);
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
        let report = told(Some(marks(&all)), None);
        assert_eq!(report.targets.len(), BalancerReport::MOST_TARGETS);
        assert_eq!(report.more_targets, 30);
    }
}
