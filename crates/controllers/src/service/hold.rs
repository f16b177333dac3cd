//! What is told of balancers to people who ask: only what is remembered anyway.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::controller::ServiceController;
use super::marks::{Aimed, Marks};
use super::records::Record;
use crate::report::{
    BalancerReport, BalancerState, ControllerReport, Holdings, TargetReport, TargetUse,
};

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

    /// The balancers, those with something to do first.
    pub(super) fn hold(&self) -> Holdings {
        let mut order: Vec<(BalancerState, String)> = Vec::new();
        self.records.for_each(|key, record| {
            if record.may_have_balancer() {
                order.push((state_of(record), key.to_owned()));
            }
        });
        order.sort_unstable();
        let more_balancers = order.len().saturating_sub(Holdings::MOST_BALANCERS);
        order.truncate(Holdings::MOST_BALANCERS);
        let told = order.iter().filter_map(|(_, key)| {
            self.records
                .read(key, |record| report_of(key.clone(), record))
        });
        Holdings {
            balancers: told.collect(),
            more_balancers,
            ..Holdings::default()
        }
    }
}

fn state_of(record: &Record) -> BalancerState {
    if record.applying.is_some() {
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

fn report_of(service: String, record: &Record) -> BalancerReport {
    let mut targets = targets_of(record);
    targets.sort_by(|one, other| (one.role, &one.node).cmp(&(other.role, &other.node)));
    let more_targets = targets.len().saturating_sub(BalancerReport::MOST_TARGETS);
    targets.truncate(BalancerReport::MOST_TARGETS);
    BalancerReport {
        service,
        clouds: record.clouds.iter().cloned().collect(),
        state: state_of(record),
        waits_for: waits_for(record).map(str::to_owned),
        targets,
        more_targets,
    }
}

/// The targets that the balancer has, and those that it is about to have.
fn targets_of(record: &Record) -> Vec<TargetReport> {
    let has = record.applied();
    let gets = record.applying.as_ref().or(has);
    let names = has.into_iter().chain(gets).flat_map(|marks| marks.keys());
    let names: BTreeSet<&String> = names.collect();
    names
        .into_iter()
        .map(|node| {
            let mark_in = |marks: Option<&'_ Arc<Marks>>| marks?.get(node).map(Aimed::is_serving);
            TargetReport {
                node: node.clone(),
                role: role_of(mark_in(has), mark_in(gets)),
            }
        })
        .collect()
}

/// What a Node is to a balancer: whether it serves in what the balancer has, and in what it gets.
const fn role_of(has: Option<bool>, gets: Option<bool>) -> TargetUse {
    match (has, gets) {
        (None, _) => TargetUse::Joining,
        (Some(_), None) => TargetUse::Leaving,
        (Some(_), Some(true)) => TargetUse::Serving,
        (Some(_), Some(false)) => TargetUse::Draining,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
                ..NodeFacts::default()
            };
            let by = TargetBy::Machine;
            let state = *state;
            ((*name).to_owned(), Target { node, by, state })
        };
        let targets: BTreeMap<_, _> = targets.iter().map(target).collect();
        Arc::new(marks_of(&targets))
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
            report_of("shop/web".to_owned(), record)
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
