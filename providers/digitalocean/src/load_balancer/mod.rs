//! Load balancers: observe, plan, apply.

mod apply;
pub(crate) mod certificate;
pub(crate) mod desired;
pub(crate) mod health;
mod nodes;
mod observe;
mod owner;
mod plan;
pub(crate) mod rules;
mod step;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, Busy, CloudError, DesiredState, ErrorKind, Executed, Failures,
    Features, HealthCheckPolicy, KeyValue as _, LoadBalancerDriver, LoadBalancerSpec,
    LoadBalancerStatus, OwnedResource, Priority, Problem, ProxyProtocols, Report,
    UnknownAnnotation,
};
use cloudkeel_toolkit::{
    CloudBalancer as _, EventRecorder, TaggedBalancers, ingress, one_each, through_balancer,
};

use self::apply::BUILDING;
use self::certificate::Certificates;
use self::desired::Desired;
use self::observe::Observed;
pub(crate) use self::owner::balancers;
use self::step::Step;
use crate::annotations as key;
use crate::config::BalancerType;
use crate::instances::Droplets;
use crate::wire::LoadBalancer;

/// What planning has to know besides the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) region: String,
    pub(crate) vpc_id: Option<String>,
    pub(crate) default_type: BalancerType,
    /// The Go CCM's tag of this cluster, if it has one.
    pub(crate) cluster_tag: Vec<String>,
    /// The cluster's UID, for our owner tag.
    pub(crate) cluster: Option<String>,
}

impl Facts {
    /// The type that a load balancer has, else the one that a new one gets.
    pub(crate) fn kind(
        &self,
        annotations: &BTreeMap<String, String>,
        have: Option<&LoadBalancer>,
    ) -> BalancerType {
        let kind = have.and_then(|have| BalancerType::parse(&have.settings.kind).ok());
        let kind = kind.or_else(|| key::TYPE.readable(annotations));
        kind.unwrap_or(self.default_type)
    }
}

/// The load balancers of the account.
pub(crate) struct Balancers {
    pub(crate) droplets: Arc<Droplets>,
    pub(crate) facts: Facts,
    pub(crate) events: Arc<EventRecorder>,
    pub(crate) tagged: TaggedBalancers<LoadBalancer>,
    pub(crate) certificates: Certificates,
}

/// Whether a Service says that its load balancer is left alone.
pub(crate) fn is_disowned(annotations: &BTreeMap<String, String>) -> Result<bool, Problem> {
    Ok(key::DISOWN.get(annotations)?.unwrap_or(false))
}

#[async_trait]
impl LoadBalancerDriver for Balancers {
    type Observed = Observed;
    type Step = Step;

    async fn observe(&self, desired: DesiredState<'_>) -> Result<Observed, CloudError> {
        let (api, balancer_ref) = (&self.droplets.api, desired.balancer_ref());
        let all = self.tagged.visible(api, balancer_ref).await?;
        let observed = self.observe_among(&all, desired).await?;
        self.report_notices(balancer_ref, &observed);
        Ok(observed)
    }

    fn plan(&self, desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
        plan::plan(desired, have)
    }

    async fn execute(&self, _: DesiredState<'_>, _: &Observed, step: &Step) -> Executed<Observed> {
        self.execute_step(step).await
    }

    fn report(&self, desired: DesiredState<'_>, have: &Observed) -> Report {
        report(desired, have)
    }

    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let features = Features {
            udp: true,
            mixed_protocols: true,
            source_ranges: true,
            proxy_protocol: match self.facts.kind(&balancer_ref.annotations, None) {
                BalancerType::Regional => ProxyProtocols::V1,
                BalancerType::Network => ProxyProtocols::None,
            },
            internal: true,
            chosen_address: true,
            dual_stack: true,
            healthy_threshold: true,
            shared: true,
            ..Features::default()
        };
        BalancerProfile {
            health_check: HealthCheckPolicy::kube_proxy(),
            ..BalancerProfile::with_features(features)
        }
    }

    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        let id = key::LOAD_BALANCER_ID.name();
        balancer_ref.points_at_balancer() || balancer_ref.annotations.contains_key(id)
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        key::unknown(given)
    }

    /// One list of load balancers for all specs.
    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        let api = &self.droplets.api;
        let all = match self.tagged.all(api, Priority::Background).await {
            Ok(all) => all,
            Err(error) => return one_each(specs, Err(error)),
        };
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            observed.push(self.observe_among(&all, DesiredState::Present(spec)).await);
        }
        observed
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        self.tagged.owned(&self.droplets.api).await
    }
}

/// What an observation says about the desired state. Pure.
fn report(desired: DesiredState<'_>, have: &Observed) -> Report {
    let (ours, kept) = (have.found.ours.first(), have.found.ours.iter());
    let is_left = have.sharing.outlives_service();
    match (desired, ours) {
        // The Service stays as it is, whatever there is.
        (DesiredState::Present(spec), _) if have.is_disowned => Report {
            status: LoadBalancerStatus {
                id: ours.map(|balancer| balancer.id.clone()),
                ..LoadBalancerStatus::of("", spec.balancer_ref.ingress.clone())
            },
            ..Report::default()
        },
        (DesiredState::Present(spec), Some(balancer)) => of_balancer(spec, have, balancer),
        (DesiredState::Present(spec), None) => have.sharing.recording(&spec.balancer_ref),
        (DesiredState::Absent(_), _) if !have.is_disowned && !is_left => Report::default(),
        _ => Report::keeping(kept.map(LoadBalancer::in_words)),
    }
}

fn of_balancer(spec: &LoadBalancerSpec, have: &Observed, balancer: &LoadBalancer) -> Report {
    let recording = have.sharing.recording(&spec.balancer_ref);
    let desired = have.desired.as_ref();
    let hostname = desired.and_then(|desired| desired.hostname.as_ref());
    let mut ingress = ingress(hostname, balancer.addresses(), false);
    if desired.is_some_and(Desired::changes_traffic) {
        ingress = through_balancer(&spec.balancer_ref, ingress);
    }
    let building = (balancer.status == "new").then(|| Busy {
        why: format!("load balancer {} is being built", balancer.id),
        check_after: BUILDING,
    });
    let mut report = Report {
        status: LoadBalancerStatus::of(&balancer.id, ingress),
        busy: building.or(recording.busy),
        unmet: unmet(have, balancer),
        ..recording
    };
    // One that is asked for by its ID may have been renewed.
    let annotations = &spec.balancer_ref.annotations;
    let by_id = annotations.contains_key(key::CERTIFICATE_ID.name());
    let certificate = have.certificate.as_deref().filter(|_| by_id);
    let mut write = |key: &str, value| report.changes.ensure_annotation(annotations, key, value);
    write(key::LOAD_BALANCER_ID.name(), &balancer.id);
    write(key::TYPE.name(), &balancer.settings.kind);
    write(key::CERTIFICATE_ID.name(), certificate.unwrap_or_default());
    report
}

/// What cannot be met of what is asked of a load balancer that is there. Pure.
fn unmet(have: &Observed, balancer: &LoadBalancer) -> Vec<Failures> {
    let desired = have.desired.iter();
    let wrong = desired.flat_map(|desired| desired.problems.iter().chain(&desired.fixed));
    let errored = (balancer.status == "errored").then(|| {
        let id = &balancer.id;
        let message = format!("load balancer {id} could not be built: its status is errored");
        Failures::new(ErrorKind::Other, message)
    });
    let taken = have.sharing.unmet();
    wrong.cloned().chain(errored).chain(taken).collect()
}
