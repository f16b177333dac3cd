//! Collects what would be done: each step once, replaced when its object is planned again.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudkeel_api::{BudgetRecord, SharedObserver};
use cloudkeel_api::{CallObserver, CallRecord, Plan, RouteChange, ServiceRef, StepAction};
use cloudkeel_controllers::ControllerName;
use cloudkeel_controllers::report::{PendingDeletion, RouteReport};
use serde_json::Value;
use tracing::info;

use super::order_of;
use super::step::{CloudCalls, DryRunReport, DryRunStep, WaitingReport};
use crate::log_messages::DRY_RUN_STEP;
use crate::metrics::DryRunMetrics;

/// Why a Node is deleted.
pub(crate) const INSTANCE_GONE: &str = ", its instance is gone";

/// A write to the cluster that was not made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectWrite {
    /// The path of the object in the API.
    pub(crate) path: String,
    /// What it was planned for.
    pub(crate) uid: String,
    /// Of a deletion: the version of the object.
    pub(crate) resource_version: Option<String>,
    /// Of a patch: what it says.
    pub(crate) patch: Option<Value>,
    /// How it reads.
    pub(crate) step: DryRunStep,
}

/// Collects steps. All parts of a dry run share it.
#[derive(Default)]
pub(crate) struct Recorder {
    state: Mutex<State>,
    metrics: Option<DryRunMetrics>,
}

#[derive(Default)]
struct State {
    /// By path and text.
    writes: BTreeMap<(String, String), ObjectWrite>,
    /// By cloud and Service.
    balancers: BTreeMap<(String, ServiceRef), Vec<DryRunStep>>,
    /// By cloud.
    routes: BTreeMap<String, Vec<DryRunStep>>,
    /// What is done once it is confirmed, by cloud or cluster, and object.
    unconfirmed: BTreeMap<(Option<String>, String), DryRunStep>,
    waiting: BTreeSet<WaitingReport>,
    problems: BTreeSet<String>,
    /// What could not be read, by cloud and kind of call.
    failures: BTreeMap<(String, String), String>,
    not_planned: BTreeSet<String>,
    calls: BTreeMap<String, u64>,
    is_complete: bool,
}

impl Recorder {
    /// One that counts the steps in metrics as well.
    pub(crate) fn with_metrics(metrics: DryRunMetrics) -> Self {
        metrics.set(std::iter::empty());
        Self {
            state: Mutex::default(),
            metrics: Some(metrics),
        }
    }

    /// A write to the cluster. Those of the same object and text are one.
    pub(crate) fn note_write(&self, write: ObjectWrite) {
        let key = (write.path.clone(), write.step.text.clone());
        self.change(|state| {
            let step = write.step.clone();
            let before = state.writes.insert(key, write);
            if before.is_some() {
                Vec::new()
            } else {
                vec![step]
            }
        });
    }

    /// The writes that were recorded, to find out which are still to be done.
    pub(crate) fn writes(&self) -> Vec<ObjectWrite> {
        self.lock().writes.values().cloned().collect()
    }

    /// A write that need not be made any more.
    pub(crate) fn forget_write(&self, write: &ObjectWrite) {
        let key = (write.path.clone(), write.step.text.clone());
        self.change(|state| {
            state.writes.remove(&key);
            Vec::new()
        });
    }

    /// The Services with steps of balancers.
    pub(crate) fn planned_services(&self) -> BTreeSet<ServiceRef> {
        let state = self.lock();
        let keys = state.balancers.keys();
        keys.map(|(_, service)| service.clone()).collect()
    }

    /// A Service that is gone.
    pub(crate) fn forget_service(&self, service: &ServiceRef) {
        self.change(|state| {
            state.balancers.retain(|(_, of), _| of != service);
            Vec::new()
        });
    }

    /// The plan for a balancer, instead of the one before.
    pub(crate) fn set_balancer(&self, cloud: &str, service: &ServiceRef, plan: &Plan) {
        let steps = plan.steps.iter().map(|step| DryRunStep {
            controller: ControllerName::Service.canonical().to_owned(),
            action: step.action,
            object: format!("Service {service}"),
            cloud: Some(cloud.to_owned()),
            text: step.text.clone(),
        });
        let (key, steps): (_, Vec<_>) = ((cloud.to_owned(), service.clone()), steps.collect());
        self.change(|state| replace(&mut state.balancers, key, steps));
    }

    /// The plan for a cloud's routes, instead of the one before.
    pub(crate) fn set_routes(&self, cloud: &str, changes: &[RouteChange]) {
        let steps: Vec<_> = changes.iter().map(|it| route_step(cloud, it)).collect();
        self.change(|state| replace(&mut state.routes, cloud.to_owned(), steps));
    }

    /// A route that is deleted once a later list confirms that it leads nowhere.
    pub(crate) fn note_suspect_route(&self, route: &RouteReport) {
        self.note_unconfirmed(DryRunStep {
            controller: ControllerName::Route.canonical().to_owned(),
            action: StepAction::Delete,
            object: format!("route {}", route.destination),
            cloud: Some(route.cloud.clone()),
            text: format!(
                "delete route {} to {}, after a second list confirms that it leads nowhere",
                route.destination, route.to
            ),
        });
    }

    /// A Node that is deleted once so many more look-ups confirm that its instance is gone.
    pub(crate) fn note_pending_deletion(&self, pending: &PendingDeletion) {
        let when = match pending.confirmations {
            0 => "when the limit of deletions allows it".to_owned(),
            1 => "after 1 more confirmation".to_owned(),
            more => format!("after {more} more confirmations"),
        };
        let node = &pending.node;
        self.note_unconfirmed(DryRunStep {
            controller: ControllerName::CloudNodeLifecycle.canonical().to_owned(),
            action: StepAction::Delete,
            object: format!("Node {node}"),
            cloud: None,
            text: format!("delete Node {node}{INSTANCE_GONE}, {when}"),
        });
    }

    fn note_unconfirmed(&self, step: DryRunStep) {
        let key = (step.cloud.clone(), step.object.clone());
        self.change(|state| {
            let before = state.unconfirmed.insert(key, step.clone());
            if before.is_some() {
                Vec::new()
            } else {
                vec![step]
            }
        });
    }

    /// What a controller waits for.
    pub(crate) fn note_waiting(&self, controller: &str, what: &str) {
        let waiting = WaitingReport {
            controller: controller.to_owned(),
            what: what.to_owned(),
        };
        self.lock().waiting.insert(waiting);
    }

    /// What a controller reports as wrong.
    pub(crate) fn note_problem(&self, problem: String) {
        self.lock().problems.insert(problem);
    }

    /// Whether a kind of reads of a cloud fails, and why.
    pub(crate) fn note_failure(&self, cloud: &str, reads: &str, failure: Option<String>) {
        let key = (cloud.to_owned(), reads.to_owned());
        let mut state = self.lock();
        match failure {
            Some(failure) => _ = state.failures.insert(key, failure),
            None => _ = state.failures.remove(&key),
        }
    }

    /// What a dry run leaves out.
    pub(crate) fn note_not_planned(&self, what: String) {
        self.lock().not_planned.insert(what);
    }

    /// Every controller has worked off what it saw at first.
    pub(crate) fn complete(&self) {
        self.lock().is_complete = true;
    }

    /// An observer that counts the calls to a cloud, too.
    pub(crate) fn observer(self: &Arc<Self>, cloud: &str, inner: SharedObserver) -> SharedObserver {
        self.lock().calls.entry(cloud.to_owned()).or_default();
        Arc::new(CountCalls {
            recorder: Arc::clone(self),
            cloud: cloud.to_owned(),
            inner,
        })
    }

    /// Everything so far.
    pub(crate) fn report(&self) -> DryRunReport {
        self.lock().report()
    }

    /// Changes what is recorded; logs the steps that are new, and counts all of them.
    fn change(&self, change: impl FnOnce(&mut State) -> Vec<DryRunStep>) {
        let mut state = self.lock();
        let new = change(&mut state);
        if let Some(metrics) = &self.metrics {
            metrics.set(state.all());
        }
        drop(state);
        for step in new {
            let (controller, object, cloud) = (&step.controller, &step.object, &step.cloud);
            info!(
                controller,
                object,
                cloud,
                step = step.text,
                "{DRY_RUN_STEP}"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces a list of steps. Returns those that are new.
fn replace<K: Ord>(
    lists: &mut BTreeMap<K, Vec<DryRunStep>>,
    key: K,
    steps: Vec<DryRunStep>,
) -> Vec<DryRunStep> {
    let before = lists.remove(&key).unwrap_or_default();
    let new = steps.iter().filter(|step| !before.contains(step));
    let new = new.cloned().collect();
    if !steps.is_empty() {
        lists.insert(key, steps);
    }
    new
}

impl State {
    fn all(&self) -> impl Iterator<Item = &DryRunStep> {
        let writes = self.writes.values().map(|write| &write.step);
        let planned = self.routes.values().flatten();
        let is_new = |step: &&DryRunStep| {
            let writes = self.writes.values().map(|write| &write.step);
            let mut known = writes.chain(self.routes.values().flatten());
            !known.any(|known| known.object == step.object && known.action == step.action)
        };
        let unconfirmed = self.unconfirmed.values().filter(is_new);
        let balancers = self.balancers.values().flatten();
        writes.chain(balancers).chain(planned).chain(unconfirmed)
    }

    /// By controller, then by object; what is written to the cluster comes first.
    fn steps(&self) -> Vec<DryRunStep> {
        let mut all: Vec<_> = self.all().cloned().collect();
        all.sort_by(|a, b| key_of(a).cmp(&key_of(b)));
        all
    }

    fn report(&self) -> DryRunReport {
        let steps = self.steps();
        let clouds = self.calls.iter().map(|(cloud, made)| {
            let of_cloud = |step: &&DryRunStep| step.cloud.as_ref() == Some(cloud);
            CloudCalls {
                cloud: cloud.clone(),
                made: *made,
                planned: steps.iter().filter(of_cloud).count(),
            }
        });
        let failures = self.failures.iter();
        let failures = failures.map(|((cloud, _), failure)| format!("cloud {cloud}: {failure}"));
        DryRunReport {
            complete: self.is_complete && self.failures.is_empty(),
            waiting: self.waiting.iter().cloned().collect(),
            problems: self.problems.iter().cloned().collect(),
            failures: failures.collect(),
            not_planned: self.not_planned.iter().cloned().collect(),
            clouds: clouds.collect(),
            api_writes: steps.iter().filter(|step| step.cloud.is_none()).count(),
            steps,
        }
    }
}

fn key_of(step: &DryRunStep) -> (usize, &str, Option<&String>) {
    (
        order_of(&step.controller),
        &step.object,
        step.cloud.as_ref(),
    )
}

fn route_step(cloud: &str, change: &RouteChange) -> DryRunStep {
    let (action, route) = match change {
        RouteChange::Create(route) => (StepAction::Create, route),
        RouteChange::Delete(route) => (StepAction::Delete, route),
    };
    DryRunStep {
        controller: ControllerName::Route.canonical().to_owned(),
        action,
        object: format!("route {}", route.destination),
        cloud: Some(cloud.to_owned()),
        text: change.to_string(),
    }
}

struct CountCalls {
    recorder: Arc<Recorder>,
    cloud: String,
    inner: SharedObserver,
}

impl CallObserver for CountCalls {
    fn call_finished(&self, call: &CallRecord<'_>) {
        let mut state = self.recorder.lock();
        *state.calls.entry(self.cloud.clone()).or_default() += 1;
        drop(state);
        self.inner.call_finished(call);
    }

    fn call_delayed(&self, operation: &str, delay: std::time::Duration) {
        self.inner.call_delayed(operation, delay);
    }

    fn budget_seen(&self, budget: BudgetRecord) {
        self.inner.budget_seen(budget);
    }
}
