//! Load balancers: observe, plan, apply.

mod apply;
mod certificate;
mod desired;
mod marks;
mod observe;
mod plan;
mod service;
mod step;
mod targets;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Busy, Clock, CloudError, Features, HealthCheckPolicy, Ingress, IpMode, LoadBalancerDriver,
    LoadBalancerSpec, LoadBalancerStatus, OwnedBalancer, ProviderContext, Report, StepOutcome,
    Wish,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::apply::Refusals;
use self::certificate::Certificates;
use self::desired::Desired;
pub use self::marks::{CLUSTER_UID, SERVICE_UID};
use self::observe::Observed;
use self::step::Step;
use crate::client::{Api, Login};
use crate::config::{BalancerDefaults, Config};
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

/// The balancers of the project.
pub(crate) struct HetznerBalancers {
    api: Api,
    facts: Facts,
    robot: Login,
    clock: Arc<dyn Clock>,
    teller: Arc<Teller>,
    types: Mutex<Option<(Instant, Arc<Vec<BalancerType>>)>>,
    refusals: Refusals,
}

impl HetznerBalancers {
    pub(crate) fn new(
        api: &Api,
        config: &Config,
        network: Option<u64>,
        robot: Login,
        context: &ProviderContext,
        teller: &Arc<Teller>,
    ) -> Self {
        Self {
            api: api.clone(),
            facts: Facts {
                network,
                defaults: config.load_balancers.clone(),
                cluster: context.cluster.uid.clone(),
            },
            robot,
            clock: Arc::clone(&context.clock),
            teller: Arc::clone(teller),
            types: Mutex::default(),
            refusals: Refusals::default(),
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

    async fn execute(&self, wish: Wish<'_>, step: &Step) -> Result<StepOutcome, CloudError> {
        self.carry_out(wish, step).await
    }

    fn report(&self, wish: Wish<'_>, have: &Observed) -> Report {
        report(wish, have, &self.facts)
    }

    fn features(&self) -> Features {
        Features {
            targets_by_address: true,
            proxy_protocol: true,
            internal: true,
            dual_stack: true,
            ..Features::default()
        }
    }

    fn health_checks(&self) -> HealthCheckPolicy {
        HealthCheckPolicy::NodePort
    }

    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        match self.observe_all(specs).await {
            Ok(observed) => observed,
            Err(error) => specs.iter().map(|_| Err(error.retold())).collect(),
        }
    }

    async fn owned(&self) -> Result<Vec<OwnedBalancer>, CloudError> {
        let Some(cluster) = &self.facts.cluster else {
            return Err(CloudError::unsupported(
                "list owned load balancers",
                "the cluster's UID is not known",
            ));
        };
        let marked = self.api.balancers_with(CLUSTER_UID, cluster).await?;
        let owned = marked.into_iter().map(|balancer| OwnedBalancer {
            id: balancer.id.to_string(),
            service: marks::service(&balancer.labels),
            name: balancer.name,
        });
        Ok(owned.collect())
    }
}

/// What an observation says about the wish. Pure.
fn report(wish: Wish<'_>, have: &Observed, facts: &Facts) -> Report {
    let (Wish::Present(spec), Some(balancer)) = (wish, have.found.ours.first()) else {
        return Report::default();
    };
    // What is wrong with the annotations is told by the plan.
    let Ok(asked) = Desired::of(spec, &facts.defaults) else {
        return Report::default();
    };
    Report {
        status: LoadBalancerStatus {
            ingress: ingress(balancer, &asked),
            id: Some(balancer.id.to_string()),
        },
        busy: busy(wish, have, balancer, facts),
        ..Report::default()
    }
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
