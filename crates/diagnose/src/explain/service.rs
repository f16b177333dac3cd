//! The story of a Service.

use cloudkeel_api::{
    CloudError, ErrorKind, Ingress, LoadBalancerSpec, Retry, TargetState, TrafficPolicy,
};
use cloudkeel_controllers::service::ingress_of;
use cloudkeel_controllers::wellknown::CLEANUP_FINALIZER;

use super::{Explanation, NextStep, Section, events_about, unless_led};
use crate::check::findings_of_service;
use crate::snapshot::{ServiceState, Snapshot, Trouble};
use crate::text::{age, duration, first_few};

/// The story of the Service of this `namespace/name`, if there is one.
pub fn explain_service(snapshot: &Snapshot, key: &str) -> Option<Explanation> {
    let mut services = snapshot.known_services().iter();
    let service = services.find(|service| service.key() == key)?;
    let story = Story { snapshot, service };
    let name = &service.view.service;
    Some(Explanation {
        object: format!("Service {key}"),
        sections: vec![
            Section::new("Owner", story.owner()),
            Section::new("Service", story.service()),
            Section::new("Asks for", story.asks_for()),
            Section::new("Cloud", story.cloud()),
            Section::new("Differs", story.differences()),
        ],
        deletion: Vec::new(),
        next: unless_led(snapshot, story.next()),
        findings: findings_of_service(snapshot, service),
        events: events_about(snapshot, "Service", &name.namespace, &name.name),
    })
}

struct Story<'a> {
    snapshot: &'a Snapshot,
    service: &'a ServiceState,
}

impl Story<'_> {
    fn owner(&self) -> Vec<String> {
        let view = &self.service.view;
        let class = view.class.as_deref();
        vec![match (&self.service.owner, class) {
            _ if !view.is_load_balancer() => "none: its type is not LoadBalancer".to_owned(),
            (Some(cloud), Some(class)) => {
                format!("cloud {cloud}, because it serves the class {class:?}")
            }
            (Some(cloud), None) => format!("cloud {cloud}, which serves Services without a class"),
            (None, Some(class)) => format!("none here: no cloud serves the class {class:?}"),
            (None, None) => "none here: no cloud serves Services without a class".to_owned(),
        }]
    }

    fn service(&self) -> Vec<String> {
        let view = &self.service.view;
        let mut lines = Vec::new();
        if let Some(created) = self.service.created {
            lines.push(format!("created {} ago", age(created, self.snapshot.now)));
        }
        if let Some(since) = self.service.deleting_since {
            lines.push(format!(
                "being deleted for {}",
                age(since, self.snapshot.now)
            ));
        }
        let places = ingress_of(view);
        lines.push(if places.is_empty() {
            "no address is published".to_owned()
        } else {
            format!("publishes {}", first_few(places.iter().map(Ingress::place)))
        });
        if !view.finalizers.is_empty() {
            lines.push(format!("finalizers {}", view.finalizers.join(", ")));
        }
        match &self.service.endpoints {
            Some(Ok(endpoints)) => lines.push(format!(
                "{} ready endpoints on {} Nodes",
                endpoints.ready,
                endpoints.nodes.len()
            )),
            Some(Err(unread)) => lines.push(format!("endpoints: {}", unread.why)),
            None => {}
        }
        lines
    }

    fn asks_for(&self) -> Vec<String> {
        match &self.service.draft {
            None => Vec::new(),
            Some(Err(problems)) => problems.lines().map(str::to_owned).collect(),
            Some(Ok(draft)) => {
                let mut lines = spec(&draft.spec);
                lines.extend(draft.warnings.iter().map(|it| it.message.clone()));
                lines
            }
        }
    }

    fn cloud(&self) -> Vec<String> {
        match &self.service.observed {
            None => Vec::new(),
            Some(Err(trouble)) => vec![trouble.text.clone()],
            Some(Ok(observed)) => {
                let report = &observed.report;
                if !report.status.exists {
                    return vec!["no load balancer of this Service".to_owned()];
                }
                let id = report.status.id.as_deref().unwrap_or("without an ID");
                let places = first_few(report.status.ingress.iter().map(Ingress::place));
                let mut lines = vec![format!("load balancer {id}, reached at {places}")];
                lines.extend(report.busy.iter().map(|busy| busy.why.clone()));
                lines.extend(report.unmet.iter().map(|it| it.message.clone()));
                let health = report.status.health.iter();
                lines.extend(health.map(|it| {
                    let port = it
                        .listener
                        .map_or_else(String::new, |port| format!(" port {port}"));
                    let state = format!("{:?}", it.state).to_lowercase();
                    format!("target {}{port}: {state}", it.target)
                }));
                lines
            }
        }
    }

    fn differences(&self) -> Vec<String> {
        let steps = match (&self.service.removal, &self.service.observed) {
            (Some(Ok(plan)), _) => &plan.steps,
            (Some(Err(trouble)), _) => return vec![trouble.text.clone()],
            (None, Some(Ok(observed))) => &observed.plan.steps,
            (None, _) => return Vec::new(),
        };
        let sign = |destructive| if destructive { '-' } else { '+' };
        let steps = steps.iter();
        steps
            .map(|step| format!("{} {}", sign(step.destructive), step.text))
            .collect()
    }

    fn next(&self) -> NextStep {
        let settings = &self.snapshot.settings;
        let view = &self.service.view;
        if view.deleting {
            return self.next_of_deletion();
        }
        if self.service.owner.is_none() {
            return NextStep::never("nothing: no cloud here serves it");
        }
        if matches!(self.service.draft, Some(Err(_))) {
            return NextStep::never(
                "nothing until the Service is corrected, which is tried at once",
            );
        }
        match &self.service.observed {
            Some(Err(trouble)) => after(trouble),
            Some(Ok(observed)) if !observed.plan.is_empty() => {
                let is_new = view.ingress.is_empty();
                let period = duration(settings.service_list_period);
                match (is_new, settings.repairs_drift) {
                    (true, _) => {
                        NextStep::new("the load balancer is made: see what differs", "at once")
                    }
                    (false, true) => {
                        let when = format!(
                            "at once if the Service or a Node changed, else at the next check, within {period}"
                        );
                        NextStep::new("what differs is repaired", when)
                    }
                    (false, false) => NextStep::never(
                        "what differs is only reported (--load-balancer-drift=report), until the Service changes",
                    ),
                }
            }
            Some(Ok(observed)) if observed.report.busy.is_some() => NextStep::new(
                "the cloud is still working on it",
                "it is looked at again within seconds",
            ),
            Some(Ok(_)) => {
                let period = duration(settings.service_list_period);
                NextStep::new(
                    "nothing differs",
                    format!("the next check comes within {period}"),
                )
            }
            None => NextStep::never("nothing: its cloud has no load balancers"),
        }
    }

    fn next_of_deletion(&self) -> NextStep {
        if !self.service.view.has_finalizer(CLEANUP_FINALIZER) {
            return NextStep::never(
                "nothing: the finalizer of the load balancer is gone, so cloudkeel is done",
            );
        }
        match &self.service.removal {
            Some(Ok(plan)) if plan.is_empty() => NextStep::new(
                "nothing of its load balancer is found; the finalizer goes when that is certain",
                "docs/load-balancers.md says what has to be confirmed",
            ),
            Some(Ok(_)) => NextStep::new(
                "the load balancer is deleted, then the finalizer is removed",
                "at once",
            ),
            Some(Err(trouble)) => after(trouble),
            None => NextStep::never("nothing: no cloud here serves it"),
        }
    }
}

/// What the retry of a cloud's error is.
fn after(trouble: &Trouble) -> NextStep {
    let what = format!("it is tried again: {}", trouble.text);
    if trouble.kind == ErrorKind::ImplementedElsewhere {
        return NextStep::never("nothing: another controller has this Service");
    }
    match CloudError::new("", trouble.kind, "").retry() {
        Retry::After(wait) => NextStep::new(what, format!("in {}", duration(wait))),
        Retry::Backoff => NextStep::new(what, "with growing pauses"),
        Retry::UserAction => NextStep::new(
            what,
            "every few minutes, and at once when the Service changes",
        ),
        Retry::Never => NextStep::never(what),
    }
}

fn spec(spec: &LoadBalancerSpec) -> Vec<String> {
    let listeners = spec.listeners.iter().map(|listener| {
        let to = listener
            .node_port
            .map_or_else(String::new, |to| format!(" to node port {to}"));
        format!("{} {}{to}", listener.protocol, listener.port)
    });
    let mut lines: Vec<_> = listeners.collect();
    let draining = spec
        .targets
        .values()
        .filter(|it| it.state == TargetState::Draining)
        .count();
    let targets = format!(
        "{} targets: {}",
        spec.targets.len(),
        first_few(spec.targets.keys())
    );
    lines.push(match (spec.targets.len(), draining) {
        (0, _) => "no targets".to_owned(),
        (_, 0) => targets,
        _ => format!("{targets}; {draining} of them drain"),
    });
    if spec.traffic_policy == TrafficPolicy::Local {
        let port = spec
            .health_check_node_port
            .map_or_else(String::new, |it| format!(", health check node port {it}"));
        lines.push(format!("externalTrafficPolicy Local{port}"));
    }
    lines
}
