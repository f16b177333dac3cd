//! The conditions in the status of a Service. Pure.
//!
//! Our own conditions are written only together with another change of the status. So they say only what stays true
//! without another write: that the Service was accepted, and that its balancer was created. Events report later
//! failures. Conditions that a provider asks for are written whenever they differ.

use std::collections::BTreeMap;

use cloudkeel_api::ServiceCondition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use crate::view::ServiceView;

/// A cloud here serves the Service.
pub const ACCEPTED: &str = "cloudkeel.dev/Accepted";
/// Its balancer is as it asks for.
pub const PROGRAMMED: &str = "cloudkeel.dev/Programmed";

/// What the first condition says before the cloud's name.
const SERVED_BY: &str = "served by cloud ";

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
    },
    /// It has no balancer any more.
    Released,
}

/// The cloud that serves or served a Service, if a condition names it. It may be one of another
/// cloudkeel in the same cluster.
pub fn cloud_on(service: &ServiceView) -> Option<&str> {
    let mut conditions = service.conditions.iter();
    let accepted = conditions.find(|condition| condition.type_ == ACCEPTED)?;
    accepted.message.strip_prefix(SERVED_BY)
}

/// The entries of a strategic merge patch that bring our own conditions up to date; empty if they are.
pub fn patch_entries(service: &ServiceView, progress: &Progress, now: Timestamp) -> Vec<Value> {
    let (cloud, programmed) = match progress {
        Progress::Pending { cloud } => (Some(cloud), None),
        Progress::Programmed { cloud, id } => {
            let id = id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
            (
                Some(cloud),
                Some(format!("load balancer{id} of cloud {cloud}")),
            )
        }
        Progress::Released => (None, None),
    };
    let accepted = cloud.map(|cloud| format!("{SERVED_BY}{cloud}"));
    let own = [
        (ACCEPTED, "Accepted", accepted),
        (PROGRAMMED, "Programmed", programmed),
    ];
    let own = own.map(|(kind, reason, message)| {
        let wanted = message.map(|message| ServiceCondition {
            status: true,
            reason: reason.to_owned(),
            message,
        });
        (kind.to_owned(), wanted)
    });
    asked_entries(service, &BTreeMap::from(own), now)
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
    let present = service.conditions.iter().find(|had| had.type_ == kind);
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
