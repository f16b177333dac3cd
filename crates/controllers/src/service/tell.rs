//! What is told about Services, once each.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cloudkeel_api::{Event, Plan, ServiceRef};
use tracing::{debug, info, warn};

use super::controller::ServiceController;
use super::ensure::Failure;
use super::messages;
use super::spec::Warning;
use super::wants::Serving;
use crate::runtime::{Cause, Verdict};
use crate::view::ServiceView;

/// The cloud of a Service has no load balancers.
const UNSUPPORTED: &str = "UnsupportedLoadBalancer";
/// The cloud takes a wish and does not show it.
const INEFFECTIVE: &str = "IneffectiveLoadBalancerOption";
/// A balancer is not as it was left.
const DRIFTED: &str = "LoadBalancerDrifted";

/// An event shows this many steps; the log shows all of them.
const STEPS_SHOWN: usize = 5;

impl ServiceController {
    /// Logs a failure. Returns its cause. That our role does not allow something is warned about once: it is
    /// the same for every Service.
    pub(super) fn note_failure(
        &self,
        service: &ServiceRef,
        failure: &Failure,
        failures: u32,
    ) -> Cause {
        let cause = failure.cause.clone();
        let cause = match Self::next_try(failure.verdict, failures) {
            Some(after) => cause.with_next_try(after),
            None => cause,
        };
        let stage = failure.stage;
        self.records.amend(&service.to_string(), |record| {
            record.complaint = Some(format!("{stage}: {}", cause.in_full()));
        });
        if failure.is_denied && self.denial_told.swap(true, Ordering::Relaxed) {
            debug!(%service, cause = cause.in_full(), "{stage}");
        } else {
            warn!(%service, cause = cause.in_full(), "{stage}");
        }
        cause
    }

    pub(super) fn log_steps(service: &ServiceView, done: &Plan) {
        let service = &service.service;
        for step in &done.steps {
            info!(%service, step = step.text, "done");
        }
    }

    /// Reports steps that the cloud accepted without changing anything. The Service is settled.
    pub(super) fn tell_ineffective(&self, service: &ServiceView, done: &Plan) {
        let steps: Vec<_> = done.ineffective().map(|step| step.text.as_str()).collect();
        if steps.is_empty() {
            return;
        }
        let service = &service.service;
        let steps = steps.join("; ");
        warn!(%service, steps, "the cloud accepted steps that changed nothing");
        let message = format!(
            "The cloud accepted this and shows what it showed before, so it is left as it is: {steps}"
        );
        let event = Event::warning(service, INEFFECTIVE, message);
        self.parts.events.emit(event);
    }

    /// What the owner of a Service should know, if it was not told before.
    pub(super) fn advise(&self, service: &Arc<ServiceView>, warnings: Vec<Warning>) {
        let news = self.records.update(service, |record| {
            let known = std::mem::replace(&mut record.told.advice, warnings);
            let mut news = record.told.advice.clone();
            news.retain(|warning| !known.contains(warning));
            news
        });
        for warning in &news {
            let event = messages::advice(&service.service, warning);
            self.parts.events.emit(event);
        }
    }

    pub(super) fn tell_unavailable(&self, service: &Arc<ServiceView>, is_unavailable: bool) {
        let was_told = self.records.update(service, |record| {
            std::mem::replace(&mut record.told.unavailable, is_unavailable)
        });
        if is_unavailable && !was_told {
            let event = messages::unavailable(&service.service);
            self.parts.events.emit(event);
        }
    }

    /// What the cloud waits for, and that the next look will go on with it.
    pub(super) fn tell_pending(&self, service: &Arc<ServiceView>, why: &str) {
        let is_news = self.records.update(service, |record| {
            record.applying = None;
            record.in_trouble = true;
            record.complaint = None;
            record.told.pending.replace(why.to_owned()).as_deref() != Some(why)
        });
        if is_news {
            let event = messages::pending(&service.service, why);
            self.parts.events.emit(event);
        }
    }

    pub(super) fn tell_published(&self, service: &Arc<ServiceView>, cloud: &str) {
        let waited = self
            .records
            .update(service, |record| record.waits_since.take());
        if let Some(since) = waited {
            self.parts.observer.published(cloud, since.elapsed());
        }
    }

    /// A Service whose cloud has no load balancers waits for ever; it is told once.
    pub(super) async fn do_without(
        &self,
        service: &Arc<ServiceView>,
        serving: &Serving,
        failures: u32,
    ) -> Verdict {
        if let Err(verdict) = self.leave_other_clouds(service, serving, failures).await {
            return verdict;
        }
        let message = format!(
            "cloud {} has no load balancers, so this Service gets no address from it",
            serving.cloud
        );
        let was_told = self.records.update(service, |record| {
            record.complaint = Some(message.clone());
            std::mem::replace(&mut record.told.unsupported, true)
        });
        if !was_told {
            let event = Event::warning(&service.service, UNSUPPORTED, message);
            self.parts.events.emit(event);
        }
        Verdict::Done
    }

    /// A balancer is not as it was left.
    pub(super) fn tell_drift(&self, service: &ServiceView, cloud: &str, plan: &Plan, next: &str) {
        self.parts.observer.drifted(cloud);
        let steps = plan.steps.iter().take(STEPS_SHOWN);
        let mut texts: Vec<_> = steps.map(|step| step.text.clone()).collect();
        if plan.len() > STEPS_SHOWN {
            texts.push(format!("and {} more", plan.len() - STEPS_SHOWN));
        }
        let service = &service.service;
        info!(%service, %plan, "the load balancer is not as it was left");
        let message = format!(
            "The load balancer is not as it was left; to do: {}. {next}",
            texts.join("; ")
        );
        let event = Event::warning(service, DRIFTED, message);
        self.parts.events.emit(event);
    }
}
