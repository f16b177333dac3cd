//! The checklist: every function looks at one part of a snapshot and returns what it finds.

mod api_server;
mod clouds;
mod manager;
mod nodes;
mod routes;
mod services;
mod state;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::catalogue::{CONFIG_DEPRECATED, CONFIG_INVALID};
use crate::finding::{Area, Finding, Severity};
use crate::snapshot::Snapshot;

pub(crate) use clouds::shows_no_known_machine;
pub(crate) use nodes::findings_of_node;
pub(crate) use services::findings_of_service;

/// What `doctor` reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// The worst severity; `None` if nothing was found.
    pub worst: Option<Severity>,
    /// How many findings of each severity.
    pub counts: BTreeMap<&'static str, usize>,
    /// What was looked at, and how it is: one sentence each, also where nothing is wrong.
    pub state: Vec<(Area, String)>,
    /// What was found, by area, the worst first.
    pub findings: Vec<Finding>,
}

/// Everything that is wrong with this cluster and its clouds.
pub fn diagnose(snapshot: &Snapshot) -> Diagnosis {
    let mut findings = configuration(snapshot);
    findings.extend(api_server::findings(snapshot));
    if !api_server::is_unreachable(snapshot) {
        findings.extend(manager::findings(snapshot));
        findings.extend(nodes::findings(snapshot));
        findings.extend(routes::findings(snapshot));
        findings.extend(services::findings(snapshot));
    }
    findings.extend(clouds::findings(snapshot));
    findings.sort_by_key(|it| (it.rule.area, it.rule.severity, it.rule.id));
    let mut counts = BTreeMap::new();
    for finding in &findings {
        *counts.entry(finding.severity().as_str()).or_default() += 1;
    }
    Diagnosis {
        worst: findings.iter().map(Finding::severity).min(),
        counts,
        state: state::sentences(snapshot),
        findings,
    }
}

fn configuration(snapshot: &Snapshot) -> Vec<Finding> {
    let object = "command line and configuration";
    let errors = snapshot.config_errors.iter();
    let errors = errors.map(|error| CONFIG_INVALID.found(object, error));
    let notes = snapshot.config_notes.iter();
    let notes = notes.map(|note| CONFIG_DEPRECATED.found(object, note));
    errors.chain(notes).collect()
}

#[cfg(test)]
mod tests;
