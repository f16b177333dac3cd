//! What is there, whose it is, and what the Service asks for.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, ErrorKind, Failures, LoadBalancerDriver as _, ServiceRef,
};

use super::AwsBalancers;
use super::desired::{Desired, kind_of};
use super::find::Shared;
use super::targets::Targets;
use crate::config::BalancerType;
use crate::wire::classic::{ClassicAttributes, ClassicBalancer, InstanceHealth};
use crate::wire::network::{GroupTarget, NetworkBalancer, NetworkListener, TargetGroup};
use crate::wire::{SecurityGroup, Subnet, Tags};

pub(super) const OPERATION: &str = "observe load balancer";
const NO_TAGS: &str = "TagsNotReadable";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observed {
    pub(super) service: ServiceRef,
    pub(super) kind: BalancerType,
    /// Whether a balancer has the Service's name and is not ours: what belongs to it is not touched either.
    pub(super) is_foreign: bool,
    /// What the Service asks for, if it is not being deleted.
    pub(super) desired: Option<Desired>,
    pub(super) classic: Option<Classic>,
    pub(super) network: Option<NetworkState>,
    /// Groups with the cluster's tag, and those of Nodes that are targets.
    pub(super) groups: Vec<SecurityGroup>,
    /// Where the balancer should be, or why that is not known.
    pub(super) subnets: Result<Vec<Subnet>, String>,
    pub(super) targets: Targets,
    /// Target groups of the Service that no listener leads to any more.
    pub(super) leftovers: Vec<TargetGroup>,
    /// The ports that the groups of other balancers check, if they were listed.
    pub(super) checked_by_others: Option<BTreeSet<u16>>,
    /// What is asked for beyond the limits of the account.
    pub(super) over_limits: Vec<Failures>,
}

/// A classic balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Classic {
    pub(super) balancer: ClassicBalancer,
    pub(super) attributes: ClassicAttributes,
    /// `None` if they may not be read.
    pub(super) tags: Option<Tags>,
    /// Empty if it may not be read.
    pub(super) health: Vec<InstanceHealth>,
}

/// A network balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetworkState {
    pub(super) balancer: NetworkBalancer,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) listeners: Vec<NetworkListener>,
    pub(super) groups: Vec<GroupState>,
    pub(super) vpc: String,
    /// The tags of its parts.
    pub(super) wanted_tags: Tags,
}

impl NetworkState {
    /// Whether the operator protects it from deletion.
    pub(super) fn is_protected(&self) -> bool {
        let value = self.attributes.get("deletion_protection.enabled");
        value.is_some_and(|value| value == "true")
    }
}

/// A target group with its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupState {
    pub(super) group: TargetGroup,
    /// Without those that are on their way out.
    pub(super) targets: Vec<GroupTarget>,
    /// Read only if the Service asks for some.
    pub(super) attributes: BTreeMap<String, String>,
}

impl Observed {
    pub(super) fn new(balancer_ref: &BalancerRef, kind: BalancerType) -> Self {
        Self {
            service: balancer_ref.service.clone(),
            kind,
            is_foreign: false,
            desired: None,
            classic: None,
            network: None,
            groups: Vec::new(),
            subnets: Ok(Vec::new()),
            targets: Targets::default(),
            leftovers: Vec::new(),
            checked_by_others: None,
            over_limits: Vec::new(),
        }
    }

    const fn has_balancer(&self) -> bool {
        self.classic.is_some() || self.network.is_some()
    }
}

impl AwsBalancers {
    pub(super) async fn observe_one(
        &self,
        desired: DesiredState<'_>,
        shared: Option<&Shared>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        // All that such a Service may have left are target groups, whose tags name it.
        if balancer_ref.service.uid.is_empty() {
            let mut have = Observed::new(balancer_ref, BalancerType::Nlb);
            self.complete_network(&mut have, None, shared, false)
                .await?;
            return Ok(have);
        }
        let kind = match (kind_of(balancer_ref, &self.facts), desired) {
            (Ok(kind), _) => kind,
            (Err(error), DesiredState::Present(_)) => return Err(error),
            // Another controller's: there is nothing of ours.
            (Err(_), _) => return Ok(Observed::new(balancer_ref, BalancerType::Classic)),
        };
        let have = self.observe_kind(kind, desired, shared).await?;
        let is_absent = matches!(desired, DesiredState::Absent(_));
        // Nothing says which kind was made, as with one that is left over.
        let is_kind_open = is_absent && balancer_ref.ingress.is_empty();
        if is_kind_open && !have.has_balancer() && self.plan(desired, &have)?.is_empty() {
            return self.observe_kind(kind.other(), desired, shared).await;
        }
        Ok(have)
    }

    async fn observe_kind(
        &self,
        kind: BalancerType,
        desired: DesiredState<'_>,
        shared: Option<&Shared>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let mut have = Observed::new(balancer_ref, kind);
        if let DesiredState::Present(spec) = desired {
            have.desired = Some(Desired::of(spec, &self.facts)?);
        }
        let is_present = matches!(desired, DesiredState::Present(_));
        let name = balancer_ref.service.default_balancer_name();
        match kind {
            BalancerType::Classic => {
                let found = self.find_classic(&name, shared).await?;
                let tags = |classic: &Classic| classic.tags.clone();
                have.classic = self.ours(found, tags, &mut have.is_foreign, desired)?;
                if let Some(classic) = have.classic.as_mut().filter(|_| is_present) {
                    classic.health = self.instance_health(&classic.balancer).await?;
                }
            }
            BalancerType::Nlb => {
                let found = self.find_network(&name, shared).await?;
                let tags = |(_, tags): &(NetworkBalancer, Option<Tags>)| tags.clone();
                let found = self.ours(found, tags, &mut have.is_foreign, desired)?;
                let balancer = found.map(|(balancer, _)| balancer);
                self.complete_network(&mut have, balancer, shared, is_present)
                    .await?;
            }
        }
        have.groups = self.security_groups(&have, shared, is_present).await?;
        if matches!(desired, DesiredState::Absent(_)) {
            self.add_groups_of_nodes(&mut have).await?;
        }
        if let DesiredState::Present(spec) = desired {
            self.complete(spec, &mut have).await?;
        }
        Ok(have)
    }

    /// What is ours of what was found by name. The UID of the Service is in the name; the cluster's tag says
    /// that this cluster made it.
    fn ours<T>(
        &self,
        found: Option<T>,
        tags_of: impl Fn(&T) -> Option<Tags>,
        is_foreign: &mut bool,
        desired: DesiredState<'_>,
    ) -> Result<Option<T>, CloudError> {
        let Some(found) = found else {
            return Ok(None);
        };
        let service = &desired.balancer_ref().service;
        let Some(tags) = tags_of(&found) else {
            let message = "the permission elasticloadbalancing:DescribeTags is missing: load balancers are taken to be \
                           ours by their names alone, and their tags are not repaired";
            self.events.warn(service, NO_TAGS, message);
            return Ok(Some(found));
        };
        if self.facts.cluster.is_tagged(&tags) {
            return Ok(Some(found));
        }
        *is_foreign = true;
        if desired.spec().is_none() {
            return Ok(None);
        }
        let (tag, name) = (self.facts.cluster.key(), service.default_balancer_name());
        let message = format!(
            "load balancer {name} has the name of {service}'s but not the tag {tag}: delete it, or tag it with \
             {tag}=owned"
        );
        Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message))
    }
}
