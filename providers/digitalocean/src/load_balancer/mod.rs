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
    Features, HealthCheckPolicy, Limits, LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus,
    OwnedResource, Priority, Problem, ProviderContext, ProxyProtocols, Report, UnknownAnnotation,
};
use cloudkeel_toolkit::{EventRecorder, SharedRead, ingress, one_each};

use self::apply::BUILDING;
use self::certificate::{Certificates, FoundCertificate};
use self::desired::asked_type;
use self::observe::Observed;
pub(crate) use self::owner::is_owned_by;
use self::owner::{OWNER, labels};
use self::step::Step;
use crate::annotations as key;
use crate::config::{BalancerType, Config};
use crate::instances::Droplets;
use crate::wire::LoadBalancer;

/// What planning has to know besides the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) region: String,
    pub(crate) vpc_id: Option<String>,
    pub(crate) default_type: BalancerType,
    /// The Go CCM's tag of this cluster.
    pub(crate) cluster_tag: Option<String>,
    /// The cluster's UID, for our owner tag.
    pub(crate) cluster: Option<String>,
}

impl Facts {
    pub(crate) fn new(config: &Config, region: String, context: &ProviderContext) -> Self {
        Self {
            region,
            vpc_id: config.vpc_id.clone(),
            default_type: config.balancer_type(),
            cluster_tag: config.cluster_id.as_ref().map(|id| format!("k8s:{id}")),
            cluster: context.cluster.uid.clone(),
        }
    }
}

/// The load balancers of the account.
pub(crate) struct Balancers {
    droplets: Arc<Droplets>,
    facts: Facts,
    events: Arc<EventRecorder>,
    list: SharedRead<Vec<LoadBalancer>>,
    certificates: Certificates,
}

impl Balancers {
    pub(crate) fn new(droplets: &Arc<Droplets>, facts: Facts, events: &Arc<EventRecorder>) -> Self {
        Self {
            droplets: Arc::clone(droplets),
            facts,
            events: Arc::clone(events),
            list: SharedRead::default(),
            certificates: Certificates::default(),
        }
    }
}

/// The ID of its load balancer that a Service carries.
pub(crate) fn annotated_id(balancer_ref: &BalancerRef) -> Option<&String> {
    let id = balancer_ref.annotations.get(key::LOAD_BALANCER_ID.name());
    id.filter(|id| !id.is_empty())
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
        let all = self.visible(desired.balancer_ref()).await?;
        let observed = self.observe_among(&all, desired).await?;
        self.report_notices(desired.balancer_ref(), &observed);
        Ok(observed)
    }

    fn plan(&self, desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
        plan::plan(desired, have)
    }

    async fn execute(
        &self,
        desired: DesiredState<'_>,
        _have: &Observed,
        step: &Step,
    ) -> Executed<Observed> {
        self.execute_step(desired, step).await
    }

    fn report(&self, desired: DesiredState<'_>, have: &Observed) -> Report {
        report(desired, have)
    }

    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let default = self.facts.default_type;
        let kind = asked_type(&balancer_ref.annotations, default).unwrap_or(default);
        let features = Features {
            udp: true,
            mixed_protocols: true,
            source_ranges: true,
            proxy_protocol: match kind {
                BalancerType::Regional => ProxyProtocols::V1,
                BalancerType::Network => ProxyProtocols::None,
            },
            internal: true,
            chosen_address: true,
            dual_stack: true,
            healthy_threshold: true,
            ..Features::default()
        };
        BalancerProfile {
            features,
            health_check: HealthCheckPolicy::kube_proxy(),
            limits: Limits::default(),
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
        let all = match self.list.fresh(|| api.every(Priority::Background)).await {
            Ok(all) => all,
            Err(error) => return one_each(specs, Err(error)),
        };
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            let desired = DesiredState::Present(spec);
            observed.push(self.observe_among(&all, desired).await);
        }
        observed
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let cluster = OWNER.cluster(self.facts.cluster.as_ref())?;
        let all: Vec<LoadBalancer> = self.droplets.api.every(Priority::Background).await?;
        Ok(OWNER.owned_among(&all, labels, cluster))
    }
}

/// What an observation says about the desired state. Pure.
fn report(desired: DesiredState<'_>, have: &Observed) -> Report {
    let ours = have.found.ours.first();
    let stays = |balancer: &LoadBalancer| {
        format!("load balancer {} ({})", balancer.id, balancer.settings.name)
    };
    match desired {
        DesiredState::Present(_) if have.is_disowned => disowned(desired.balancer_ref(), ours),
        DesiredState::Present(spec) => {
            let ours = ours.map(|balancer| of_balancer(spec, have, balancer));
            ours.unwrap_or_default()
        }
        DesiredState::Absent(_) if !have.is_disowned => Report::default(),
        DesiredState::Absent(_) | DesiredState::Released(_) => Report {
            kept: have.found.ours.iter().map(stays).collect(),
            ..Report::default()
        },
    }
}

/// The Service stays as it is, whatever there is.
fn disowned(balancer_ref: &BalancerRef, ours: Option<&LoadBalancer>) -> Report {
    Report {
        status: LoadBalancerStatus {
            id: ours.map(|balancer| balancer.id.clone()),
            ..LoadBalancerStatus::of("", balancer_ref.ingress.clone())
        },
        ..Report::default()
    }
}

fn of_balancer(spec: &LoadBalancerSpec, have: &Observed, balancer: &LoadBalancer) -> Report {
    let desired = have.desired.as_ref();
    let hostname = desired.and_then(|desired| desired.hostname.as_ref());
    let ingress = ingress(hostname, balancer.addresses(), false);
    let mut report = Report {
        status: LoadBalancerStatus::of(&balancer.id, ingress),
        busy: (balancer.status == "new").then(|| Busy {
            why: format!("load balancer {} is being built", balancer.id),
            check_after: BUILDING,
        }),
        unmet: unmet(have, balancer),
        ..Report::default()
    };
    let renewed = match &have.certificate {
        FoundCertificate::Renewed(id) => Some((key::CERTIFICATE_ID.name(), id)),
        _ => None,
    };
    let written = [
        (key::LOAD_BALANCER_ID.name(), &balancer.id),
        (key::TYPE.name(), &balancer.settings.kind),
    ];
    for (name, value) in written.into_iter().chain(renewed) {
        if spec.balancer_ref.annotations.get(name) != Some(value) && !value.is_empty() {
            report.changes.annotate(name, value);
        }
    }
    report
}

/// What cannot be met of what is asked of a load balancer that is there. Pure.
fn unmet(have: &Observed, balancer: &LoadBalancer) -> Vec<Failures> {
    let desired = have.desired.iter();
    let fixed = desired.flat_map(|desired| desired.fixed.clone());
    let invalid = have.problems().into_iter().chain(fixed);
    let invalid = invalid.map(Failures::invalid);
    let errored = (balancer.status == "errored").then(|| Failures {
        kind: ErrorKind::Other,
        message: format!(
            "load balancer {} could not be built: its status is errored",
            balancer.id
        ),
        details: None,
    });
    invalid.chain(errored).collect()
}
