//! Cloud resources of this cluster that are removed on request: those that nothing asks for, or all of them.
//!
//! What is a cluster's own is known by the owner labels with the UID of its namespace kube-system, or by a Service that
//! is still there. A removal is what the service controller does when a Service goes, so it is safe to repeat.

mod remove;
mod select;

use cloudkeel_api::{BalancerRef, PlannedStep, Route, RouteChange, ServiceRef, StepAction};
use serde::Serialize;

pub(crate) use remove::{RemovalParts, RemovalResult, ServiceCheck, remove_all};
pub(crate) use select::{Group, orphaned, routes_of_cluster, without_service};

/// What is removed in one go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RemovalTarget {
    /// All that a Service has in a cloud.
    Service(Box<BalancerRef>),
    /// A route.
    Route(Box<Route>),
}

/// Something that can be removed, and the steps that it takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Removal {
    pub(crate) cloud: String,
    pub(crate) target: RemovalTarget,
    pub(crate) steps: Vec<PlannedStep>,
}

impl Removal {
    /// A route.
    pub(crate) fn of_route(cloud: &str, route: Route) -> Self {
        let step = PlannedStep {
            text: RouteChange::Delete(route.clone()).to_string(),
            action: StepAction::Delete,
            destructive: true,
            ineffective: false,
        };
        Self {
            cloud: cloud.to_owned(),
            target: RemovalTarget::Route(Box::new(route)),
            steps: vec![step],
        }
    }

    /// What it is about.
    pub(crate) fn object(&self) -> String {
        match &self.target {
            RemovalTarget::Service(balancer_ref) => format!("Service {}", balancer_ref.service),
            RemovalTarget::Route(route) => format!("route {}", route.destination),
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// What can be removed.
    pub(crate) removals: Vec<Removal>,
    /// What cannot, and why.
    pub(crate) kept: Vec<String>,
    /// What could not be listed, and why.
    pub(crate) failures: Vec<String>,
    /// Clouds that keep no labels by which resources could be listed.
    pub(crate) not_listed: Vec<String>,
}

/// The same for machines.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundReport<'a> {
    complete: bool,
    removals: Vec<RemovalReport<'a>>,
    kept: &'a [String],
    failures: &'a [String],
    not_listed: &'a [String],
    /// What became of each removal; absent if none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<&'a [RemovalResult]>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RemovalReport<'a> {
    cloud: &'a str,
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a ServiceRef>,
    steps: &'a [PlannedStep],
}

impl Found {
    /// For machines, with what became of the removals.
    pub(crate) fn report<'a>(&'a self, results: Option<&'a [RemovalResult]>) -> FoundReport<'a> {
        let removals = self.removals.iter().map(|removal| RemovalReport {
            cloud: &removal.cloud,
            object: removal.object(),
            service: match &removal.target {
                RemovalTarget::Service(balancer_ref) => Some(&balancer_ref.service),
                RemovalTarget::Route(_) => None,
            },
            steps: &removal.steps,
        });
        FoundReport {
            complete: self.failures.is_empty(),
            removals: removals.collect(),
            kept: &self.kept,
            failures: &self.failures,
            not_listed: &self.not_listed,
            results,
        }
    }
}
