//! Reading what a balancer needs besides itself: security groups, subnets, instances.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, LoadBalancerSpec, Priority};

use super::AwsBalancers;
use super::classic;
use super::find::Shared;
use super::groups::node_groups;
use super::nlb;
use super::observe::{OPERATION, Observed};
use super::subnets::Network;
use super::targets::{Reach, TargetType, address_of_instance, refusal};
use crate::client::Call;
use crate::config::BalancerType;
use crate::id::AwsId;
use crate::tags::CLUSTER_PREFIX;
use crate::wire::{Ec2Instance, SecurityGroup};

const TARGET_MISSING: &str = "TargetNotFound";
const TARGET_REFUSED: &str = "TargetRefused";

/// How old the list of instances may be that targets are found in. An unknown one is looked for at once.
const INSTANCES_FRESH: Duration = Duration::from_mins(10);
const INSTANCES_FRESH_FOR_NEW: Duration = Duration::from_secs(10);

/// How old the list of subnets and route tables may be.
const NETWORK_FRESH: Duration = Duration::from_mins(2);

impl AwsBalancers {
    /// Groups of the cluster, and the one of the balancer's name if its tags are missing.
    pub(super) async fn security_groups(
        &self,
        have: &Observed,
        shared: Option<&Shared>,
        is_present: bool,
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        let mut groups = match shared {
            Some(shared) => shared.groups.clone(),
            None => self.tagged_groups().await?,
        };
        let name = match have.kind {
            BalancerType::Classic => {
                Some(classic::group_name(&have.service.default_balancer_name()))
            }
            BalancerType::Nlb if self.facts.manages_nlb_groups => {
                Some(nlb::group_name(&have.service, &self.facts.cluster_name))
            }
            BalancerType::Nlb => None,
        };
        let Some(name) = name else {
            return Ok(groups);
        };
        if groups.iter().any(|group| group.name == name) {
            return Ok(groups);
        }
        let classic = have
            .classic
            .as_ref()
            .map(|classic| &classic.balancer.groups);
        let network = have
            .network
            .as_ref()
            .map(|network| &network.balancer.groups);
        if let Some(attached) = classic.or(network) {
            if !self.add_unknown(attached, &mut groups).await? {
                let message = "a load balancer has security groups that are not shown";
                return Err(CloudError::new(OPERATION, ErrorKind::Incomplete, message));
            }
            return Ok(groups);
        }
        if !is_present {
            return Ok(groups);
        }
        let call = Call::ec2("DescribeSecurityGroups")
            .filter("group-name", [&name])
            .filter("vpc-id", [&self.account.vpc]);
        let found: Vec<SecurityGroup> = self.ec2_list(call).await?;
        for group in found {
            let mut keys = group.tags.keys();
            if keys.any(|key| key.starts_with(CLUSTER_PREFIX)) {
                let message = format!("security group {name} ({}) is of another cluster", group.id);
                return Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message));
            }
            groups.push(group);
        }
        Ok(groups)
    }

    /// Adds groups that are not known, and says whether all of them were shown. A balancer keeps its groups from being
    /// deleted, so a list that lacks one is not to be trusted.
    async fn add_unknown(
        &self,
        ids: &BTreeSet<String>,
        known: &mut Vec<SecurityGroup>,
    ) -> Result<bool, CloudError> {
        let is_new = |id: &&String| !known.iter().any(|group| group.id == **id);
        let new: Vec<_> = ids.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(true);
        }
        let call = Call::ec2("DescribeSecurityGroups").filter("group-id", &new);
        let found = self.ec2_list(call).await?;
        let is_complete = found.len() >= new.len();
        known.extend(found);
        Ok(is_complete)
    }

    pub(super) async fn tagged_groups(&self) -> Result<Vec<SecurityGroup>, CloudError> {
        let call = Call::ec2("DescribeSecurityGroups")
            .filter("vpc-id", [&self.account.vpc])
            .filter("tag-key", self.facts.cluster.keys());
        let mut groups: Vec<SecurityGroup> = self.ec2_list(call).await?;
        groups.retain(|group| self.facts.cluster.is_tagged(&group.tags));
        Ok(groups)
    }

    async fn ec2_list(&self, call: Call) -> Result<Vec<SecurityGroup>, CloudError> {
        let api = &self.account.api;
        api.all_of_ec2(call, "securityGroupInfo/item", Priority::Normal)
            .await
    }

    /// What the Service refers to: subnets, instances and their groups.
    pub(super) async fn complete(
        &self,
        spec: &LoadBalancerSpec,
        have: &mut Observed,
    ) -> Result<(), CloudError> {
        let Some(mut desired) = have.desired.clone() else {
            return Ok(());
        };
        let read = || Network::read(&self.account);
        let network = self.network.no_older_than(NETWORK_FRESH, read).await?;
        let own = self.account.own_subnet.as_ref();
        let present = have.network.as_ref().map(|it| &it.balancer.subnets);
        have.subnets = network.place(present, &desired.subnets, || {
            network.discover(&self.facts.cluster, own, desired.is_internal)
        });
        let instances = self.instances_for(spec).await?;
        let network_state = have.network.as_ref();
        let present = network_state.and_then(TargetType::of);
        let reach = Reach {
            instances: &instances,
            subnets: network.subnets(),
            present,
            refusal: refusal(
                &desired,
                present,
                network_state,
                self.facts.manages_nlb_groups,
            ),
        };
        have.targets = reach.targets(spec);
        self.fit(&mut desired, have).await?;
        have.desired = Some(desired.clone());
        if !self.facts.disable_ingress {
            self.find_node_groups(&instances, have).await?;
        }
        self.find_others(have).await?;
        if !have.targets.missing.is_empty() {
            let nodes = have.targets.missing.join(", ");
            let message = format!(
                "these Nodes are no targets: their instances are not there, or lack the tag {}: {nodes}",
                self.facts.cluster.key()
            );
            self.events.warn(&have.service, TARGET_MISSING, message);
        }
        for (node, why) in &have.targets.refused {
            let message = format!("{node} gets no traffic from the load balancer: {why}");
            self.events.warn(&have.service, TARGET_REFUSED, message);
        }
        let unsupported = &desired.unsupported;
        self.events.unsupported(&have.service, "AWS", unsupported);
        Ok(())
    }

    /// The instances of the cluster, listed again if a target is not among them.
    async fn instances_for(
        &self,
        spec: &LoadBalancerSpec,
    ) -> Result<Arc<Vec<Ec2Instance>>, CloudError> {
        let known = self.account.no_older_than(INSTANCES_FRESH).await?;
        let mut ids = spec.targets.values().filter_map(|target| {
            let id = target.node.provider_id.as_ref()?;
            AwsId::read_instance(id)
        });
        if ids.all(|id| known.iter().any(|instance| instance.id == id)) {
            return Ok(known);
        }
        self.account.no_older_than(INSTANCES_FRESH_FOR_NEW).await
    }

    async fn find_node_groups(
        &self,
        instances: &[Ec2Instance],
        have: &mut Observed,
    ) -> Result<(), CloudError> {
        let wanted = &have.targets.wanted.places;
        let is_target = |instance: &&Ec2Instance| {
            let address = address_of_instance(instance);
            wanted.contains_key(&instance.id) || address.is_some_and(|it| wanted.contains_key(it))
        };
        let of_targets = instances.iter().filter(is_target);
        have.targets.node_groups = node_groups(of_targets, &have.groups, &self.facts.cluster);
        let Ok(ids) = &have.targets.node_groups else {
            return Ok(());
        };
        self.add_unknown(ids, &mut have.groups).await.map(drop)
    }

    /// Nodes may have let a balancer in by a group without the cluster's tag, if it is their only one.
    pub(super) async fn add_groups_of_nodes(&self, have: &mut Observed) -> Result<(), CloudError> {
        if self.facts.disable_ingress {
            return Ok(());
        }
        let instances = self.account.no_older_than(INSTANCES_FRESH).await?;
        let only = instances
            .iter()
            .filter_map(|it| match it.groups.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            });
        let only = only.collect();
        self.add_unknown(&only, &mut have.groups).await.map(drop)
    }
}
