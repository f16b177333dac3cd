//! Load balancers: observe, plan, apply.

mod apply;
mod classic;
mod classic_plan;
mod desired;
mod find;
mod groups;
mod limits;
mod nlb;
mod nlb_plan;
mod nlb_remove;
mod observe;
mod owned;
mod references;
mod security;
mod step;
mod subnets;
mod targets;
mod wrong;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, CloudError, DesiredState, Executed, Failures, Features,
    HealthCheckPolicy, LabelSelector, LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus,
    OwnedResource, Problem, ProviderContext, ProxyProtocols, Report, UnknownAnnotation,
};
use cloudkeel_toolkit::{EventRecorder, SharedRead, ingress, one_each};

use self::desired::{Desired, kind_of};
use self::limits::Quotas;
use self::observe::{NetworkState, Observed};
use self::step::Step;
use self::subnets::Network;
use crate::account::Account;
use crate::annotations as key;
use crate::config::{BalancerType, Config, ProbeMode};
use crate::tags::{ClusterTag, SERVICE};

/// What planning has to know besides the desired state.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    cluster: ClusterTag,
    /// The name of the cluster, as the flag has it.
    cluster_name: String,
    region: String,
    vpc: String,
    default_type: BalancerType,
    elb_security_group: Option<String>,
    disable_ingress: bool,
    manages_nlb_groups: bool,
    probe_mode: Option<ProbeMode>,
    shared_probe: HealthCheckPolicy,
}

impl Facts {
    /// The keys of the tags that make something a Service's.
    fn owner_keys(&self) -> Vec<String> {
        let service = SERVICE.to_owned();
        self.cluster.keys().into_iter().chain([service]).collect()
    }
}

/// The balancers of the account.
pub(crate) struct AwsBalancers {
    account: Arc<Account>,
    facts: Facts,
    events: Arc<EventRecorder>,
    network: SharedRead<Network>,
    classic_quotas: SharedRead<Quotas>,
    network_quotas: SharedRead<Quotas>,
    /// Whether the health of instances may not be read.
    is_health_denied: AtomicBool,
}

impl AwsBalancers {
    pub(crate) fn new(
        account: &Arc<Account>,
        config: &Config,
        context: &ProviderContext,
        events: &Arc<EventRecorder>,
    ) -> Self {
        Self {
            account: Arc::clone(account),
            facts: Facts {
                cluster: account.cluster.clone(),
                cluster_name: context.cluster.name.clone(),
                region: account.region.clone(),
                vpc: account.vpc.clone(),
                default_type: config.balancer_type,
                elb_security_group: config.elb_security_group.clone(),
                disable_ingress: config.disable_security_group_ingress,
                manages_nlb_groups: config.nlb_group_mode.is_some(),
                probe_mode: config.probe_mode,
                shared_probe: HealthCheckPolicy::KubeProxy {
                    port: config.probe_port,
                    path: config.probe_path.clone(),
                },
            },
            events: Arc::clone(events),
            network: SharedRead::default(),
            classic_quotas: SharedRead::default(),
            network_quotas: SharedRead::default(),
            is_health_denied: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl LoadBalancerDriver for AwsBalancers {
    type Observed = Observed;
    type Step = Step;

    async fn observe(&self, desired: DesiredState<'_>) -> Result<Observed, CloudError> {
        self.observe_one(desired, None).await
    }

    fn plan(&self, desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
        let name = have.service.default_balancer_name();
        let (facts, is_classic) = (&self.facts, have.kind == BalancerType::Classic);
        match (desired, &have.desired) {
            (DesiredState::Present(_), None) => Ok(Vec::new()),
            _ if have.is_foreign => Ok(Vec::new()),
            (DesiredState::Present(_), Some(desired)) if is_classic => {
                classic_plan::plan(desired, have, facts)
            }
            (DesiredState::Present(_), Some(desired)) => nlb_plan::plan(desired, have, facts),
            (DesiredState::Absent(_), _) if is_classic => Ok(classic_plan::remove(have, &name)),
            (DesiredState::Absent(_), _) => Ok(nlb_remove::remove(have, &name, facts)),
            (DesiredState::Released(_), _) if is_classic => {
                Ok(classic_plan::release(have, &name, facts))
            }
            (DesiredState::Released(_), _) => Ok(nlb_remove::release(have, facts)),
        }
    }

    async fn execute(
        &self,
        desired: DesiredState<'_>,
        _have: &Observed,
        step: &Step,
    ) -> Executed<Observed> {
        Ok((self.execute_step(desired, step).await?, None))
    }

    fn report(&self, desired: DesiredState<'_>, have: &Observed) -> Report {
        report(desired, have)
    }

    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let kind = kind_of(balancer_ref, &self.facts).unwrap_or_default();
        let is_classic = kind == BalancerType::Classic;
        let features = Features {
            udp: !is_classic,
            targets_by_address: !is_classic,
            source_ranges: true,
            proxy_protocol: if is_classic {
                ProxyProtocols::V1
            } else {
                ProxyProtocols::None
            },
            internal: true,
            healthy_threshold: true,
            ..Features::default()
        };
        BalancerProfile {
            features,
            health_check: match self.facts.probe_mode {
                Some(ProbeMode::Shared) => self.facts.shared_probe.clone(),
                _ => HealthCheckPolicy::LocalAware,
            },
            limits: limits::defaults(kind),
        }
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        self.list_owned().await
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        key::unknown(given)
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        key::node_selector(annotations)
    }

    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        one_each(specs, self.observe_all(specs).await)
    }
}

/// What an observation says about the desired state. Pure.
fn report(desired: DesiredState<'_>, have: &Observed) -> Report {
    let classic = have.classic.as_ref().map(|classic| {
        let balancer = &classic.balancer;
        (
            balancer.name.clone(),
            balancer.dns_name.clone(),
            balancer.is_internal,
        )
    });
    let network = have.network.as_ref().map(|network| {
        let balancer = &network.balancer;
        // One that is impaired still serves: it lacks the capacity to grow.
        let is_usable = balancer.state != "failed";
        let name = balancer.dns_name.clone();
        let name = Some(name).filter(|_| is_usable).unwrap_or_default();
        (balancer.arn.clone(), name, balancer.is_internal)
    });
    let Some((id, dns_name, is_internal)) = classic.or(network) else {
        return Report::default();
    };
    let is_protected = have
        .network
        .as_ref()
        .is_some_and(NetworkState::is_protected);
    let kept = match desired {
        DesiredState::Released(_) => vec![format!("load balancer {id}")],
        _ if is_protected => vec![format!("load balancer {id} is protected from deletion")],
        _ => Vec::new(),
    };
    let Some(asked) = &have.desired else {
        return Report::keeping(kept);
    };
    let published = asked.hostname.clone().or(Some(dns_name));
    let published = published.filter(|name| !name.is_empty());
    Report {
        status: LoadBalancerStatus {
            health: targets::health(have),
            ..LoadBalancerStatus::of(id, ingress(published.as_ref(), [], false))
        },
        unmet: unmet(asked, have, is_internal),
        ..Report::default()
    }
}

/// What cannot be met of what is asked of a balancer that is there.
fn unmet(asked: &Desired, have: &Observed, is_internal: bool) -> Vec<Failures> {
    let scheme = (asked.is_internal != is_internal).then(|| {
        let now = if is_internal {
            "internal"
        } else {
            "internet-facing"
        };
        format!(
            "{}: an {now} load balancer cannot become another kind: delete the Service first",
            key::INTERNAL.name()
        )
    });
    let listeners = match have.kind {
        BalancerType::Classic => classic::listeners(asked).err(),
        BalancerType::Nlb => None,
    };
    let groups = have.targets.node_groups.as_ref().err().cloned();
    let subnets = have.subnets.as_ref().err().cloned();
    let ranges = targets::unmet_ranges(asked, have);
    let wrong = asked.messages().map(str::to_owned);
    let wrong = wrong
        .chain(scheme)
        .chain(listeners)
        .chain(groups)
        .chain(subnets)
        .chain(ranges);
    let wrong = wrong.map(Failures::invalid);
    wrong.chain(have.over_limits.iter().cloned()).collect()
}

#[cfg(test)]
mod tests;
