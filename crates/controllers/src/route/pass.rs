//! One look at a cloud's routes: list, plan, apply, tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, ErrorKind, Event, NodeFacts, Retry, Route, RouteChange, Routes, Shared,
    format_go_duration,
};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::hold::Seen;
use super::plan::{Member, Plan, Situation, Standing, Wish, plan};
use super::{BACKOFF, Outcome, RouteController, Table};
use crate::clouds::{Cloud, Owner, ScopeCheck, ScopeGuard, owner_of};
use crate::planted::Bug;
use crate::runtime::Verdict;
use crate::view::NodeView;
use crate::wellknown::UNINITIALIZED_TAINT;

/// How soon to look again at a cloud that shows no machine of this cluster.
const AGAIN: Duration = Duration::from_secs(30);

/// What came of a look.
pub(super) struct Passed {
    pub(super) outcome: Outcome,
    pub(super) verdict: Verdict,
}

/// What came of each change, in their order.
pub(super) type Results = Vec<Result<(), CloudError>>;

/// The Nodes at the beginning of a look by name, and what each is to the cloud.
pub(super) type Members = BTreeMap<String, (Arc<NodeView>, Standing)>;

impl RouteController {
    /// Looks at a cloud's routes. `None` if no Node is this cloud's, so that there is nothing to ask.
    pub(super) async fn pass(&self, table: &Table, failures: u32) -> Option<Passed> {
        let provider = table.cloud.provider();
        let routes = provider.routes()?;
        let members = self.members(&table.cloud);
        let mut nodes = members.values();
        if !nodes.any(|(_, standing)| *standing == Standing::Own) {
            table.state().seen = Seen::default();
            return None;
        }
        let began = Instant::now();
        let facts = members.values();
        let facts: Vec<_> = facts
            .map(|(node, _)| self.facts_in(&table.cloud, node))
            .collect();
        let listed = match routes.list(&facts).await {
            Ok(listed) => listed,
            Err(error) => {
                let why = format!("the routes cannot be listed: {error}");
                return Some(hold_back(table, why, Verdict::of(&error), failures));
            }
        };
        if failures > 0 {
            debug!(
                cloud = table.cloud.name,
                failures, "the routes are listed again"
            );
        }
        let plan = self.plan(table, &listed, &members);
        if !plan.changes.is_empty()
            && !Bug::TakeStrangersRoutes.is_planted()
            && let Err((why, verdict)) = self.may_change(&table.cloud, began).await
        {
            return Some(hold_back(table, why, verdict, failures));
        }
        let results = self.apply(table, routes, &plan, &members).await;
        table.state().seen = Seen::of(&table.cloud.name, &listed, &plan, &results);
        let written = self.write_conditions(&members, &plan, &results).await;
        Some(Passed {
            outcome: outcome_of(&results, written),
            verdict: verdict_of(table, &results, written, failures),
        })
    }

    fn members(&self, cloud: &Cloud) -> Members {
        let nodes = self.parts.nodes.all().into_iter().map(|node| {
            let standing = if !owner_of(&node.facts, &self.parts.clouds).is(cloud) {
                Standing::Foreign
            } else if node.facts.provider_id.is_none() && node.has_taint(UNINITIALIZED_TAINT) {
                // Its machine has not been found yet: there is nothing that a route could lead to.
                Standing::Newcomer
            } else {
                Standing::Own
            };
            (node.facts.name.clone(), (node, standing))
        });
        nodes.collect()
    }

    /// A Node as the target of routes. One of another cloud has no instance here: its ID may be that of another one,
    /// where IDs do not tell accounts apart.
    fn facts_in(&self, cloud: &Cloud, node: &NodeView) -> Shared<NodeFacts> {
        let mut facts = node.facts.clone();
        let owner = owner_of(&node.facts, &self.parts.clouds);
        if matches!(owner, Owner::Cloud(_)) && !owner.is(cloud) {
            facts.provider_id = None;
        }
        facts
    }

    /// Routes are changed only in a project that has shown a machine of this cluster since they were listed.
    /// In another one, what seems to lead nowhere is another cluster's.
    async fn may_change(&self, cloud: &Cloud, since: Instant) -> Result<(), (String, Verdict)> {
        let guard = ScopeGuard::new(&self.parts.nodes, &self.parts.clouds);
        match guard.confirmed_since(cloud, since).await {
            ScopeCheck::Confirmed => Ok(()),
            ScopeCheck::Unavailable(error) => {
                let why = format!("no machine of this cluster can be looked up: {error}");
                Err((why, Verdict::of(&error)))
            }
            ScopeCheck::Unrecognized { .. } => {
                let why = "no machine of this cluster is seen there, so its credential may be that of \
                           another project; no route is changed";
                Err((why.to_owned(), Verdict::AgainAfter(AGAIN)))
            }
        }
    }

    fn plan(&self, table: &Table, listed: &[Route], members: &Members) -> Plan {
        let now = Instant::now();
        let suspicions = &mut table.state().suspicions;
        let members = members.values().map(|(node, standing)| Member {
            facts: &node.facts,
            standing: *standing,
        });
        let situation = Situation {
            cluster_cidrs: &self.settings.cluster_cidrs,
            routes: listed,
            nodes: &members.collect::<Vec<_>>(),
        };
        let plan = plan(&situation, |route| suspicions.confirm(route, now));
        suspicions.note(plan.suspects.clone(), now);
        if plan.needs_second_look {
            let suspects = plan.suspects.len();
            let cloud = &table.cloud.name;
            info!(
                cloud,
                suspects, "some routes seem to lead nowhere; a second look will tell"
            );
        }
        plan
    }

    async fn apply(
        &self,
        table: &Table,
        routes: &dyn Routes,
        plan: &Plan,
        members: &Members,
    ) -> Results {
        let began = Instant::now();
        let results = if plan.changes.is_empty() {
            Results::new()
        } else {
            answers(routes.apply(&plan.changes).await, plan.changes.len())
        };
        let took = began.elapsed();
        for (change, result) in plan.changes.iter().zip(&results) {
            match result {
                Ok(()) => debug!(cloud = table.cloud.name, %change, "done"),
                Err(error) => self.tell_failure(table, members, change, error, took),
            }
        }
        self.tell_contests(plan, members, took);
        let done = results.iter().filter(|result| result.is_ok()).count();
        if !results.is_empty() {
            let failed = results.len() - done;
            info!(cloud = table.cloud.name, done, failed, "routes changed");
        }
        results
    }

    fn tell_failure(
        &self,
        table: &Table,
        members: &Members,
        change: &RouteChange,
        error: &CloudError,
        took: Duration,
    ) {
        if is_elsewhere(error) {
            return;
        }
        let RouteChange::Create(route) = change else {
            warn!(cloud = table.cloud.name, %change, %error, "failed");
            return;
        };
        let node = route.target.node_name();
        let node = node.and_then(|name| members.get(name));
        if error.is_not_found()
            && let Some((node, _)) = node
            && !self.patience.is_over(&node.facts.uid)
        {
            // As when a machine is replaced: its Node is about to go.
            info!(cloud = table.cloud.name, %change, %error, "left out for now");
            return;
        }
        warn!(cloud = table.cloud.name, %change, %error, "failed");
        if let Some((node, _)) = node {
            let why = error.cause();
            self.tell_not_created(&node.facts, &route.destination.to_string(), &why, took);
        }
    }

    fn tell_contests(&self, plan: &Plan, members: &Members, took: Duration) {
        for planned in &plan.nodes {
            let Some((node, _)) = members.get(&planned.name) else {
                continue;
            };
            for (network, wish) in &planned.networks {
                if let Wish::Contested { with } = wish {
                    let why = format!("it is the Pod network of node {with} too");
                    warn!(node = planned.name, %network, with, "two Nodes have the same network");
                    self.tell_not_created(&node.facts, &network.to_string(), &why, took);
                }
            }
        }
    }

    fn tell_not_created(&self, node: &NodeFacts, network: &str, why: &str, took: Duration) {
        // Whole seconds, so that failures of the same cause are one Event.
        let took = Duration::from_secs(took.as_secs());
        let message = format!(
            "Could not create route {} {network} for node {} after {}: {why}",
            node.uid,
            node.name,
            format_go_duration(took),
        );
        let event = Event::warning(node, "FailedToCreateRoute", message);
        self.parts.events.emit(event);
    }
}

/// Nothing can be done now. News about Nodes cannot help, so they do not shorten the wait.
fn hold_back(table: &Table, why: String, verdict: Verdict, failures: u32) -> Passed {
    let mut state = table.state();
    if state.seen.complaint.is_none() {
        warn!(
            cloud = table.cloud.name,
            why, "the routes are left as they are"
        );
    }
    state.seen.complaint = Some(why);
    if let Some(until) = Instant::now().checked_add(pause(verdict, failures)) {
        state.agenda.hold(until);
    }
    Passed {
        outcome: Outcome::Failed,
        verdict,
    }
}

fn outcome_of(results: &Results, written: Verdict) -> Outcome {
    let mut errors = results.iter().filter_map(|result| result.as_ref().err());
    if written != Verdict::Done || errors.any(|error| !is_elsewhere(error)) {
        Outcome::Failed
    } else if results.iter().any(Result::is_ok) {
        Outcome::Changed
    } else {
        Outcome::Unchanged
    }
}

/// What to do next: the most patient answer that the cloud asks for, else whatever is soonest.
fn verdict_of(table: &Table, results: &Results, written: Verdict, failures: u32) -> Verdict {
    let errors = results.iter().filter_map(|result| result.as_ref().err());
    let told_to_wait = errors.clone().filter_map(|error| match error.retry() {
        Retry::After(delay) => Some(delay),
        _ => None,
    });
    let now = Instant::now();
    if let Some(delay) = told_to_wait.max() {
        table.state().agenda.hold(now + delay);
        return Verdict::AgainAfter(delay);
    }
    let failed = errors
        .map(Verdict::of)
        .chain([written])
        .min_by_key(|verdict| pause(*verdict, failures))
        .unwrap_or(Verdict::Done);
    match table.state().suspicions.next_look(now) {
        Some(look) if look < pause(failed, failures) => Verdict::AgainAfter(look),
        _ => failed,
    }
}

/// How long a verdict will wait.
fn pause(verdict: Verdict, failures: u32) -> Duration {
    match verdict {
        Verdict::AgainAfter(delay) => delay,
        Verdict::Failed => BACKOFF.pause(failures.saturating_add(1)),
        Verdict::NeedsPerson => BACKOFF.longest,
        Verdict::Done => Duration::MAX,
    }
}

/// One answer for each change: a provider that answers for fewer leaves the rest unknown.
fn answers(mut results: Results, changes: usize) -> Results {
    results.resize_with(changes, || {
        Err(CloudError::new(
            "change routes",
            ErrorKind::Incomplete,
            "the provider did not say what became of it",
        ))
    });
    results
}

/// Another component does it, so there is nothing to report.
pub(super) fn is_elsewhere(error: &CloudError) -> bool {
    matches!(error.kind(), ErrorKind::ImplementedElsewhere)
}
