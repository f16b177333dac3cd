//! Load balancers: observe, plan, apply.

mod apply;
mod certificate;
mod create;
mod desired;
mod limits;
mod marks;
mod observe;
mod plan;
mod service;
mod step;
mod targets;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, Busy, Claim, Clock, CloudError, Failures, Features, Ingress, IpMode,
    LabelSelector, LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus, OwnedResource,
    Problem, ProviderContext, ProxyProtocols, Report, ResourceKind, SharedList, SharedRead,
    StepOutcome, UnknownAnnotation, Wish, unknown_annotations,
};

use self::apply::Full;
use self::certificate::Certificates;
use self::create::without_network;
use self::desired::Desired;
pub use self::marks::{CLUSTER_UID, SERVICE_UID};
use self::observe::{Observed, WantedType, protected, released};
use self::service::without_node_port;
use self::step::Step;
use crate::annotations as key;
use crate::client::{Api, Login};
use crate::config::{BalancerDefaults, Config};
use crate::fleet::Fleet;
use crate::tell::Teller;
use crate::wire::{BalancerType, LoadBalancer};

/// When to look again at a balancer that is being built.
const BUILDING: Duration = Duration::from_secs(2);

/// When to look again at a certificate that is being issued.
const ISSUING: Duration = Duration::from_secs(10);

/// What planning has to know besides the wish.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// The private network.
    pub(super) network: Option<u64>,
    /// What Services get without an annotation that says otherwise.
    pub(super) defaults: BalancerDefaults,
    /// What marks this cluster's balancers.
    pub(super) cluster: Option<String>,
}

impl Facts {
    /// Whether targets are reached through the network. Without one there is no such way.
    const fn reaches_privately(&self, asked: &Desired) -> bool {
        asked.use_private_ip && self.network.is_some()
    }
}

/// As many balancers as the cloud gives on one page.
const PER_PAGE: usize = 50;

/// The balancers of the project.
pub(crate) struct HetznerBalancers {
    api: Api,
    facts: Facts,
    robot: Login,
    clock: Arc<dyn Clock>,
    teller: Arc<Teller>,
    fleet: Arc<Fleet>,
    types: SharedRead<Vec<BalancerType>>,
    list: SharedList<LoadBalancer>,
    full: Full,
}

impl HetznerBalancers {
    pub(crate) fn new(
        fleet: &Arc<Fleet>,
        config: &Config,
        network: Option<u64>,
        robot: Login,
        context: &ProviderContext,
        teller: &Arc<Teller>,
    ) -> Self {
        Self {
            api: fleet.api().clone(),
            facts: Facts {
                network,
                defaults: config.load_balancers.clone(),
                cluster: context.cluster.uid.clone(),
            },
            robot,
            clock: Arc::clone(&context.clock),
            teller: Arc::clone(teller),
            fleet: Arc::clone(fleet),
            types: SharedRead::default(),
            list: SharedList::in_pages_of(PER_PAGE),
            full: Full::default(),
        }
    }
}

#[async_trait]
impl LoadBalancerDriver for HetznerBalancers {
    type Observed = Observed;
    type Step = Step;

    async fn observe(&self, wish: Wish<'_>) -> Result<Observed, CloudError> {
        self.observe_one(wish).await
    }

    fn plan(&self, wish: Wish<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
        plan::plan(wish, have, &self.facts)
    }

    async fn execute(
        &self,
        wish: Wish<'_>,
        _have: &Observed,
        step: &Step,
    ) -> Result<StepOutcome, CloudError> {
        let (outcome, _) = self.carry_out(wish, step).await?;
        Ok(outcome)
    }

    async fn execute_and_observe(
        &self,
        wish: Wish<'_>,
        _have: &Observed,
        step: &Step,
    ) -> Result<(StepOutcome, Option<Observed>), CloudError> {
        self.carry_out(wish, step).await
    }

    fn report(&self, wish: Wish<'_>, have: &Observed) -> Report {
        report(wish, have, &self.facts)
    }

    fn profile(&self, _claim: &Claim) -> BalancerProfile {
        BalancerProfile::with_features(Features {
            targets_by_address: true,
            proxy_protocol: ProxyProtocols::V2,
            internal: true,
            dual_stack: true,
            ..Features::default()
        })
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        unknown_annotations(key::PREFIX, &key::docs(), given)
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        key::NODE_SELECTOR.get(annotations)
    }

    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        match self.observe_all(specs).await {
            Ok(observed) => observed,
            Err(error) => specs.iter().map(|_| Err(error.retold())).collect(),
        }
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let Some(cluster) = &self.facts.cluster else {
            return Err(CloudError::unsupported(
                "list owned load balancers",
                "the cluster's UID is not known",
            ));
        };
        let marked = self.api.balancers_with(CLUSTER_UID, cluster).await?;
        // What is protected stays on purpose.
        let marked = marked.into_iter().filter(|b| !b.protection.delete);
        let owned = marked.map(|balancer| OwnedResource {
            kind: ResourceKind::LoadBalancer,
            id: balancer.id.to_string(),
            service: marks::service(&balancer.labels),
            name: balancer.name,
        });
        Ok(owned.collect())
    }
}

/// What an observation says about the wish. Pure.
fn report(wish: Wish<'_>, have: &Observed, facts: &Facts) -> Report {
    let Wish::Present(spec) = wish else {
        let ours = have.found.ours.iter();
        let kept = match wish {
            Wish::Released(_) => ours.map(released).collect(),
            _ => ours
                .filter(|b| b.protection.delete)
                .map(protected)
                .collect(),
        };
        return Report {
            kept,
            ..Report::default()
        };
    };
    let Some(balancer) = have.found.ours.first() else {
        return Report::default();
    };
    let asked = Desired::of(spec, &facts.defaults);
    Report {
        unmet: unmet(spec, &asked, have, facts),
        status: LoadBalancerStatus::of(balancer.id.to_string(), ingress(balancer, &asked)),
        busy: busy(wish, have, balancer, facts),
        ..Report::default()
    }
}

/// What cannot be met of what is asked of a balancer that is there. Pure.
fn unmet(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Vec<Failures> {
    let unread = asked.unread.iter().map(|(_, why)| why.to_string());
    let kind = match &have.kind {
        WantedType::Unobtainable(why) => Some(why.clone()),
        WantedType::AsItIs | WantedType::Change(_) => None,
    };
    let certificate = match &have.certificates {
        Certificates::Unobtainable(why) => Some(why.clone()),
        _ => None,
    };
    let outside = have.outside.iter().map(|id| {
        format!(
            "server {id} is not in network {}, so it is reached by its public address as before",
            facts.network.unwrap_or_default()
        )
    });
    let wrong = unread
        .chain(without_network(asked, facts))
        .chain(without_node_port(spec))
        .chain(outside);
    let wrong = wrong.map(Failures::invalid);
    wrong.chain(kind).chain(certificate).collect()
}

/// Where clients find it: the public addresses, then the private ones.
fn ingress(balancer: &LoadBalancer, asked: &Desired) -> Vec<Ingress> {
    if let Some(hostname) = &asked.hostname {
        return vec![Ingress::Hostname(hostname.clone())];
    }
    let mode = if asked.proxy_protocol == Some(true) {
        IpMode::Proxy
    } else {
        IpMode::Vip
    };
    let public = &balancer.public_net;
    let ipv4 = public.ipv4.ip.filter(|_| public.enabled);
    let ipv6 = public
        .ipv6
        .ip
        .filter(|_| public.enabled && asked.ipv6_ingress);
    let private = balancer.private_net.iter().map(|net| net.ip);
    let private = private.filter(|_| asked.private_ingress);
    let addresses = ipv4.into_iter().chain(ipv6).chain(private);
    addresses
        .map(|ip: IpAddr| Ingress::Ip { ip, mode })
        .collect()
}

/// A balancer without its address is being built. A certificate is only waited for when there is nothing
/// else to do.
fn busy(wish: Wish<'_>, have: &Observed, balancer: &LoadBalancer, facts: &Facts) -> Option<Busy> {
    let public = &balancer.public_net;
    if public.enabled && public.ipv4.ip.is_none() {
        return Some(Busy {
            why: format!("load balancer {} is being built", balancer.id),
            check_after: BUILDING,
        });
    }
    match &have.certificates {
        Certificates::Pending(name)
            if plan::plan(wish, have, facts).is_ok_and(|p| p.is_empty()) =>
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
