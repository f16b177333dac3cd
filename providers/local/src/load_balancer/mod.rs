//! Load balancers: observe, plan, apply.

mod apply;
mod desired;
mod observe;
mod plan;
mod step;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, Busy, CloudError, DesiredState, Executed, Features,
    HealthCheckPolicy, Limits, LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus,
    OwnedResource, ProviderContext, ProxyProtocols, Report, TargetHealth, UnknownAnnotation,
};
use cloudkeel_toolkit::health::name_of_target;
use cloudkeel_toolkit::{
    CloudBalancer, EventRecorder, OwnerLabels, ServiceLabel, SharedList, ingress, one_each,
};

use self::apply::Versions;
use self::observe::Observed;
use self::step::Step;
use crate::annotations::{self, BALANCER_ID};
use crate::client::{Api, requests};
use crate::wire::{self, Balancer, BalancerState, TargetAt};

/// The UID of the Service that a balancer was created for. This label decides.
pub const SERVICE_UID: &str = "cloudkeel.dev/service-uid";

/// The UID of the cluster that created it.
pub const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

/// `namespace/name` of the Service.
pub const SERVICE: &str = "cloudkeel.dev/service";

const OWNER: OwnerLabels = OwnerLabels {
    service_uid: SERVICE_UID,
    cluster_uid: CLUSTER_UID,
    service: ServiceLabel::Joined(SERVICE),
    others: &[],
};

/// What planning has to know besides the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Our project.
    pub(crate) project: String,
    /// What the cloud can do.
    pub(crate) features: wire::Features,
    /// How much a balancer takes.
    pub(crate) limits: wire::Limits,
    /// What labels this cluster's balancers.
    pub(crate) cluster: Option<String>,
}

impl Facts {
    fn target_limit(&self) -> usize {
        self.limits.targets.map_or(usize::MAX, |most| most as usize)
    }

    fn listener_limit(&self) -> usize {
        let most = self.limits.listeners;
        most.map_or(usize::MAX, |most| most as usize)
    }
}

/// The balancers of the project.
pub(crate) struct LocalBalancers {
    api: Api,
    facts: Facts,
    events: EventRecorder,
    poll_interval: Duration,
    versions: Versions,
    list: SharedList<Balancer>,
}

/// As many balancers as the cloud gives on one page.
const PER_PAGE: usize = 50;

impl LocalBalancers {
    pub(crate) fn new(
        api: Api,
        cluster: Option<String>,
        context: &ProviderContext,
        poll_interval: Duration,
    ) -> Self {
        let facts = Facts {
            project: api.home().project.clone(),
            features: api.home().features,
            limits: api.home().limits,
            cluster,
        };
        Self {
            api,
            facts,
            events: EventRecorder::new(std::sync::Arc::clone(&context.events)),
            poll_interval,
            versions: Versions::default(),
            list: SharedList::in_pages_of(PER_PAGE),
        }
    }
}

#[async_trait]
impl LoadBalancerDriver for LocalBalancers {
    type Observed = Observed;
    type Step = Step;

    async fn observe(&self, desired: DesiredState<'_>) -> Result<Observed, CloudError> {
        self.observe_one(desired).await
    }

    fn plan(&self, desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
        plan::plan(desired, have, &self.facts)
    }

    async fn execute(
        &self,
        desired: DesiredState<'_>,
        have: &Observed,
        step: &Step,
    ) -> Executed<Observed> {
        self.execute_step(desired, have, step).await
    }

    fn report(&self, desired: DesiredState<'_>, have: &Observed) -> Report {
        report(desired, have, &self.facts, self.poll_interval)
    }

    fn profile(&self, _: &BalancerRef) -> BalancerProfile {
        let can = self.facts.features;
        let features = Features {
            drain: can.drain,
            targets_by_address: can.targets_by_address,
            every_node: can.every_node,
            udp: can.udp,
            sctp: can.sctp,
            mixed_protocols: can.mixed_protocols,
            dual_stack: can.dual_stack,
            source_ranges: true,
            client_affinity: true,
            proxy_protocol: ProxyProtocols::Both,
            internal: true,
            chosen_address: true,
            healthy_threshold: false,
            shared: true,
        };
        BalancerProfile {
            features,
            health_check: HealthCheckPolicy::LocalAware,
            limits: Limits {
                targets: self.facts.limits.targets,
                listeners: self.facts.limits.listeners,
                rules: None,
            },
        }
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        annotations::unknown(given)
    }

    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        balancer_ref.points_at_balancer()
            || balancer_ref.annotations.contains_key(BALANCER_ID.name())
    }

    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        one_each(specs, self.observe_all(specs).await)
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let cluster = OWNER.cluster(self.facts.cluster.as_ref())?;
        let request = requests::balancers_with_label(CLUSTER_UID, cluster);
        let ours: Vec<Balancer> = self.api.list_own(request).await?;
        Ok(ours.iter().map(|b| OWNER.owned(b, &b.labels)).collect())
    }
}

/// What an observation says about the desired state. Pure.
fn report(
    desired: DesiredState<'_>,
    have: &Observed,
    facts: &Facts,
    poll_interval: Duration,
) -> Report {
    // What is not ours yet is nothing to show.
    let recording = match desired {
        DesiredState::Present(spec) => have.sharing.recording(&spec.balancer_ref),
        _ => Report::default(),
    };
    let Some(balancer) = have.found.ours.first() else {
        return recording;
    };
    let mut ours = have.found.ours.iter();
    let id = balancer.id.to_string();
    let is_proxied = balancer.proxy_protocol.is_some();
    let addresses = balancer.addresses.iter().copied();
    let addresses = ingress(balancer.hostname.as_ref(), addresses, is_proxied);
    let mut report = Report {
        status: LoadBalancerStatus {
            draining: plan::unwanted_draining(have, balancer),
            health: target_health(desired, balancer, &facts.project),
            ..LoadBalancerStatus::of(&id, addresses)
        },
        busy: ours.find_map(|b| busy(b, poll_interval)).or(recording.busy),
        kept: kept(desired, have),
        unmet: plan::over_limits(have, balancer, facts),
        changes: recording.changes,
    };
    if let DesiredState::Present(spec) = desired {
        let present = &spec.balancer_ref.annotations;
        report
            .changes
            .ensure_annotation(present, BALANCER_ID.name(), &id);
    }
    report
}

/// What the cloud's health checks say, under the names of the Nodes.
fn target_health(
    desired: DesiredState<'_>,
    balancer: &Balancer,
    project: &str,
) -> Vec<TargetHealth> {
    let name_of = |at: TargetAt| {
        let (id, address) = match at {
            TargetAt::Machine(id) => (Some(format!("{project}/{id}")), None),
            TargetAt::Ip(ip) => (None, Some(ip)),
        };
        name_of_target(desired, id.as_deref(), address, at)
    };
    let health = balancer.health.iter().map(|of| TargetHealth {
        target: name_of(of.at),
        listener: Some(of.port),
        state: of.health,
    });
    health.collect()
}

/// What stays although the Service is deleted.
fn kept(desired: DesiredState<'_>, have: &Observed) -> Vec<String> {
    let stays = |balancer: &&Balancer| match desired {
        DesiredState::Present(_) => false,
        DesiredState::Absent(_) => balancer.protected || have.sharing.outlives_service(),
        DesiredState::Released(_) => true,
    };
    let kept = have.found.ours.iter().filter(stays);
    kept.map(CloudBalancer::in_words).collect()
}

fn busy(balancer: &Balancer, check_after: Duration) -> Option<Busy> {
    let doing = match balancer.state {
        BalancerState::Active => return None,
        BalancerState::Pending => "built or changed",
        BalancerState::Deleting => "taken down",
    };
    Some(Busy {
        why: format!("balancer {} is being {doing}", balancer.id),
        check_after,
    })
}

#[cfg(test)]
mod tests;
