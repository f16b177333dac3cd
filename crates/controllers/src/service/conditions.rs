//! The conditions in the status of a Service. Pure.
//!
//! A condition that is true is written only together with another change of the status, so that a Service whose balancer
//! is in order costs no write. One that becomes false is written when that is certain, and so is its end.
//! Conditions that a provider asks for are written whenever they differ.

use std::collections::BTreeMap;

use cloudkeel_api::{HealthSummary, ServiceCondition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use crate::view::ServiceView;

/// A cloud here serves the Service.
pub const ACCEPTED: &str = "cloudkeel.dev/Accepted";
/// Its balancer is as it asks for.
pub const PROGRAMMED: &str = "cloudkeel.dev/Programmed";

/// Its balancer's targets pass their health checks, where the cloud says so.
pub const TARGETS_HEALTHY: &str = "cloudkeel.dev/TargetsHealthy";

/// What the first condition says before the cloud's name.
const SERVED_BY: &str = "served by cloud ";
/// What stands between the cloud's name and what is wrong.
const BUT: &str = "; ";
/// Reason: there is no balancer, and none was made.
const NOT_CREATED: &str = "NotCreated";

/// How far a Service has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Its cloud is at it.
    Pending {
        /// The cloud.
        cloud: String,
    },
    /// Its balancer is as it asks for.
    Programmed {
        /// The cloud.
        cloud: String,
        /// The balancer's ID there.
        id: Option<String>,
        /// What health checks say, where the cloud shows it.
        health: Option<HealthSummary>,
    },
    /// Its balancer is not as it asks for, and that will not pass soon.
    Failed {
        /// The cloud.
        cloud: String,
        /// What is wrong with the Service itself.
        rejected: Option<String>,
        /// Whether there may be a balancer.
        may_exist: bool,
        /// What failed.
        message: String,
    },
    /// It has no balancer any more.
    Released,
}

/// The cloud that serves or served a Service, if a condition names it. It may be one of another
/// cloudkeel in the same cluster.
pub fn cloud_on(service: &ServiceView) -> Option<&str> {
    let served_by = find(service, ACCEPTED)?.message.strip_prefix(SERVED_BY)?;
    let cloud = served_by.split_once(BUT).map(|(cloud, _)| cloud);
    Some(cloud.unwrap_or(served_by))
}

/// Whether the conditions of a Service say that it may have a balancer.
pub fn names_balancer(service: &ServiceView) -> bool {
    let is_none = find(service, PROGRAMMED).is_some_and(|had| had.reason == NOT_CREATED);
    cloud_on(service).is_some() && !is_none
}

fn find<'a>(service: &'a ServiceView, kind: &str) -> Option<&'a Condition> {
    let mut conditions = service.conditions.iter();
    conditions.find(|condition| condition.type_ == kind)
}

fn is_false(service: &ServiceView, kind: &str) -> bool {
    find(service, kind).is_some_and(|had| had.status == "False")
}

#[expect(clippy::unnecessary_wraps, reason = "every caller wants it wrapped")]
fn condition(status: bool, reason: &str, message: String) -> Option<ServiceCondition> {
    Some(ServiceCondition {
        status,
        reason: reason.to_owned(),
        message,
    })
}

/// What our own conditions should say: `None` for one that should not be there. Those that are not named stay.
fn wanted(
    service: &ServiceView,
    progress: &Progress,
) -> BTreeMap<String, Option<ServiceCondition>> {
    let accepted = |cloud: &str| condition(true, "Accepted", format!("{SERVED_BY}{cloud}"));
    let mut own = BTreeMap::new();
    match progress {
        Progress::Pending { cloud } => {
            own.insert(ACCEPTED, accepted(cloud));
            // That it failed is true until it has come true.
            if !is_false(service, PROGRAMMED) {
                own.insert(PROGRAMMED, None);
            }
        }
        Progress::Programmed { cloud, id, health } => {
            let id = id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
            let message = format!("load balancer{id} of cloud {cloud}");
            own.insert(ACCEPTED, accepted(cloud));
            own.insert(PROGRAMMED, condition(true, "Programmed", message));
            own.extend(health.and_then(|health| health_condition(service, health)));
        }
        Progress::Failed {
            cloud,
            rejected,
            may_exist,
            message,
        } => {
            let rejection = rejected.as_ref().and_then(|why| {
                condition(false, "Invalid", format!("{SERVED_BY}{cloud}{BUT}{why}"))
            });
            own.insert(ACCEPTED, rejection.or_else(|| accepted(cloud)));
            let reason = if *may_exist { "Failed" } else { NOT_CREATED };
            own.insert(PROGRAMMED, condition(false, reason, message.clone()));
        }
        Progress::Released => {
            let all = [ACCEPTED, PROGRAMMED, TARGETS_HEALTHY];
            own.extend(all.map(|kind| (kind, None)));
        }
    }
    let own = own.into_iter();
    own.map(|(kind, wanted)| (kind.to_owned(), wanted))
        .collect()
}

/// Only an outage is reported, and its end.
fn health_condition(
    service: &ServiceView,
    health: HealthSummary,
) -> Option<(&'static str, Option<ServiceCondition>)> {
    let healthy = if health.is_outage() {
        let message = "no target passes the health check of the load balancer";
        condition(false, "NoHealthyTargets", message.to_owned())
    } else if health.healthy > 0 && is_false(service, TARGETS_HEALTHY) {
        let message = "targets pass the health check of the load balancer";
        condition(true, "HealthyTargets", message.to_owned())
    } else {
        return None;
    };
    Some((TARGETS_HEALTHY, healthy))
}

/// The entries of a strategic merge patch that bring our own conditions up to date; empty if they are.
pub fn patch_entries(service: &ServiceView, progress: &Progress, now: Timestamp) -> Vec<Value> {
    asked_entries(service, &wanted(service, progress), now)
}

/// Whether our own conditions are reason enough for a write: one of them becomes false, or is so wrongly.
pub fn is_news(service: &ServiceView, progress: &Progress) -> bool {
    let differs =
        |kind: &str, wanted: Option<&ServiceCondition>| match (find(service, kind), wanted) {
            (Some(had), Some(wanted)) => {
                let was_true = had.status == "True";
                was_true != wanted.status || (!was_true && had.message != wanted.message)
            }
            (Some(had), None) => had.status == "False",
            (None, wanted) => wanted.is_some_and(|wanted| !wanted.status),
        };
    let own = wanted(service, progress);
    own.iter()
        .any(|(kind, wanted)| differs(kind, wanted.as_ref()))
}

/// The entries that bring the conditions up to date which a provider asks for.
pub fn asked_entries(
    service: &ServiceView,
    asked: &BTreeMap<String, Option<ServiceCondition>>,
    now: Timestamp,
) -> Vec<Value> {
    let asked = asked.iter();
    asked
        .filter_map(|(kind, wanted)| entry(service, kind, wanted.as_ref(), now))
        .collect()
}

fn entry(
    service: &ServiceView,
    kind: &str,
    wanted: Option<&ServiceCondition>,
    now: Timestamp,
) -> Option<Value> {
    let present = find(service, kind);
    let Some(wanted) = wanted else {
        return present.map(|_| json!({"$patch": "delete", "type": kind}));
    };
    let status = if wanted.status { "True" } else { "False" };
    let is_same = |had: &&Condition| had.status == status;
    let wanted = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: wanted.reason.clone(),
        message: wanted.message.clone(),
        last_transition_time: present
            .filter(is_same)
            .map_or(Time(now), |had| had.last_transition_time.clone()),
        observed_generation: None,
    };
    (present != Some(&wanted)).then(|| json!(wanted))
}

#[cfg(test)]
mod tests;
