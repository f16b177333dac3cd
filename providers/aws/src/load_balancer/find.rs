//! Reading balancers: by name, or from one list for many Services.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use cloudkeel_api::{CloudError, DesiredState, ErrorKind, LoadBalancerSpec, Priority};
use cloudkeel_toolkit::HasId;

use super::AwsBalancers;
use super::desired::{Desired, kind_of};
use super::nlb;
use super::nlb_plan;
use super::observe::{Classic, GroupState, NetworkState, OPERATION, Observed};
use crate::client::{Api, Call, FromXml, list_at};
use crate::config::BalancerType;
use crate::tags::SERVICE;
use crate::wire::classic::{ClassicBalancer, InstanceHealth};
use crate::wire::network::{self, GroupTarget, NetworkBalancer, TargetGroup};
use crate::wire::{SecurityGroup, Tags, tags_at};

/// As many resources as one call for tags takes.
pub(super) const TAGS_BATCH: usize = 20;

pub(super) const CLASSIC: &str = "LoadBalancerDescriptions/member";
pub(super) const NETWORK: &str = "LoadBalancers/member";
pub(super) const TARGET_GROUPS: &str = "TargetGroups/member";

/// What is read for many Services at once.
#[derive(Default)]
pub(super) struct Shared {
    classic: Vec<ClassicBalancer>,
    network: Vec<NetworkBalancer>,
    /// By name or ARN; `None` if they may not be read.
    tags: Option<BTreeMap<String, Tags>>,
    target_groups: Vec<TargetGroup>,
    pub(super) groups: Vec<SecurityGroup>,
}

impl AwsBalancers {
    pub(super) async fn find_classic(
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
                Some(_) => tags(&self.account.api, BalancerType::Classic, &[name]).await?,
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
        let attributes = FromXml::from_xml(&attributes);
        Ok(Some(Classic {
            balancer,
            attributes: attributes.map_err(|why| malformed(&call, why))?,
            tags,
            health: Vec::new(),
        }))
    }

    /// What the cloud says about the instances of a balancer. The Go CCM needs no such permission: without it this is
    /// asked once.
    pub(super) async fn instance_health(
        &self,
        balancer: &ClassicBalancer,
    ) -> Result<Vec<InstanceHealth>, CloudError> {
        if balancer.instances.is_empty() || self.is_health_denied.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let call = Call::elb("DescribeInstanceHealth").set("LoadBalancerName", &balancer.name);
        let answer = match self.account.api.send(&call).await {
            Err(error) if error.kind() == ErrorKind::Denied => {
                self.is_health_denied.store(true, Ordering::Relaxed);
                return Ok(Vec::new());
            }
            answer => answer?,
        };
        list_at(&answer, "InstanceStates/member").map_err(|why| malformed(&call, why))
    }

    pub(super) async fn find_network(
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
            let tags = tags(&self.account.api, BalancerType::Nlb, &[&balancer.arn]).await?;
            tags.map(|mut tags| tags.remove(&balancer.arn).unwrap_or_default())
        };
        Ok(Some((balancer, tags)))
    }

    /// Listeners and target groups, and those that were left over.
    pub(super) async fn complete_network(
        &self,
        have: &mut Observed,
        balancer: Option<NetworkBalancer>,
        shared: Option<&Shared>,
        is_present: bool,
    ) -> Result<(), CloudError> {
        let arn = balancer.as_ref().map(|balancer| &balancer.arn);
        let call = Call::elbv2("DescribeTargetGroups");
        let all = match (shared, arn) {
            (Some(shared), _) => shared.target_groups.clone(),
            // Only those of the balancer, as long as the plan needs no others.
            (None, Some(arn)) if is_present => {
                let call = call.set("LoadBalancerArn", arn);
                or_none(self.list(&call, TARGET_GROUPS).await)?
            }
            (None, None) if is_present => Vec::new(),
            (None, _) => self.list(&call, TARGET_GROUPS).await?,
        };
        let is_attached =
            |group: &TargetGroup| arn.is_some_and(|arn| group.balancers.contains(arn));
        let (attached, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_attached);
        if shared.is_some() || !is_present {
            self.note_others(have, others, shared).await?;
        }
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

    /// Lists the groups of other balancers and those without one, if what is planned may meet them: a new group may have
    /// the name of one that was left over, and others may check the port of a rule that goes.
    pub(super) async fn find_others(&self, have: &mut Observed) -> Result<(), CloudError> {
        if !nlb_plan::needs_others(have, &self.facts) {
            // Whichever way it is read, a balancer that is right looks the same.
            have.checked_by_others = None;
            return Ok(());
        }
        if have.checked_by_others.is_some() {
            return Ok(());
        }
        let call = Call::elbv2("DescribeTargetGroups");
        let mut others: Vec<TargetGroup> = self.list(&call, TARGET_GROUPS).await?;
        let own = have.network.iter().flat_map(|network| &network.groups);
        let own: BTreeSet<_> = own.map(|group| &group.group.arn).collect();
        others.retain(|group| !own.contains(&group.arn));
        self.note_others(have, others, None).await
    }

    async fn note_others(
        &self,
        have: &mut Observed,
        others: Vec<TargetGroup>,
        shared: Option<&Shared>,
    ) -> Result<(), CloudError> {
        let (mut loose, used): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|group| group.balancers.is_empty());
        have.checked_by_others = Some(used.iter().map(TargetGroup::checked_port).collect());
        let prefix = nlb::prefix(&have.service);
        loose.retain(|group| group.name.starts_with(&prefix));
        have.leftovers = self.leftovers(have, loose, shared).await?;
        Ok(())
    }

    /// Groups without a balancer whose tags name the Service.
    async fn leftovers(
        &self,
        have: &Observed,
        mut loose: Vec<TargetGroup>,
        shared: Option<&Shared>,
    ) -> Result<Vec<TargetGroup>, CloudError> {
        if loose.is_empty() {
            return Ok(loose);
        }
        let arns: Vec<_> = loose.iter().map(|group| group.arn.as_str()).collect();
        let tags = match shared.and_then(|shared| shared.tags.clone()) {
            Some(tags) => Some(tags),
            None => tags(&self.account.api, BalancerType::Nlb, &arns).await?,
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
            targets: Vec::new(),
            attributes: BTreeMap::new(),
            group: group.clone(),
        };
        // A Service that goes takes its groups with it, whatever is in them.
        let Some(desired) = desired else {
            return Ok(state);
        };
        let call = on("DescribeTargetHealth");
        let answer = self.account.api.send(&call).await?;
        let targets: Vec<GroupTarget> = list_at(&answer, "TargetHealthDescriptions/member")
            .map_err(|why| malformed(&call, why))?;
        state.targets = targets;
        state.targets.retain(|target| !target.is_draining);
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

    pub(super) async fn list<T>(
        &self,
        call: &Call,
        path: &'static str,
    ) -> Result<Vec<T>, CloudError>
    where
        T: FromXml + HasId<Id = String>,
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
            let services = specs.iter().map(|spec| &spec.balancer_ref.service);
            let prefixes: BTreeSet<_> = services.map(nlb::prefix).collect();
            let is_of_one = |group: &&TargetGroup| {
                let mut prefixes = prefixes.iter();
                group.balancers.is_empty() && prefixes.any(|prefix| group.name.starts_with(prefix))
            };
            let loose = shared.target_groups.iter().filter(is_of_one);
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
        let found = tags(&self.account.api, kind, &ids).await?;
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

/// Tags by name or ARN, so many at a time. `None` if they may not be read: the Go CCM needs no such permission.
pub(super) async fn tags(
    api: &Api,
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
        let answer = match api.send(&call).await {
            Err(error) if error.kind() == ErrorKind::Denied => return Ok(None),
            answer => answer?,
        };
        for description in answer.all_at("TagDescriptions/member") {
            let id: String = description
                .value_at(id)
                .map_err(|why| malformed(&call, why))?;
            found.insert(id, tags_at(description, "Tags/member", "Key", "Value"));
        }
        // What is not described is not without tags.
        if let Some(id) = ids.iter().find(|id| !found.contains_key(**id)) {
            let message = format!("the answer does not show {id}");
            return Err(CloudError::new(call.action, ErrorKind::Incomplete, message));
        }
    }
    Ok(Some(found))
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

#[cfg(test)]
mod tests {
    use cloudkeel_http::testing::Reply;

    use super::*;
    use crate::client::tests::api;

    #[tokio::test]
    async fn a_balancer_whose_tags_are_not_shown_is_not_without_tags() {
        let described = |arn: &str| {
            let text = format!(
                "<DescribeTagsResponse><DescribeTagsResult><TagDescriptions><member><ResourceArn>{arn}</ResourceArn>\
                 <Tags/></member></TagDescriptions></DescribeTagsResult></DescribeTagsResponse>"
            );
            Reply::text(200, text)
        };
        let denied = Reply::text(
            403,
            "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>",
        );
        let (api, _) = api([described("arn:1"), described("arn:2"), denied]);
        let read = || tags(&api, BalancerType::Nlb, &["arn:1"]);
        assert_eq!(
            read().await.unwrap(),
            Some([("arn:1".to_owned(), Tags::new())].into())
        );
        assert_eq!(read().await.unwrap_err().kind(), ErrorKind::Incomplete);
        assert_eq!(read().await.unwrap(), None);
    }
}
