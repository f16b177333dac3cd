//! The Events and log lines about Services: upstream's reasons and messages to the letter, and a few of ours.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cloudkeel_api::{
    Event, HealthSummary, Ingress, LoadBalancerSpec, LoadBalancerStatus, Plan, ServiceRef,
    TargetHealth, TrafficPolicy, names,
};
use tracing::{debug, info, warn};

use super::controller::ServiceController;
use super::failure::Failure;
use super::spec::Warning;
use crate::log_messages::{
    LOAD_BALANCER_CHANGE_INEFFECTIVE, LOAD_BALANCER_CHANGED, LOAD_BALANCER_DRIFTED, SERVICE_FAILED,
};
use crate::runtime::FailureMessage;
use crate::view::ServiceView;
use crate::wellknown::CLEANUP_FINALIZER;

/// Reason and message of an Event that is always the same.
type Fixed = (&'static str, &'static str);

/// Work on the balancer begins.
pub(super) const ENSURING: Fixed = ("EnsuringLoadBalancer", "Ensuring load balancer");
/// The balancer has new targets.
pub(super) const UPDATED: Fixed = (
    "UpdatedLoadBalancer",
    "Updated load balancer with new hosts",
);
/// The balancer is being deleted.
pub(super) const DELETING: Fixed = ("DeletingLoadBalancer", "Deleting load balancer");
/// The balancer is gone.
pub(super) const DELETED: Fixed = ("DeletedLoadBalancer", "Deleted load balancer");
/// There is no Node to send traffic to.
const UNAVAILABLE: Fixed = (
    "UnAvailableLoadBalancer",
    "There are no available nodes for LoadBalancer",
);

/// Where kube-proxy says that it works.
const KUBE_PROXY_PORT: u16 = 10256;

/// An Event shows this many steps; the log shows all of them.
const STEPS_SHOWN: usize = 5;

/// What was being done when it failed. The words are upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Ensure,
    Delete,
    WriteStatus,
    AddFinalizer,
    RemoveFinalizer,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ensure => "failed to ensure load balancer",
            Self::Delete => "failed to delete load balancer",
            Self::WriteStatus => "failed to update load balancer status",
            Self::AddFinalizer => "failed to add load balancer cleanup finalizer",
            Self::RemoveFinalizer => "failed to remove load balancer cleanup finalizer",
        })
    }
}

/// The balancer is as the Service asks for: its ID and addresses. Upstream's words come first.
pub(super) fn ensured(service: &ServiceRef, balancer: &LoadBalancerStatus) -> Event {
    let mut message = "Ensured load balancer".to_owned();
    if let Some(id) = &balancer.id {
        let _ = write!(message, " {id}");
    }
    let addresses: Vec<_> = balancer.ingress.iter().map(Ingress::place).collect();
    if !addresses.is_empty() {
        let _ = write!(message, " at {}", addresses.join(", "));
    }
    Event::normal(service, "EnsuredLoadBalancer", message)
}

/// The cloud is not done yet.
fn pending(service: &ServiceRef, why: &str) -> Event {
    let message = format!("Waiting for load balancer: {why}");
    Event::normal(service, "PendingLoadBalancer", message)
}

/// The finalizer of a Service whose class is not served here stays for the controller that put it there.
pub(super) fn finalizer_left(service: &ServiceRef, class: Option<&str>) -> Event {
    let whose = match class {
        Some(class) => format!("of class {class:?}"),
        None => "without a class".to_owned(),
    };
    let message = format!(
        "No cloud here serves Services {whose} or has a load balancer of this one, so the finalizer \
         {CLEANUP_FINALIZER} is left to the controller that added it; remove it by hand if that no longer runs"
    );
    Event::warning(service, "LoadBalancerFinalizerLeft", message)
}

/// The balancer could not be ensured, or not be deleted.
pub(super) fn sync_failed(service: &ServiceRef, stage: Stage, cause: &FailureMessage) -> Event {
    let message = format!("Error syncing load balancer: {stage}: {cause}");
    Event::warning(service, "SyncLoadBalancerFailed", message)
}

/// The balancer of a Service that is gone could not be deleted.
pub(super) fn delete_failed(service: &ServiceRef, cause: &FailureMessage) -> Event {
    let message = format!("Error deleting load balancer: {cause}");
    Event::warning(service, "DeleteLoadBalancerFailed", message)
}

/// The balancer stays although the Service goes, because the Service says so.
pub(super) fn retained(service: &ServiceRef, cloud: &str, kept: &[String]) -> Event {
    let (kept, retain, adopt) = (
        kept.join(", "),
        names::LB_RETAIN.name(),
        names::ADOPT.name(),
    );
    let message = format!(
        "Kept in cloud {cloud}, without owner labels, because of {retain}: {kept}. Another Service takes it over with \
         the annotation {adopt} and its ID"
    );
    Event::normal(service, "RetainedLoadBalancer", message)
}

/// Nothing answers where the balancer checks.
fn no_healthy_targets(service: &ServiceRef, spec: &LoadBalancerSpec) -> Event {
    let mut ports = spec.listeners.iter().map(|it| it.health_check.port);
    let advice = if ports.any(|port| port == Some(KUBE_PROXY_PORT)) {
        format!(
            ": nothing answers on kube-proxy's port {KUBE_PROXY_PORT}. If a proxy replacement such as Cilium runs there, \
             let it answer, or set --load-balancer-health-checks=node-port"
        )
    } else if spec.traffic_policy == TrafficPolicy::Local {
        ": with externalTrafficPolicy Local, only Nodes with an endpoint pass".to_owned()
    } else {
        String::new()
    };
    let message = format!("No target passes the health check of the load balancer{advice}");
    Event::warning(service, "NoHealthyTargets", message)
}

/// The targets could not be changed.
pub(super) fn update_failed(service: &ServiceRef, nodes: &[&str], cause: &FailureMessage) -> Event {
    let (total, names) = (nodes.len(), shown_names(nodes));
    let message = format!(
        "Error updating load balancer with new hosts {names} [node names limited, total number of \
         nodes: {total}], error: {cause}"
    );
    Event::warning(service, "UpdateLoadBalancerFailed", message)
}

/// Something that the owner of the Service should know.
fn advice(service: &ServiceRef, about: &Warning) -> Event {
    Event {
        severity: about.severity,
        ..Event::normal(service, about.reason, about.message.as_str())
    }
}

/// Names as upstream shows them: sorted, at most twenty, `[a b <3 more>]`.
fn shown_names(names: &[&str]) -> String {
    const AT_MOST: usize = 20;
    let mut names = names.to_vec();
    names.sort_unstable();
    let more = names.len().saturating_sub(AT_MOST);
    names.truncate(AT_MOST);
    let shown = names.join(" ");
    if more == 0 {
        format!("[{shown}]")
    } else {
        format!("[{shown} <{more} more>]")
    }
}

impl ServiceController {
    /// Records an Event whose words never change.
    pub(super) fn record_event(&self, service: &ServiceRef, (reason, message): Fixed) {
        self.emit(Event::normal(service, reason, message));
    }

    pub(super) fn emit(&self, event: Event) {
        self.parts.events.emit(event);
    }

    /// Logs and remembers a failure. Returns its cause. That our role does not allow something is warned
    /// about once: it is the same for every Service.
    pub(super) fn record_failure(
        &self,
        service: &ServiceRef,
        failure: &Failure,
        failures: u32,
    ) -> FailureMessage {
        let cause = failure.cause.clone();
        let cause = match failure.verdict.retry_after(Self::BACKOFF, failures) {
            Some(after) => cause.with_next_try(after),
            None => cause,
        };
        let stage = failure.stage;
        let err = format!("{stage}: {}", cause.in_full());
        self.records.amend(&service.to_string(), |record| {
            record.last_error = Some(err.clone());
        });
        if failure.is_denied && self.denial_reported.swap(true, Ordering::Relaxed) {
            debug!(%service, err, "{SERVICE_FAILED}");
        } else {
            warn!(%service, err, "{SERVICE_FAILED}");
        }
        cause
    }

    /// Logs what was done, and reports steps that the cloud accepted without changing anything.
    pub(super) fn report_steps(&self, service: &ServiceRef, done: &Plan) {
        for step in &done.steps {
            info!(%service, step = step.text, "{LOAD_BALANCER_CHANGED}");
        }
        let steps: Vec<_> = done.ineffective().map(|step| step.text.as_str()).collect();
        if steps.is_empty() {
            return;
        }
        let steps = steps.join("; ");
        warn!(%service, steps, "{LOAD_BALANCER_CHANGE_INEFFECTIVE}");
        let message = format!(
            "The cloud accepted these changes, but they had no effect, so they are not repeated: {steps}"
        );
        let reason = "IneffectiveLoadBalancerOption";
        self.emit(Event::warning(service, reason, message));
    }

    /// Reports what the owner of a Service should know, each warning once.
    pub(super) fn report_warnings(&self, service: &Arc<ServiceView>, warnings: Vec<Warning>) {
        let mut new = warnings.clone();
        self.records.update(service, |record| {
            let known = std::mem::replace(&mut record.reported.warnings, warnings);
            new.retain(|warning| !known.contains(warning));
        });
        for warning in &new {
            self.emit(advice(&service.service, warning));
        }
    }

    /// Reports once that a balancer has no targets, until it has some.
    pub(super) fn report_availability(&self, service: &Arc<ServiceView>, is_available: bool) {
        let was_reported = self.records.update(service, |record| {
            std::mem::replace(&mut record.reported.unavailable, !is_available)
        });
        if !is_available && !was_reported {
            let (reason, message) = UNAVAILABLE;
            self.emit(Event::warning(&service.service, reason, message));
        }
    }

    /// Remembers the health of targets, and reports once that none passes its health check, until one does.
    pub(super) fn report_health(
        &self,
        service: &Arc<ServiceView>,
        spec: &LoadBalancerSpec,
        health: &[TargetHealth],
    ) {
        let is_new = self.records.update(service, |record| {
            record.note_health(health);
            let Some(health) = HealthSummary::of(health) else {
                return false;
            };
            let reported = &mut record.reported.outage;
            let is_new = health.is_outage() && !*reported;
            *reported = health.is_outage() || (*reported && health.healthy == 0);
            is_new
        });
        if is_new {
            self.emit(no_healthy_targets(&service.service, spec));
        }
    }

    /// Reports what the cloud waits for, and remembers that the work goes on later.
    pub(super) fn report_pending(&self, service: &Arc<ServiceView>, why: &str) {
        let is_new = self.records.update(service, |record| {
            record.applying = None;
            record.needs_retry = true;
            record.last_error = None;
            record.reported.pending.replace(why.to_owned()).as_deref() != Some(why)
        });
        if is_new {
            self.emit(pending(&service.service, why));
        }
    }

    /// Reports once that the cloud of a Service has no load balancers.
    pub(super) fn report_unsupported(&self, service: &Arc<ServiceView>, cloud: &str) {
        let message =
            format!("cloud {cloud} has no load balancers, so this Service gets no address from it");
        let is_new = self.records.update(service, |record| {
            record.last_error.replace(message.clone()).as_ref() != Some(&message)
        });
        if is_new {
            let reason = "UnsupportedLoadBalancer";
            self.emit(Event::warning(&service.service, reason, message));
        }
    }

    /// A balancer was changed by another client of the cloud.
    pub(super) fn report_drift(&self, service: &ServiceRef, cloud: &str, plan: &Plan, next: &str) {
        self.parts.observer.drifted(cloud);
        let steps = plan.steps.iter().take(STEPS_SHOWN);
        let mut texts: Vec<_> = steps.map(|step| step.text.clone()).collect();
        if plan.len() > STEPS_SHOWN {
            texts.push(format!("and {} more", plan.len() - STEPS_SHOWN));
        }
        info!(%service, %plan, "{LOAD_BALANCER_DRIFTED}");
        let message = format!(
            "Another client changed the load balancer in the cloud. To restore it: {}. {next}",
            texts.join("; ")
        );
        self.emit(Event::warning(service, "LoadBalancerDrifted", message));
    }
}

#[cfg(test)]
mod tests;
