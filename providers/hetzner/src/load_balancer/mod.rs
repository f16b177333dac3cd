//! Load balancers: observe, plan, apply.

mod apply;
mod certificate;
mod create;
mod desired;
mod health;
mod observe;
mod owner_labels;
mod plan;
mod service;
mod shared;
mod step;
mod targets;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, Busy, Clock, CloudError, DesiredState, Executed, Failures,
    Features, LabelSelector, Limits, LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus,
    OwnedResource, Problem, ProviderContext, ProxyProtocols, Report, ResourceKind,
    UnknownAnnotation, names,
};
use cloudkeel_toolkit::{
    CloudBalancer, EventRecorder, RecentSet, SharedList, SharedRead, ingress, one_each,
    through_balancer,
};

use self::apply::FULL_FOR;
use self::certificate::Certificates;
use self::create::without_network;
use self::desired::Desired;
use self::observe::{Asked, BalancerTypeChange, DEFAULT_TYPE, Observed, protected};
use self::owner_labels::OWNER;
pub use self::owner_labels::{CLUSTER_UID, SERVICE_UID};
use self::service::without_node_port;
use self::step::Step;
use crate::annotations as key;
use crate::annotations::ServiceProtocol;
use crate::client::Login;
use crate::config::{BalancerDefaults, Config};
use crate::instances::Servers;
use crate::wire::{BalancerType, Certificate, LoadBalancer};

/// When to check a balancer that is being built.
const BUILDING: Duration = Duration::from_secs(2);

/// When to check a certificate that is being issued.
const ISSUING: Duration = Duration::from_secs(10);

/// As many balancers as the cloud gives on one page.
const PER_PAGE: usize = 50;

/// What planning has to know besides the desired state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// The private network.
    network: Option<u64>,
    /// What Services get without an annotation that says otherwise.
    defaults: BalancerDefaults,
    /// What labels this cluster's balancers.
    cluster: Option<String>,
}

impl Facts {
    /// Whether targets are reached through the network. Without one there is no such way.
    const fn reaches_privately(&self, asked: &Desired) -> bool {
        asked.use_private_ip && self.network.is_some()
    }
}

/// The balancers of the project.
pub(crate) struct HetznerBalancers {
    servers: Arc<Servers>,
    facts: Facts,
    robot: Login,
    clock: Arc<dyn Clock>,
    events: Arc<EventRecorder>,
    types: SharedRead<Vec<BalancerType>>,
    list: SharedList<LoadBalancer>,
    /// Balancers that took no more targets a moment ago. One that is full is not asked for each target.
    full: RecentSet<u64>,
}

impl HetznerBalancers {
    pub(crate) fn new(
        servers: &Arc<Servers>,
        config: &Config,
        network: Option<u64>,
        robot: Login,
        context: &ProviderContext,
        events: &Arc<EventRecorder>,
    ) -> Self {
        Self {
            servers: Arc::clone(servers),
            facts: Facts {
                network,
                defaults: config.load_balancers.clone(),
                cluster: context.cluster.uid.clone(),
            },
            robot,
            clock: Arc::clone(&context.clock),
            events: Arc::clone(events),
            types: SharedRead::default(),
            list: SharedList::in_pages_of(PER_PAGE),
            full: RecentSet::new(FULL_FOR),
        }
    }
}

#[async_trait]
impl LoadBalancerDriver for HetznerBalancers {
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
        report(desired, have, &self.facts)
    }

    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let features = Features {
            targets_by_address: true,
            proxy_protocol: ProxyProtocols::V2,
            internal: true,
            dual_stack: true,
            shared: true,
            ..Features::default()
        };
        BalancerProfile {
            limits: limits(balancer_ref, &self.facts.defaults),
            ..BalancerProfile::with_features(features)
        }
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        key::unknown(given)
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        key::NODE_SELECTOR.get(annotations)
    }

    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        one_each(specs, self.observe_all(specs).await)
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let cluster = OWNER.cluster(self.facts.cluster.as_ref())?;
        let api = &self.servers.api;
        let request = api.labelled::<LoadBalancer>(CLUSTER_UID, cluster);
        let ours: Vec<LoadBalancer> = api.all(request).await?;
        // What is protected stays on purpose.
        let ours = ours.iter().filter(|balancer| !balancer.protection.delete);
        let ours = ours.map(|b| OWNER.owned(b, &b.labels));
        let request = api.labelled::<Certificate>(CLUSTER_UID, cluster);
        let unused: Vec<Certificate> = api.all(request).await?;
        let unused = unused.iter().filter(|it| it.used_by.is_empty());
        let kind = ResourceKind::Certificate;
        let unused = unused.map(|it| OWNER.owned_as(kind, it.id.to_string(), &it.name, &it.labels));
        Ok(ours.chain(unused).collect())
    }
}

/// How many targets and services each type takes, as Hetzner documents it. What is planned goes by the numbers that the
/// cloud itself shows of the type.
const LIMITS: [(&str, u32, u32); 3] = [("lb11", 25, 5), ("lb21", 75, 15), ("lb31", 150, 30)];

/// How much a balancer of the Service's type takes.
fn limits(balancer_ref: &BalancerRef, defaults: &BalancerDefaults) -> Limits {
    let asked = |key: &str| balancer_ref.annotations.get(key);
    let asked = asked(key::TYPE.name()).or_else(|| asked(names::LB_TYPE.name()));
    let asked = asked.or(defaults.load_balancer_type.as_ref());
    let asked = asked.map_or(DEFAULT_TYPE, String::as_str);
    let found = LIMITS.iter().find(|(name, ..)| *name == asked);
    Limits {
        targets: found.map(|(_, targets, _)| *targets),
        listeners: found.map(|(.., services)| *services),
        rules: None,
    }
}

/// What an observation says about the desired state. Pure.
fn report(desired: DesiredState<'_>, have: &Observed, facts: &Facts) -> Report {
    let DesiredState::Present(spec) = desired else {
        let ours = have.found.ours.iter();
        let kept: Vec<_> = match desired {
            DesiredState::Absent(_) if !have.sharing.outlives_service() => {
                let kept = ours.filter(|b| b.protection.delete);
                kept.map(protected).collect()
            }
            _ => ours.map(CloudBalancer::in_words).collect(),
        };
        return Report::keeping(kept);
    };
    let recording = have.sharing.recording(&spec.balancer_ref);
    let (Some(balancer), Some(asked)) = (have.found.ours.first(), &have.asked) else {
        return recording;
    };
    let unmet = unmet(spec, asked, have, balancer, facts);
    let asked = &asked.desired;
    let (id, public) = (balancer.id.to_string(), &balancer.public_net);
    let ipv4 = public.ipv4.ip.filter(|_| public.enabled);
    let ipv6 = public.ipv6.ip;
    let ipv6 = ipv6.filter(|_| public.enabled && asked.ipv6_ingress);
    let private = balancer.private_net.iter().map(|net| net.ip);
    let private = private.filter(|_| asked.private_ingress);
    let addresses = ipv4.into_iter().chain(ipv6).chain(private);
    let is_proxied = asked.proxy_protocol == Some(true);
    let mut ingress = ingress(asked.hostname.as_ref(), addresses, is_proxied);
    if asked.protocol != ServiceProtocol::Tcp {
        ingress = through_balancer(&spec.balancer_ref, ingress);
    }
    let busy = || busy(desired, have, balancer, facts);
    Report {
        unmet,
        status: LoadBalancerStatus {
            health: health::target_health(spec, balancer),
            ..LoadBalancerStatus::of(id, ingress)
        },
        busy: recording.busy.or_else(busy),
        ..recording
    }
}

/// What cannot be met of what is asked of a balancer that is there. Pure.
fn unmet(
    spec: &LoadBalancerSpec,
    asked: &Asked,
    have: &Observed,
    balancer: &LoadBalancer,
    facts: &Facts,
) -> Vec<Failures> {
    let too_many = plan::over_limits(spec, asked, have, balancer);
    let asked = &asked.desired;
    let load_balancer_type = match &have.type_change {
        BalancerTypeChange::Unobtainable(why) => Some(why.clone()),
        BalancerTypeChange::None | BalancerTypeChange::To(_) => None,
    };
    let certificate = match &have.certificates {
        Certificates::Unobtainable(why) => Some(why.clone()),
        _ => None,
    };
    let network = facts.network.unwrap_or_default();
    let outside = have.outside.iter().map(|id| {
        format!(
            "server {id} is not in network {network}, so it is reached by its public address as before"
        )
    });
    let wrong = asked.unread.messages().chain(without_network(asked, facts));
    let wrong = wrong.chain(without_node_port(spec)).chain(outside);
    let wrong = wrong.map(Failures::invalid);
    let references = load_balancer_type.into_iter().chain(certificate);
    let wrong = wrong.chain(references).chain(too_many);
    wrong.chain(have.sharing.unmet()).collect()
}

/// A balancer without its address is being built. A certificate is only waited for when there is nothing
/// else to do.
fn busy(
    desired: DesiredState<'_>,
    have: &Observed,
    balancer: &LoadBalancer,
    facts: &Facts,
) -> Option<Busy> {
    let public = &balancer.public_net;
    if public.enabled && public.ipv4.ip.is_none() {
        return Some(Busy {
            why: format!("load balancer {} is being built", balancer.id),
            check_after: BUILDING,
        });
    }
    match &have.certificates {
        Certificates::Pending(name)
            if plan::plan(desired, have, facts).is_ok_and(|p| p.is_empty()) =>
        {
            Some(Busy {
                why: format!("certificate {name} is being issued"),
                check_after: ISSUING,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
