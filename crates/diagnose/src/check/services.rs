//! Services: what they ask for, what their cloud has, and whether anything answers behind it.

use std::collections::BTreeSet;

use cloudkeel_api::{
    ErrorKind, HealthState, Ingress, LoadBalancerSpec, Observation, Severity, TrafficPolicy, names,
};
use cloudkeel_controllers::service::ingress_of;
use cloudkeel_controllers::service::spec::Draft;
use cloudkeel_controllers::view::Readiness;
use cloudkeel_controllers::wellknown::CLEANUP_FINALIZER;

use crate::catalogue::{
    SERVICE_ADDRESS_DIFFERS, SERVICE_BALANCER_MISSING, SERVICE_DIFFERS, SERVICE_FOREIGN_FINALIZER,
    SERVICE_INVALID, SERVICE_LOCAL_ELSEWHERE, SERVICE_NO_ENDPOINTS, SERVICE_NO_TARGETS,
    SERVICE_NOT_OURS, SERVICE_NOT_SERVED, SERVICE_OPTION_IGNORED, SERVICE_PAUSED, SERVICE_PENDING,
    SERVICE_STUCK, SERVICE_TARGETS_DOWN, SERVICE_TARGETS_UNHEALTHY, SERVICE_UNREADABLE,
};
use crate::finding::{Finding, Rule};
use crate::snapshot::{NodeState, ServiceState, Snapshot, Trouble};
use crate::text::{age, first_few};

/// Most clouds make a load balancer in less.
const PENDING_SECONDS: i64 = 120;
/// Most clouds delete one in less.
const DELETING_SECONDS: i64 = 300;

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let services = snapshot.known_services().iter();
    services
        .flat_map(|service| findings_of_service(snapshot, service))
        .collect()
}

/// What is wrong with one Service.
pub(crate) fn findings_of_service(snapshot: &Snapshot, service: &ServiceState) -> Vec<Finding> {
    let checked = Checked { snapshot, service };
    let paused = checked.paused();
    paused.into_iter().chain(checked.found_all()).collect()
}

struct Checked<'a> {
    snapshot: &'a Snapshot,
    service: &'a ServiceState,
}

impl Checked<'_> {
    fn found_all(&self) -> Vec<Finding> {
        let service = self.service;
        if service.view.deleting {
            return self.deleting().into_iter().collect();
        }
        if !service.view.is_load_balancer() {
            return Vec::new();
        }
        if service.owner.is_none() {
            return self.not_served().into_iter().collect();
        }
        let mut findings = Vec::new();
        match &service.draft {
            Some(Err(problems)) => {
                let lines = problems.lines().collect::<Vec<_>>().join("; ");
                findings.push(self.found(&SERVICE_INVALID, lines));
            }
            Some(Ok(draft)) => findings.extend(self.asks_for(draft)),
            None => {}
        }
        match &service.observed {
            Some(Err(trouble)) => findings.extend(self.unread(trouble)),
            Some(Ok(observed)) => findings.extend(self.observed(observed)),
            None => {}
        }
        findings.extend(self.pending());
        findings
    }

    fn paused(&self) -> Option<Finding> {
        let view = &self.service.view;
        let has_balancer = view.is_load_balancer() || view.has_finalizer(CLEANUP_FINALIZER);
        let is_paused = has_balancer && names::is_paused(&view.annotations);
        is_paused.then(|| {
            let (service, key) = (&view.service, names::PAUSED.name());
            let what = "cloudkeel leaves it and its load balancer as they are";
            let fix = format!(
                "kubectl annotate service -n {} {} {key}-",
                service.namespace, service.name
            );
            self.found(&SERVICE_PAUSED, what).fix(fix)
        })
    }

    fn found(&self, rule: &'static Rule, what: impl Into<String>) -> Finding {
        rule.found(format!("Service {}", self.service.key()), what)
    }

    fn describe(&self) -> String {
        let service = &self.service.view.service;
        format!(
            "kubectl describe service -n {} {}",
            service.namespace, service.name
        )
    }

    fn seconds_since(&self, at: Option<jiff::Timestamp>) -> i64 {
        at.map_or(0, |at| self.snapshot.now.duration_since(at).as_secs())
    }

    fn last_event(&self) -> String {
        let service = &self.service.view.service;
        let last = self
            .snapshot
            .last_warning("Service", &service.namespace, &service.name);
        last.map_or_else(
            || "; there is no Event about it".to_owned(),
            |event| format!("; its last Event: {}: {}", event.reason, event.message),
        )
    }

    fn deleting(&self) -> Option<Finding> {
        let since = self.service.deleting_since;
        if self.seconds_since(since) < DELETING_SECONDS {
            return None;
        }
        let ago = since.map_or_else(String::new, |at| age(at, self.snapshot.now));
        let view = &self.service.view;
        if view.has_finalizer(CLEANUP_FINALIZER) {
            let what = format!(
                "deleted {ago} ago, and the finalizer {CLEANUP_FINALIZER} is still there{}",
                self.last_event()
            );
            return Some(self.found(&SERVICE_STUCK, what).fix(self.describe()));
        }
        (!view.finalizers.is_empty()).then(|| {
            let others = first_few(&view.finalizers);
            let what = format!("deleted {ago} ago, and kept by {others}");
            self.found(&SERVICE_FOREIGN_FINALIZER, what)
        })
    }

    fn not_served(&self) -> Option<Finding> {
        if !self.service.view.ingress.is_empty() || self.snapshot.clouds.is_empty() {
            return None;
        }
        let what = match &self.service.view.class {
            Some(class) => format!("no cloud here serves the class {class:?}"),
            None => "it has no class, and no cloud here is the default".to_owned(),
        };
        Some(self.found(&SERVICE_NOT_SERVED, what))
    }

    fn asks_for(&self, draft: &Draft) -> Vec<Finding> {
        let serious = draft
            .warnings
            .iter()
            .filter(|it| it.severity == Severity::Warning);
        let mut findings: Vec<_> = serious
            .map(|warning| self.found(&SERVICE_OPTION_IGNORED, &warning.message))
            .collect();
        findings.extend(self.targets(&draft.spec));
        findings.extend(self.endpoints(&draft.spec));
        findings
    }

    fn targets(&self, spec: &LoadBalancerSpec) -> Option<Finding> {
        if self.snapshot.nodes.is_err() {
            return None;
        }
        if spec.targets.is_empty() {
            let what = format!(
                "none of the {} Nodes is a target of it",
                self.snapshot.known_nodes().len()
            );
            return Some(self.found(&SERVICE_NO_TARGETS, what));
        }
        let nodes = self.snapshot.known_nodes().iter();
        let ready: BTreeSet<_> = nodes
            .filter(|node| node.view.readiness == Readiness::Ready)
            .map(NodeState::name)
            .collect();
        let is_down = !spec
            .targets
            .keys()
            .any(|name| ready.contains(name.as_str()));
        is_down.then(|| {
            let what = format!("none of its {} targets is Ready", spec.targets.len());
            self.found(&SERVICE_TARGETS_DOWN, what)
        })
    }

    fn endpoints(&self, spec: &LoadBalancerSpec) -> Option<Finding> {
        let endpoints = self.service.endpoints.as_ref()?.as_ref().ok()?;
        if endpoints.ready == 0 {
            let what = "it has no ready endpoint";
            return Some(self.found(&SERVICE_NO_ENDPOINTS, what));
        }
        let is_elsewhere = spec.traffic_policy == TrafficPolicy::Local
            && !spec.targets.is_empty()
            && !endpoints
                .nodes
                .iter()
                .any(|node| spec.targets.contains_key(node));
        is_elsewhere.then(|| {
            let nodes = first_few(&endpoints.nodes);
            let what = format!(
                "its {} ready endpoints are on {nodes}, none of which is a target",
                endpoints.ready
            );
            self.found(&SERVICE_LOCAL_ELSEWHERE, what)
        })
    }

    fn unread(&self, trouble: &Trouble) -> Option<Finding> {
        match trouble.kind {
            ErrorKind::ImplementedElsewhere => None,
            ErrorKind::NotOurs => Some(self.found(&SERVICE_NOT_OURS, &trouble.text)),
            ErrorKind::Invalid | ErrorKind::Unsupported => {
                Some(self.found(&SERVICE_INVALID, &trouble.text))
            }
            // What keeps a whole cloud from answering is a finding about the cloud.
            _ if self.cloud_fails() => None,
            _ => Some(self.found(&SERVICE_UNREADABLE, &trouble.text)),
        }
    }

    fn cloud_fails(&self) -> bool {
        let owner = self.service.owner.as_deref();
        let cloud = owner.and_then(|name| self.snapshot.cloud(name));
        cloud.is_some_and(|cloud| {
            let owned_fails =
                matches!(&cloud.owned, Some(Err(it)) if it.kind != ErrorKind::Unsupported);
            matches!(cloud.scope, Some(Err(_))) || owned_fails
        })
    }

    fn observed(&self, observed: &Observation) -> Vec<Finding> {
        let key = self.service.key();
        let report = &observed.report;
        let published = ingress_of(&self.service.view);
        let mut findings = Vec::new();
        let unmet = report.unmet.iter();
        findings.extend(unmet.map(|it| self.found(&SERVICE_INVALID, &it.message)));
        if !report.status.exists {
            let places = first_few(published.iter().map(Ingress::place));
            let what = format!("it publishes {places}, and its cloud has no load balancer for it");
            let missing = self.found(&SERVICE_BALANCER_MISSING, what);
            findings.extend((!published.is_empty()).then_some(missing));
            return findings;
        }
        if report.busy.is_none() && !observed.plan.is_empty() {
            let steps = first_few(observed.plan.steps.iter().map(|step| &step.text));
            let what = format!("a leader would: {steps}");
            let fix = format!("cloudkeel explain service {key}");
            findings.push(self.found(&SERVICE_DIFFERS, what).fix(fix));
        }
        findings.extend(self.address(&published, &report.status.ingress));
        findings.extend(self.health(observed));
        findings
    }

    /// A hostname that the Service asks for is published instead.
    fn address(&self, published: &[Ingress], actual: &[Ingress]) -> Option<Finding> {
        let draft = self.service.draft.as_ref()?.as_ref().ok()?;
        let places = |all: &[Ingress]| all.iter().map(Ingress::place).collect::<BTreeSet<_>>();
        let (is, was) = (places(actual), places(published));
        let differs =
            draft.spec.options.hostname.is_none() && !was.is_empty() && !is.is_empty() && is != was;
        differs.then(|| {
            let (is, was) = (first_few(&is), first_few(&was));
            let what = format!("it publishes {was}; its load balancer has {is}");
            self.found(&SERVICE_ADDRESS_DIFFERS, what)
        })
    }

    fn health(&self, observed: &Observation) -> Option<Finding> {
        let health = &observed.report.status.health;
        let is_bad = |state: HealthState| state == HealthState::Unhealthy;
        let bad: BTreeSet<_> = health
            .iter()
            .filter(|it| is_bad(it.state))
            .map(|it| &it.target)
            .collect();
        if bad.is_empty() {
            return None;
        }
        let all: BTreeSet<_> = health.iter().map(|it| &it.target).collect();
        let serves = health.iter().any(|it| it.state == HealthState::Healthy);
        // With that policy a Node without a Pod of the Service is meant to fail its check.
        let is_local = self.service.view.traffic_policy == TrafficPolicy::Local;
        if serves && is_local {
            return None;
        }
        let what = format!(
            "its cloud finds {} of {} targets unhealthy: {}",
            bad.len(),
            all.len(),
            first_few(bad)
        );
        let rule = if serves {
            &SERVICE_TARGETS_UNHEALTHY
        } else {
            &SERVICE_TARGETS_DOWN
        };
        Some(self.found(rule, what))
    }

    fn pending(&self) -> Option<Finding> {
        let created = self.service.created;
        let is_pending =
            self.service.view.ingress.is_empty() && self.seconds_since(created) >= PENDING_SECONDS;
        is_pending.then(|| {
            let ago = created.map_or_else(String::new, |at| age(at, self.snapshot.now));
            let what = format!("no address {ago} after it was created{}", self.last_event());
            self.found(&SERVICE_PENDING, what).fix(self.describe())
        })
    }
}
