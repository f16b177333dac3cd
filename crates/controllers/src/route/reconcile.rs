//! Reconciles a cloud's routes: list, plan, apply, write conditions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, ErrorKind, Event, NodeFacts, Retry, Route, RouteChange, RouteTarget, Routes,
    Shared, format_go_duration,
};
use ipnet::IpNet;
use tokio::time::Instant;
use tracing::{info, warn};

use super::plan::{NetworkPlan, Ownership, Plan, plan};
use super::{BACKOFF, Outcome, RouteController, Table};
use crate::clouds::{Cloud, OUTDATED, Owner, SCOPE_RETRY, ScopeCheck, owner_of};
use crate::log_messages::{
    POD_CIDR_CONFLICT, ROUTE_CREATE_FAILED, ROUTE_CREATED, ROUTE_DELETE_FAILED, ROUTE_DELETED,
    ROUTES_FAILED,
};
use crate::paused::paused_by;
use crate::planted::Bug;
use crate::report::routes::RouteSnapshot;
use crate::runtime::Verdict;
use crate::view::NodeView;

/// What became of each change, in their order.
pub(crate) type Results = Vec<Result<(), CloudError>>;

/// The Nodes by name, and whose each is.
pub(super) type Nodes = BTreeMap<String, (Arc<NodeView>, Ownership)>;

/// A Node as the target of routes. One of another cloud has no instance here: its ID may be that of another
/// one, where IDs do not tell accounts apart.
pub fn facts_in(cloud: &Cloud, clouds: &[Arc<Cloud>], node: &NodeView) -> Shared<NodeFacts> {
    let mut facts = node.facts.clone();
    let owner = owner_of(&node.facts, clouds);
    let in_any_cloud = Bug::MatchRoutesInAnyCloud.is_planted();
    if matches!(owner, Owner::Cloud(_)) && !owner.is(cloud) && !in_any_cloud {
        facts.provider_id = None;
    }
    facts
}

impl RouteController {
    /// `None` if no Node is this cloud's, so that there is nothing to ask.
    pub(super) async fn reconcile(
        &self,
        table: &Table,
        failures: u32,
    ) -> Option<(Outcome, Verdict)> {
        let cloud = &*table.cloud;
        let began = Instant::now();
        let provider = cloud.provider();
        let routes = provider.routes()?;
        let nodes = self.nodes_for(cloud);
        if !nodes.values().any(|(_, it)| *it == Ownership::Own) {
            table.state.lock().last = RouteSnapshot::default();
            return None;
        }
        let facts: Vec<_> = nodes
            .values()
            .map(|(node, _)| facts_in(cloud, &self.parts.clouds, node))
            .collect();
        let listed = match routes.list(&facts).await {
            Ok(listed) => listed,
            Err(error) => {
                let why = format!("the routes cannot be listed: {error}");
                return Some(give_up(table, why, Verdict::of(&error), failures));
            }
        };
        let planned = Instant::now();
        let plan = self.plan(table, &listed, &nodes, planned);
        if !plan.changes.is_empty()
            && !Bug::TakeForeignRoutes.is_planted()
            && let Err((why, verdict)) = self.check_scope(cloud, began).await
        {
            return Some(give_up(table, why, verdict, failures));
        }
        let results = self.apply(cloud, routes, &plan, &nodes).await;
        let written = self.write_conditions(&nodes, &plan, &results).await;
        let outcome = outcome_of(&results, written);
        let verdict = verdict_of(table, planned, &results, written, failures);
        table.state.lock().last = RouteSnapshot {
            listed,
            plan,
            results,
            error: None,
        };
        Some((outcome, verdict))
    }

    fn nodes_for(&self, cloud: &Cloud) -> Nodes {
        let nodes = self.parts.nodes.all().into_iter().map(|node| {
            // The routes of a paused Node stay as they are, as another owner's do.
            let is_paused = paused_by(&node.facts.annotations).is_some();
            let is_own = !is_paused && owner_of(&node.facts, &self.parts.clouds).is(cloud);
            let ownership = Ownership::of(&node, is_own);
            (node.facts.name.clone(), (node, ownership))
        });
        nodes.collect()
    }

    /// Routes are changed only in a project that has shown an instance of this cluster since they were listed.
    /// In another one, what seems to lead nowhere is another cluster's.
    async fn check_scope(&self, cloud: &Cloud, since: Instant) -> Result<(), (String, Verdict)> {
        match self
            .parts
            .guard()
            .confirmed_since(cloud, since, since)
            .await
        {
            ScopeCheck::Confirmed => Ok(()),
            ScopeCheck::Outdated => {
                let why = "the cloud showed another project until now";
                Err((why.to_owned(), Verdict::AgainAfter(OUTDATED)))
            }
            ScopeCheck::Unavailable(error) => {
                let why = format!("no machine of this cluster can be looked up: {error}");
                Err((why, Verdict::of(&error)))
            }
            ScopeCheck::Unrecognized { .. } | ScopeCheck::OtherCloud(_) => {
                let why = "the cloud shows no machine of this cluster, so no route is changed: check that the \
                           credential belongs to this cluster's project";
                Err((why.to_owned(), Verdict::AgainAfter(SCOPE_RETRY)))
            }
        }
    }

    fn plan(&self, table: &Table, listed: &[Route], nodes: &Nodes, now: Instant) -> Plan {
        let suspects = &mut table.state.lock().suspects;
        let nodes: Vec<_> = nodes
            .values()
            .map(|(node, it)| (&*node.facts, *it))
            .collect();
        let cluster_cidrs = &self.settings.cluster_cidrs;
        let plan = plan(cluster_cidrs, listed, &nodes, |route| {
            suspects.is_confirmed(route, now)
        });
        suspects.replace(&plan.suspects, now);
        if plan.has_unconfirmed {
            let (cloud, suspects) = (&table.cloud.name, plan.suspects.len());
            info!(
                cloud,
                suspects, "routes seem to lead nowhere, listing them again to confirm"
            );
        }
        plan
    }

    async fn apply(
        &self,
        cloud: &Cloud,
        routes: &dyn Routes,
        plan: &Plan,
        nodes: &Nodes,
    ) -> Results {
        let began = Instant::now();
        let results = if plan.changes.is_empty() {
            Results::new()
        } else {
            routes.apply(&plan.changes).await
        };
        let took = began.elapsed();
        let cloud = &cloud.name;
        for (change, result) in plan.changes.iter().zip(&results) {
            let (RouteChange::Create(route) | RouteChange::Delete(route)) = change;
            let (destination, to) = (route.destination, target_name(route));
            match (change, result) {
                (RouteChange::Create(_), Ok(())) => {
                    info!(cloud, %destination, to, "{ROUTE_CREATED}");
                }
                (RouteChange::Delete(_), Ok(())) => {
                    info!(cloud, %destination, to, "{ROUTE_DELETED}");
                }
                (_, Err(error)) if is_implemented_elsewhere(error) => {}
                (RouteChange::Create(_), Err(error)) => {
                    self.report_failure(cloud, nodes, route, error, took);
                }
                (RouteChange::Delete(_), Err(error)) => {
                    warn!(cloud, %destination, to, err = %error, "{ROUTE_DELETE_FAILED}");
                }
            }
        }
        self.report_conflicts(plan, nodes, took);
        results
    }

    fn report_failure(
        &self,
        cloud: &str,
        nodes: &Nodes,
        route: &Route,
        error: &CloudError,
        took: Duration,
    ) {
        let (destination, node) = (route.destination, target_name(route));
        let known = nodes.get(node).map(|(known, _)| known);
        if error.is_not_found()
            && let Some(known) = known
            && !self.patience.has_elapsed(&known.facts.uid)
        {
            // As when a machine is replaced: its Node is about to go.
            info!(cloud, node, %destination, err = %error, "instance not found, route not created yet");
            return;
        }
        warn!(cloud, node, %destination, err = %error, "{ROUTE_CREATE_FAILED}");
        if let Some(known) = known {
            self.record_not_created(&known.facts, destination, &error.cause(), took);
        }
    }

    fn report_conflicts(&self, plan: &Plan, nodes: &Nodes, took: Duration) {
        for planned in &plan.nodes {
            let Some((node, _)) = nodes.get(&planned.name) else {
                continue;
            };
            for (network, planned) in &planned.networks {
                if let NetworkPlan::Conflict { with } = planned {
                    let node = &node.facts;
                    warn!(node = node.name, %network, with, "{POD_CIDR_CONFLICT}");
                    self.record_not_created(node, *network, &conflict(with), took);
                }
            }
        }
    }

    fn record_not_created(&self, node: &NodeFacts, network: IpNet, why: &str, took: Duration) {
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

/// The Node or next hop that a route leads to.
pub(crate) fn target_name(route: &Route) -> &str {
    match &route.target {
        RouteTarget::Node { name, .. } => name,
        RouteTarget::Elsewhere { hop } => hop,
    }
}

/// Why a Pod CIDR has no route although nothing failed.
pub(crate) fn conflict(with: &str) -> String {
    format!("node {with} has the same Pod CIDR: delete and recreate one of the two")
}

/// Nothing can be done now. Changes of Nodes cannot help, so they do not shorten the wait.
fn give_up(table: &Table, why: String, verdict: Verdict, failures: u32) -> (Outcome, Verdict) {
    let mut state = table.state.lock();
    if state.last.error.is_none() {
        let cloud = &table.cloud.name;
        warn!(cloud, err = why, "{ROUTES_FAILED}");
    }
    state.last.error = Some(why);
    if let Some(until) = Instant::now().checked_add(pause(verdict, failures)) {
        state.schedule.postpone(until);
    }
    (Outcome::Failed, verdict)
}

fn outcome_of(results: &Results, written: Verdict) -> Outcome {
    let mut errors = results.iter().filter_map(|result| result.as_ref().err());
    if written != Verdict::Done || errors.any(|error| !is_implemented_elsewhere(error)) {
        Outcome::Failed
    } else if results.iter().any(Result::is_ok) {
        Outcome::Changed
    } else {
        Outcome::Unchanged
    }
}

/// What to do next: the longest pause that the cloud asks for, else whatever is soonest.
fn verdict_of(
    table: &Table,
    planned: Instant,
    results: &Results,
    written: Verdict,
    failures: u32,
) -> Verdict {
    let errors = results.iter().filter_map(|result| result.as_ref().err());
    let delays = errors.clone().filter_map(|error| match error.retry() {
        Retry::After(delay) => Some(delay),
        _ => None,
    });
    if let Some(delay) = delays.max() {
        let mut state = table.state.lock();
        state.schedule.postpone(Instant::now() + delay);
        return Verdict::AgainAfter(delay);
    }
    let failed = errors
        .map(Verdict::of)
        .chain([written])
        .min_by_key(|verdict| pause(*verdict, failures))
        .unwrap_or(Verdict::Done);
    match table.state.lock().suspects.next_due(planned) {
        Some(due) if due < pause(failed, failures) => Verdict::AgainAfter(due),
        _ => failed,
    }
}

fn pause(verdict: Verdict, failures: u32) -> Duration {
    verdict
        .retry_after(BACKOFF, failures)
        .unwrap_or(Duration::MAX)
}

/// Another component does it, so there is nothing to report.
pub(crate) fn is_implemented_elsewhere(error: &CloudError) -> bool {
    matches!(error.kind(), ErrorKind::ImplementedElsewhere)
}
