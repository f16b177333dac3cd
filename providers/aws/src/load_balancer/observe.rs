//! What is there, whose it is, and what the Service asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, ErrorKind, LoadBalancerSpec, Priority, ServiceRef,
};
use cloudkeel_toolkit::DesiredTargets;

use super::AwsBalancers;
use super::classic;
use super::desired::{Desired, kind_of};
use super::groups::node_groups;
use super::nlb;
use super::subnets::Network;
use crate::client::{Call, list_at};
use crate::config::BalancerType;
use crate::id::AwsId;
use crate::tags::SERVICE;
use crate::wire::classic::{ClassicAttributes, ClassicBalancer};
use crate::wire::network::{self, NetworkBalancer, NetworkListener, TargetGroup, TargetHealth};
use crate::wire::{Ec2Instance, SecurityGroup, Subnet, Tags, tags_at};

const OPERATION: &str = "observe load balancer";
const UNSUPPORTED_OPTION: &str = "UnsupportedOption";
const TARGET_MISSING: &str = "TargetNotFound";
const NO_TAGS: &str = "TagsNotReadable";

/// How old the list of instances may be that targets are found in. An unknown one is looked for at once.
const INSTANCES_FRESH: Duration = Duration::from_mins(10);
const INSTANCES_FRESH_FOR_NEW: Duration = Duration::from_secs(10);

/// How old the list of subnets and route tables may be.
const NETWORK_FRESH: Duration = Duration::from_mins(2);

/// As many resources as one call for tags takes.
const TAGS_BATCH: usize = 20;

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
}

/// A classic balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Classic {
    pub(super) balancer: ClassicBalancer,
    pub(super) attributes: ClassicAttributes,
    /// `None` if they may not be read.
    pub(super) tags: Option<Tags>,
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
    pub(super) targets: BTreeSet<String>,
    /// Read only if the Service asks for some.
    pub(super) attributes: BTreeMap<String, String>,
}

/// Nodes as targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) wanted: DesiredTargets<String>,
    /// The security groups that have to let the balancer in, or why they are not known.
    pub(super) node_groups: Result<BTreeSet<String>, String>,
    /// Nodes whose instance is not there.
    pub(super) missing: Vec<String>,
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
            targets: Targets {
                wanted: DesiredTargets::default(),
                node_groups: Ok(BTreeSet::new()),
                missing: Vec::new(),
            },
            leftovers: Vec::new(),
        }
    }
}

/// What is read for many Services at once.
#[derive(Default)]
pub(super) struct Shared {
    classic: Vec<ClassicBalancer>,
    network: Vec<NetworkBalancer>,
    /// By name or ARN; `None` if they may not be read.
    tags: Option<BTreeMap<String, Tags>>,
    target_groups: Vec<TargetGroup>,
    groups: Vec<SecurityGroup>,
}

impl AwsBalancers {
    pub(super) async fn observe_one(
        &self,
        desired: DesiredState<'_>,
        shared: Option<&Shared>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let kind = match (kind_of(balancer_ref, &self.facts), desired) {
            (Ok(kind), _) => kind,
            (Err(error), DesiredState::Present(_)) => return Err(error),
            // Another controller's: there is nothing of ours.
            (Err(_), _) => return Ok(Observed::new(balancer_ref, BalancerType::Classic)),
        };
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

    async fn find_classic(
        &self,
        name: &str,
        shared: Option<&Shared>,
    ) -> Result<Option<Classic>, CloudError> {
        let (balancer, tags) = if let Some(shared) = shared {
            let found = shared.classic.iter().find(|balancer| balancer.name == name);
            (found.cloned(), shared.tags_of(name))
        } else {
            let call = Call::elb("DescribeLoadBalancers").list("LoadBalancerNames", [name]);
            let found: Result<Vec<ClassicBalancer>, _> = self.list(&call, CLASSIC).await;
            let found = the_one(&call, found)?;
            let tags = match &found {
                Some(_) => self.tags(BalancerType::Classic, &[name]).await?,
                None => None,
            };
            (
                found,
                tags.map(|mut tags| tags.remove(name).unwrap_or_default()),
            )
        };
        let Some(balancer) = balancer else {
            return Ok(None);
        };
        let call = Call::elb("DescribeLoadBalancerAttributes").set("LoadBalancerName", name);
        let attributes = self.account.api.send(&call).await?;
        let attributes = crate::client::FromXml::from_xml(&attributes);
        Ok(Some(Classic {
            balancer,
            attributes: attributes.map_err(|why| malformed(&call, why))?,
            tags,
        }))
    }

    async fn find_network(
        &self,
        name: &str,
        shared: Option<&Shared>,
    ) -> Result<Option<(NetworkBalancer, Option<Tags>)>, CloudError> {
        let found = if let Some(shared) = shared {
            shared
                .network
                .iter()
                .find(|balancer| balancer.name == name)
                .cloned()
        } else {
            let call = Call::elbv2("DescribeLoadBalancers").list("Names", [name]);
            let found: Result<Vec<NetworkBalancer>, _> = self.list(&call, NETWORK).await;
            the_one(&call, found)?
        };
        let Some(balancer) = found else {
            return Ok(None);
        };
        if balancer.balancer_type != "network" {
            let kind = &balancer.balancer_type;
            let message = format!("load balancer {name} is of type {kind}, so it is left alone");
            return Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message));
        }
        let tags = if let Some(shared) = shared {
            shared.tags_of(&balancer.arn)
        } else {
            let tags = self.tags(BalancerType::Nlb, &[&balancer.arn]).await?;
            tags.map(|mut tags| tags.remove(&balancer.arn).unwrap_or_default())
        };
        Ok(Some((balancer, tags)))
    }

    /// Listeners and target groups, and those that were left over.
    async fn complete_network(
        &self,
        have: &mut Observed,
        balancer: Option<NetworkBalancer>,
        shared: Option<&Shared>,
        is_present: bool,
    ) -> Result<(), CloudError> {
        let arn = balancer.as_ref().map(|balancer| balancer.arn.clone());
        let all = self
            .target_groups(have, arn.as_ref(), shared, is_present)
            .await?;
        let is_attached = |group: &TargetGroup| {
            arn.as_ref()
                .is_some_and(|arn| group.balancers.contains(arn))
        };
        let (attached, loose): (Vec<_>, Vec<_>) = all.into_iter().partition(is_attached);
        have.leftovers = self.leftovers(have, loose, shared).await?;
        let Some(balancer) = balancer else {
            return Ok(());
        };
        let on = |action: &'static str| Call::elbv2(action).set("LoadBalancerArn", &balancer.arn);
        let listeners = self
            .list(&on("DescribeListeners"), "Listeners/member")
            .await?;
        let attributes = self
            .account
            .api
            .send(&on("DescribeLoadBalancerAttributes"))
            .await?;
        let mut groups = Vec::with_capacity(attached.len());
        for group in attached {
            groups.push(self.group_state(group, have.desired.as_ref()).await?);
        }
        have.network = Some(NetworkState {
            attributes: network::attributes(&attributes),
            wanted_tags: self.wanted_tags(have),
            vpc: self.account.vpc.clone(),
            balancer,
            listeners,
            groups,
        });
        Ok(())
    }

    fn wanted_tags(&self, have: &Observed) -> Tags {
        let desired = have.desired.as_ref().map(|desired| desired.tags.clone());
        desired.unwrap_or_else(|| self.facts.cluster.of_service(&have.service))
    }

    /// The groups of a balancer. All of them are listed where that is shared or where some may be left over.
    async fn target_groups(
        &self,
        have: &Observed,
        arn: Option<&String>,
        shared: Option<&Shared>,
        is_present: bool,
    ) -> Result<Vec<TargetGroup>, CloudError> {
        let prefix = nlb::prefix(&have.service);
        let is_ours = |group: &TargetGroup| {
            group.name.starts_with(&prefix) || arn.is_some_and(|arn| group.balancers.contains(arn))
        };
        let call = Call::elbv2("DescribeTargetGroups");
        let mut all = match (shared, arn) {
            (Some(shared), _) => shared.target_groups.clone(),
            (None, Some(arn)) if is_present => {
                let call = call.set("LoadBalancerArn", arn);
                or_none(self.list(&call, TARGET_GROUPS).await)?
            }
            (None, None) if is_present => Vec::new(),
            (None, _) => self.list(&call, TARGET_GROUPS).await?,
        };
        all.retain(is_ours);
        Ok(all)
    }

    /// Groups without a balancer whose tags name the Service.
    async fn leftovers(
        &self,
        have: &Observed,
        mut loose: Vec<TargetGroup>,
        shared: Option<&Shared>,
    ) -> Result<Vec<TargetGroup>, CloudError> {
        loose.retain(|group| group.balancers.is_empty());
        if loose.is_empty() {
            return Ok(loose);
        }
        let arns: Vec<_> = loose.iter().map(|group| group.arn.as_str()).collect();
        let tags = match shared.and_then(|shared| shared.tags.clone()) {
            Some(tags) => Some(tags),
            None => self.tags(BalancerType::Nlb, &arns).await?,
        };
        let service = have.service.to_string();
        loose.retain(|group| {
            let tags = tags.as_ref().and_then(|tags| tags.get(&group.arn));
            let is_ours = |tags: &Tags| {
                self.facts.cluster.is_tagged(tags) && tags.get(SERVICE) == Some(&service)
            };
            tags.is_some_and(is_ours)
        });
        Ok(loose)
    }

    async fn group_state(
        &self,
        group: TargetGroup,
        desired: Option<&Desired>,
    ) -> Result<GroupState, CloudError> {
        let on = |action: &'static str| Call::elbv2(action).set("TargetGroupArn", &group.arn);
        let mut state = GroupState {
            targets: BTreeSet::new(),
            attributes: BTreeMap::new(),
            group: group.clone(),
        };
        // A Service that goes takes its groups with it, whatever is in them.
        let Some(desired) = desired else {
            return Ok(state);
        };
        let call = on("DescribeTargetHealth");
        let answer = self.account.api.send(&call).await?;
        let health: Vec<TargetHealth> = list_at(&answer, "TargetHealthDescriptions/member")
            .map_err(|why| malformed(&call, why))?;
        let serving = health.into_iter().filter(|target| !target.is_draining);
        state.targets = serving.map(|target| target.id).collect();
        if !desired.group_attributes.is_empty() {
            let answer = self
                .account
                .api
                .send(&on("DescribeTargetGroupAttributes"))
                .await?;
            state.attributes = network::attributes(&answer);
        }
        Ok(state)
    }

    /// Groups of the cluster, and the one of the balancer's name if its tags are missing.
    async fn security_groups(
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
            groups.extend(self.attached_groups(attached, &groups).await?);
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
            if keys.any(|key| key.starts_with(crate::tags::CLUSTER_PREFIX)) {
                let message = format!("security group {name} ({}) is of another cluster", group.id);
                return Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message));
            }
            groups.push(group);
        }
        Ok(groups)
    }

    /// Groups of a balancer that are not among those of the cluster. A balancer keeps its groups from being deleted, so
    /// a list that lacks one is not to be trusted.
    async fn attached_groups(
        &self,
        attached: &BTreeSet<String>,
        known: &[SecurityGroup],
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        let is_new = |id: &&String| !known.iter().any(|group| group.id == **id);
        let new: Vec<_> = attached.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::ec2("DescribeSecurityGroups").filter("group-id", &new);
        let found = self.ec2_list(call).await?;
        if found.len() < new.len() {
            let message = "a load balancer has security groups that are not shown";
            return Err(CloudError::new(OPERATION, ErrorKind::Incomplete, message));
        }
        Ok(found)
    }

    async fn tagged_groups(&self) -> Result<Vec<SecurityGroup>, CloudError> {
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
    async fn complete(
        &self,
        spec: &LoadBalancerSpec,
        have: &mut Observed,
    ) -> Result<(), CloudError> {
        let Some(desired) = have.desired.clone() else {
            return Ok(());
        };
        let read = || Network::read(&self.account);
        let network = self.network.no_older_than(NETWORK_FRESH, read).await?;
        have.subnets = if desired.subnets.is_empty() {
            let own = self.account.own_subnet.as_ref();
            network.discover(&self.facts.cluster, own, desired.is_internal)
        } else {
            network.named(&desired.subnets)
        };
        let instances = self.instances_for(spec).await?;
        have.targets = targets(spec, &instances);
        if !self.facts.disable_ingress {
            self.find_node_groups(&instances, have).await?;
        }
        if !have.targets.missing.is_empty() {
            let nodes = have.targets.missing.join(", ");
            let message = format!(
                "these Nodes are no targets: their instances are not there, or lack the tag {}: {nodes}",
                self.facts.cluster.key()
            );
            self.events.warn(&have.service, TARGET_MISSING, message);
        }
        for what in &desired.unsupported {
            let message = format!("AWS's load balancers cannot {what}");
            self.events.warn(&have.service, UNSUPPORTED_OPTION, message);
        }
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
        let of_targets = instances
            .iter()
            .filter(|instance| wanted.contains_key(&instance.id));
        have.targets.node_groups = node_groups(of_targets, &have.groups, &self.facts.cluster);
        let Ok(ids) = &have.targets.node_groups else {
            return Ok(());
        };
        let is_known = |id: &&String| !have.groups.iter().any(|group| group.id == **id);
        let unknown: Vec<_> = ids.iter().filter(is_known).collect();
        if !unknown.is_empty() {
            let call = Call::ec2("DescribeSecurityGroups").filter("group-id", unknown);
            have.groups.extend(self.ec2_list(call).await?);
        }
        Ok(())
    }

    /// Tags by name or ARN, so many at a time. `None` if they may not be read: the Go CCM needs no such permission.
    async fn tags(
        &self,
        kind: BalancerType,
        ids: &[&str],
    ) -> Result<Option<BTreeMap<String, Tags>>, CloudError> {
        let mut found = BTreeMap::new();
        for ids in ids.chunks(TAGS_BATCH) {
            let (call, id) = match kind {
                BalancerType::Classic => {
                    let call = Call::elb("DescribeTags").list("LoadBalancerNames", ids);
                    (call, "LoadBalancerName")
                }
                BalancerType::Nlb => {
                    let call = Call::elbv2("DescribeTags").list("ResourceArns", ids);
                    (call, "ResourceArn")
                }
            };
            let answer = match self.account.api.send(&call).await {
                Err(error) if error.kind() == ErrorKind::Denied => return Ok(None),
                answer => answer?,
            };
            for description in answer.all_at("TagDescriptions/member") {
                let id: String = description
                    .value_at(id)
                    .map_err(|why| malformed(&call, why))?;
                found.insert(id, tags_at(description, "Tags/member", "Key", "Value"));
            }
        }
        Ok(Some(found))
    }

    async fn list<T>(&self, call: &Call, path: &'static str) -> Result<Vec<T>, CloudError>
    where
        T: crate::client::FromXml + cloudkeel_toolkit::HasId<Id = String>,
    {
        self.account.api.all(call, path, Priority::Normal).await
    }

    /// One list of everything for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let kinds = specs
            .iter()
            .map(|spec| kind_of(&spec.balancer_ref, &self.facts));
        let kinds: Vec<_> = kinds.filter_map(Result::ok).collect();
        let mut shared = Shared {
            groups: self.tagged_groups().await?,
            tags: Some(BTreeMap::new()),
            ..Shared::default()
        };
        let names: BTreeSet<_> = specs
            .iter()
            .map(|s| s.balancer_ref.service.default_balancer_name())
            .collect();
        if kinds.contains(&BalancerType::Classic) {
            let all = self
                .list(&Call::elb("DescribeLoadBalancers"), CLASSIC)
                .await?;
            shared.classic = all;
            shared
                .classic
                .retain(|balancer| names.contains(&balancer.name));
            let ids = shared
                .classic
                .iter()
                .map(|balancer| balancer.name.clone())
                .collect();
            self.add_tags_of(&mut shared, BalancerType::Classic, ids)
                .await?;
        }
        if kinds.contains(&BalancerType::Nlb) {
            shared.network = self
                .list(&Call::elbv2("DescribeLoadBalancers"), NETWORK)
                .await?;
            shared
                .network
                .retain(|balancer| names.contains(&balancer.name));
            let all = self
                .list(&Call::elbv2("DescribeTargetGroups"), TARGET_GROUPS)
                .await?;
            shared.target_groups = all;
            let loose = shared
                .target_groups
                .iter()
                .filter(|group| group.balancers.is_empty());
            let ids = loose.map(|group| group.arn.clone());
            let ids = ids.chain(shared.network.iter().map(|balancer| balancer.arn.clone()));
            let ids = ids.collect();
            self.add_tags_of(&mut shared, BalancerType::Nlb, ids)
                .await?;
        }
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            observed.push(
                self.observe_one(DesiredState::Present(spec), Some(&shared))
                    .await,
            );
        }
        Ok(observed)
    }

    async fn add_tags_of(
        &self,
        shared: &mut Shared,
        kind: BalancerType,
        ids: Vec<String>,
    ) -> Result<(), CloudError> {
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let found = self.tags(kind, &ids).await?;
        match (&mut shared.tags, found) {
            (Some(all), Some(found)) => all.extend(found),
            (tags, _) => *tags = None,
        }
        Ok(())
    }
}

impl Shared {
    fn tags_of(&self, id: &str) -> Option<Tags> {
        let tags = self.tags.as_ref()?;
        Some(tags.get(id).cloned().unwrap_or_default())
    }
}

const CLASSIC: &str = "LoadBalancerDescriptions/member";
const NETWORK: &str = "LoadBalancers/member";
const TARGET_GROUPS: &str = "TargetGroups/member";

/// Nodes as targets: their instances, as far as those are there.
fn targets(spec: &LoadBalancerSpec, instances: &[Ec2Instance]) -> Targets {
    let mut missing = Vec::new();
    let wanted = DesiredTargets::resolve(spec, |target| {
        let node = &target.node;
        let Some(id) = &node.provider_id else {
            return Err("it has no provider ID yet".to_owned());
        };
        let id = match AwsId::read(id) {
            Ok(AwsId::Instance(id)) => id,
            Ok(AwsId::Fargate(_)) => return Err("Fargate Nodes are no targets".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let is_live = |instance: &&Ec2Instance| {
            instance.id == id && !matches!(instance.state.as_str(), "terminated" | "shutting-down")
        };
        if instances.iter().any(|instance| is_live(&instance)) {
            return Ok(id);
        }
        missing.push(format!("{} ({id})", node.name));
        Err("its instance is not there, or lacks the cluster's tag".to_owned())
    });
    Targets {
        wanted,
        node_groups: Ok(BTreeSet::new()),
        missing,
    }
}

fn or_none<T>(found: Result<Vec<T>, CloudError>) -> Result<Vec<T>, CloudError> {
    match found {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        found => found,
    }
}

/// The one that was looked up by its name. Only an error says that there is none.
fn the_one<T>(call: &Call, found: Result<Vec<T>, CloudError>) -> Result<Option<T>, CloudError> {
    match found {
        Err(error) if error.is_not_found() => Ok(None),
        found => found?.into_iter().next().map(Some).ok_or_else(|| {
            let message = "the answer shows neither a load balancer nor that there is none";
            CloudError::new(call.action, ErrorKind::Incomplete, message)
        }),
    }
}

fn malformed(call: &Call, why: String) -> CloudError {
    CloudError::new(call.action, ErrorKind::Malformed, why)
}
