//! Load balancers: observe, plan, apply.

mod apply;
mod desired;
mod marks;
mod observe;
mod plan;
mod step;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, Busy, Claim, CloudError, Features, HealthCheckPolicy, Ingress, IpMode, Limits,
    LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus, OwnedResource, Patience,
    ProxyProtocols, Report, ResourceKind, SharedEvents, SharedList, StepOutcome, UnknownAnnotation,
    Wish, unknown_annotations,
};

use self::apply::Versions;
pub use self::marks::{CLUSTER_UID, SERVICE, SERVICE_UID};
use self::observe::Observed;
use self::step::Step;
use crate::annotations::{self, BALANCER_ID};
use crate::client::Api;
use crate::wire::{self, Balancer, BalancerState};

/// What planning has to know besides the wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Our project.
    pub(crate) project: String,
    /// What the cloud can do.
    pub(crate) features: wire::Features,
    /// What marks this cluster's balancers.
    pub(crate) cluster: Option<String>,
}

/// The balancers of the project.
pub(crate) struct LocalBalancers {
    api: Api,
    facts: Facts,
    events: SharedEvents,
    poll_interval: Duration,
    versions: Versions,
    list: SharedList<Balancer>,
    patience: Patience,
}

/// As many balancers as the cloud gives on one page.
const PER_PAGE: usize = 50;

impl LocalBalancers {
    pub(crate) fn new(
        api: Api,
        cluster: Option<String>,
        events: SharedEvents,
        poll_interval: Duration,
    ) -> Self {
        let facts = Facts {
            project: api.home().project.clone(),
            features: api.home().features,
            cluster,
        };
        Self {
            api,
            facts,
            events,
            poll_interval,
            versions: Versions::default(),
            list: SharedList::in_pages_of(PER_PAGE),
            patience: Patience::with_missing_machines(),
        }
    }
}

#[async_trait]
impl LoadBalancerDriver for LocalBalancers {
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
        report(wish, have, self.poll_interval)
    }

    fn profile(&self, _claim: &Claim) -> BalancerProfile {
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
        };
        BalancerProfile {
            features,
            health_check: HealthCheckPolicy::LocalAware,
            limits: Limits::default(),
        }
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        unknown_annotations(annotations::PREFIX, &annotations::docs(), given)
    }

    fn points_at_balancer(&self, claim: &Claim) -> bool {
        claim.points_at_balancer() || claim.annotations.contains_key(BALANCER_ID.name())
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
                "the cluster's UID is not known: set `clusterMark` or let it be read",
            ));
        };
        let marked = self.api.balancers_with_label(CLUSTER_UID, cluster).await?;
        let owned = marked.into_iter().map(|balancer| OwnedResource {
            kind: ResourceKind::LoadBalancer,
            id: balancer.id.to_string(),
            service: marks::service(&balancer.labels),
            name: balancer.name,
        });
        Ok(owned.collect())
    }
}

/// What an observation says about the wish. Pure.
fn report(wish: Wish<'_>, have: &Observed, poll_interval: Duration) -> Report {
    // What is not ours yet is nothing to show.
    let Some(balancer) = have.found.ours.first() else {
        return Report::default();
    };
    let id = balancer.id.to_string();
    let mut report = Report {
        status: LoadBalancerStatus::of(&id, ingress(balancer)),
        busy: have.found.ours.iter().find_map(|b| busy(b, poll_interval)),
        kept: kept(wish, &have.found.ours),
        ..Report::default()
    };
    let written = wish.claim().annotations.get(BALANCER_ID.name());
    if matches!(wish, Wish::Present(_)) && written != Some(&id) {
        let key = BALANCER_ID.name();
        report.changes.annotate(key, id);
    }
    report
}

/// What stays although the Service goes.
fn kept(wish: Wish<'_>, ours: &[Balancer]) -> Vec<String> {
    let stays = |balancer: &&Balancer| match wish {
        Wish::Present(_) => false,
        Wish::Absent(_) => balancer.protected,
        Wish::Released(_) => true,
    };
    let name = |balancer: &Balancer| format!("balancer {} ({})", balancer.id, balancer.name);
    ours.iter().filter(stays).map(name).collect()
}

fn ingress(balancer: &Balancer) -> Vec<Ingress> {
    if let Some(hostname) = &balancer.hostname {
        return vec![Ingress::Hostname(hostname.clone())];
    }
    let mode = match balancer.proxy_protocol {
        Some(_) => IpMode::Proxy,
        None => IpMode::Vip,
    };
    let addresses = balancer.addresses.iter();
    addresses.map(|ip| Ingress::Ip { ip: *ip, mode }).collect()
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
