//! What the status of a Service should say, its finalizer, and the patches that make it so. Pure.
//!
//! Bodies are strategic merge patches for `services/status`, where upstream writes them too: roles of the Go charts
//! allow nothing else. In such a patch finalizers are a set, so those of other controllers stay.

use std::net::IpAddr;

use cloudkeel_api::{HealthSummary, Ingress, IpMode, Options, Outcome, ServiceChanges, names};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, PortStatus};
use serde_json::{Map, Value, json};

use super::conditions::{self, Progress};
use crate::runtime::{patch_of, set_field};
use crate::view::ServiceView;
use crate::wellknown::CLEANUP_FINALIZER;

/// What is to be written to a Service after a reconciliation.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    /// Where clients find the balancer; `None` leaves what is there.
    pub ingress: Option<Vec<LoadBalancerIngress>>,
    /// The conditions and annotations that the provider asks for.
    pub changes: ServiceChanges,
    /// What the conditions say.
    pub progress: Progress,
}

impl StatusUpdate {
    /// From what has become of the desired state. A hostname that the Service asks for is published in place
    /// of addresses, unless the provider publishes a name itself.
    pub fn of(outcome: &Outcome, cloud: &str, options: &Options) -> Self {
        let cloud = cloud.to_owned();
        let (status, changes, is_settled) = match outcome {
            Outcome::Settled {
                status, changes, ..
            } => (Some(status), changes, true),
            // One that could not be made publishes nothing, and takes nothing away.
            Outcome::Incomplete {
                status, changes, ..
            } => (Some(status).filter(|it| it.exists), changes, false),
            Outcome::Pending {
                status, changes, ..
            } => {
                // Addresses that are not known yet take none away.
                let published = status.as_ref().filter(|it| !it.ingress.is_empty());
                (published, changes, false)
            }
            Outcome::Gone { .. } => return Self::released(),
        };
        let id = status.and_then(|status| status.id.clone());
        let health = status.and_then(|status| HealthSummary::of(&status.health));
        Self {
            ingress: status.map(|status| published(&status.ingress, options)),
            changes: changes.clone(),
            progress: if is_settled {
                Progress::Programmed { cloud, id, health }
            } else {
                Progress::Pending { cloud }
            },
        }
    }

    /// Nothing is left of the balancer.
    pub(super) fn released() -> Self {
        Self {
            ingress: Some(Vec::new()),
            changes: ServiceChanges {
                annotations: [(names::LB_OWN_PARTS.name().to_owned(), None)].into(),
                ..ServiceChanges::default()
            },
            progress: Progress::Released,
        }
    }

    /// The balancer is not as the Service asks for.
    pub(super) fn failed(progress: Progress) -> Self {
        Self {
            ingress: None,
            changes: ServiceChanges::default(),
            progress,
        }
    }

    /// The strategic merge patch for `services/status`; `None` if nothing differs. Our own conditions alone
    /// are no reason to write while they are true, those that the provider asks for are.
    pub fn patch(&self, service: &ServiceView, now: Timestamp) -> Option<Value> {
        self.body(service, now, false).map(Value::Object)
    }

    /// As [`patch`](Self::patch), but written for another reason anyway if `anyway`.
    pub(super) fn body(
        &self,
        service: &ServiceView,
        now: Timestamp,
        anyway: bool,
    ) -> Option<Map<String, Value>> {
        let ingress = self
            .ingress
            .as_ref()
            .filter(|wanted| !same_ingress(wanted, &service.ingress));
        let annotations = self.changed_annotations(service);
        let asked = conditions::asked_entries(service, &self.changes.conditions, now);
        let is_unchanged = ingress.is_none() && annotations.is_empty() && asked.is_empty();
        if !anyway && is_unchanged && !conditions::is_news(service, &self.progress) {
            return None;
        }
        let mut body = patch_of(&service.service.uid);
        if !annotations.is_empty() {
            set_field(&mut body, "metadata", "annotations", annotations.into());
        }
        if let Some(wanted) = ingress {
            // An empty list would be merged to nothing; null takes the field away.
            let wanted = Some(wanted).filter(|wanted| !wanted.is_empty());
            let balancer = json!({"ingress": wanted});
            set_field(&mut body, "status", "loadBalancer", balancer);
        }
        let mut entries = conditions::patch_entries(service, &self.progress, now);
        entries.extend(asked);
        if !entries.is_empty() {
            set_field(&mut body, "status", "conditions", entries.into());
        }
        Some(body)
    }

    fn changed_annotations(&self, service: &ServiceView) -> Map<String, Value> {
        self.changes
            .annotations
            .iter()
            .filter(|(key, wanted)| service.annotations.get(*key) != wanted.as_ref())
            .map(|(key, wanted)| (key.clone(), json!(wanted)))
            .collect()
    }
}

/// Adds the finalizer, or changes nothing if it is there. Must be written before the cloud is asked for anything.
///
/// Refused as a conflict if the Service has changed since it was read, so that success says whether there was one.
pub fn add_finalizer(service: &ServiceView) -> Value {
    json!({
        "metadata": {
            "uid": service.service.uid,
            "resourceVersion": service.resource_version,
            "finalizers": [CLEANUP_FINALIZER],
        },
    })
}

/// Removes the finalizer, and with it what the status still says of the balancer, in one write;
/// `None` if there is nothing to remove. Conditions of ours go along but need no write of their own.
///
/// Refused as a conflict if the Service has changed since it was read: a request that arrives late, after the
/// next leader has created another balancer, must not take the finalizer of that one.
pub fn release(service: &ServiceView, now: Timestamp) -> Option<Value> {
    let has_finalizer = service.has_finalizer(CLEANUP_FINALIZER);
    let mut body = StatusUpdate::released().body(service, now, has_finalizer)?;
    if has_finalizer {
        let version = json!(service.resource_version);
        set_field(&mut body, "metadata", "resourceVersion", version);
        let field = "$deleteFromPrimitiveList/finalizers";
        set_field(&mut body, "metadata", field, json!([CLEANUP_FINALIZER]));
    }
    Some(Value::Object(body))
}

fn published(ingress: &[Ingress], options: &Options) -> Vec<LoadBalancerIngress> {
    let names_itself = ingress.iter().any(|at| matches!(at, Ingress::Hostname(_)));
    match &options.hostname {
        Some(name) if !ingress.is_empty() && !names_itself => {
            vec![entry(&Ingress::Hostname(name.clone()))]
        }
        _ => {
            let ingress = ingress.iter().map(|at| match at {
                Ingress::Ip { ip, mode } => entry(&Ingress::Ip {
                    ip: *ip,
                    mode: options.ip_mode.unwrap_or(*mode),
                }),
                Ingress::Hostname(_) => entry(at),
            });
            ingress.collect()
        }
    }
}

fn entry(ingress: &Ingress) -> LoadBalancerIngress {
    match ingress {
        Ingress::Ip { ip, mode } => LoadBalancerIngress {
            ip: Some(ip.to_string()),
            ip_mode: Some(match mode {
                IpMode::Vip => VIP.to_owned(),
                IpMode::Proxy => "Proxy".to_owned(),
            }),
            ..LoadBalancerIngress::default()
        },
        Ingress::Hostname(name) => LoadBalancerIngress {
            hostname: Some(name.clone()),
            ..LoadBalancerIngress::default()
        },
    }
}

/// What the API server makes of an absent mode.
const VIP: &str = "VIP";

/// Whether two lists say the same to clients. The order counts; an absent mode of an address is
/// `VIP`, as the API server has it; two spellings of an address are one.
pub fn same_ingress(a: &[LoadBalancerIngress], b: &[LoadBalancerIngress]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| meaning(a) == meaning(b))
}

#[derive(PartialEq)]
struct Meaning<'a> {
    address: Option<Result<IpAddr, &'a str>>,
    mode: Option<&'a str>,
    hostname: Option<&'a str>,
    ports: &'a [PortStatus],
}

fn meaning(entry: &LoadBalancerIngress) -> Meaning<'_> {
    let ip = entry.ip.as_deref().filter(|ip| !ip.is_empty());
    Meaning {
        address: ip.map(|ip| ip.parse().map_err(|_| ip)),
        mode: entry.ip_mode.as_deref().or(ip.map(|_| VIP)),
        hostname: entry.hostname.as_deref().filter(|name| !name.is_empty()),
        ports: entry.ports.as_deref().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
