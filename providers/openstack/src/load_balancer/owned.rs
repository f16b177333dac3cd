//! What was made for Services of this cluster, whether or not they are still there.

use cloudkeel_api::{
    CloudError, OwnedResource, Priority, ResourceKind, ServiceRef, UnprovenResource,
};

use super::OpenStackBalancers;
use super::floating_ip::{self, is_free};
use super::owner::{CLUSTER_UID, NAME_PREFIX, OWNER, labels_of, tag};
use super::security_group::{self, GROUP_PREFIX};
use crate::wire::balancer::LoadBalancer;
use crate::wire::network::{FloatingIp, SecurityGroup};

impl OpenStackBalancers {
    /// What carries the UID of this cluster.
    pub(super) async fn list_owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let cluster = OWNER.cluster(self.facts.cluster.as_ref())?;
        let filter = tag(CLUSTER_UID, cluster);
        let balancers: Vec<LoadBalancer> = self.servers.api.all(&[("tags", &filter)]).await?;
        let balancers = balancers.iter();
        let balancers = balancers.map(|it| OWNER.owned(it, &labels_of(&it.tags)));
        let others = self.list_described().await?.into_iter();
        Ok(balancers.chain(others.filter(has_uid)).collect())
    }

    /// What only names this cluster and a Service, as the Go CCM left it.
    pub(super) async fn list_unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        let all = self.servers.api.all_with(&[], Priority::Background);
        let balancers: Vec<LoadBalancer> = all.await?;
        let balancers = balancers.iter().filter_map(|it| self.named(it));
        let mut others = self.list_described().await?;
        others.retain(|it| !has_uid(it));
        others.iter_mut().for_each(read_uid);
        let why = format!(
            "it names a cluster {:?}, as another one may be called too: remove it by hand if it is not needed",
            self.identity.name
        );
        let unproven = balancers.chain(others).map(|resource| UnprovenResource {
            resource,
            why: why.clone(),
        });
        Ok(unproven.collect())
    }

    /// Groups that were made for Services, and floating IPs that lead nowhere: others go with their load balancer.
    async fn list_described(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let (api, cluster) = (&self.servers.api, &self.identity);
        let groups: Vec<SecurityGroup> = api.all_with(&[], Priority::Background).await?;
        let groups = groups.into_iter().filter_map(|it| {
            let (kind, names) = (ResourceKind::SecurityGroup, (it.id, it.name));
            security_group::TEXT.described(kind, names, &it.description, cluster)
        });
        let ips: Vec<FloatingIp> = api.all_with(&[], Priority::Background).await?;
        let ips = ips.into_iter().filter(is_free).filter_map(|it| {
            let names = (it.id, it.floating_ip_address.to_string());
            let kind = ResourceKind::Address;
            floating_ip::TEXT.described(kind, names, &it.description, cluster)
        });
        Ok(groups.chain(ips).collect())
    }

    /// A load balancer without owner tags that has the name which the Go CCM gives it.
    fn named(&self, balancer: &LoadBalancer) -> Option<OwnedResource> {
        let names = balancer.name.strip_prefix(NAME_PREFIX)?;
        let names = names.strip_prefix(self.identity.name.as_str())?;
        let (namespace, name) = names.strip_prefix('_')?.split_once('_')?;
        let labels = labels_of(&balancer.tags);
        let mut resource = OWNER.owned(balancer, &labels);
        resource.service = Some(ServiceRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: String::new(),
        });
        Some(resource).filter(|_| OWNER.removed(&labels) == labels)
    }
}

fn has_uid(resource: &OwnedResource) -> bool {
    let service = resource.service.as_ref();
    service.is_some_and(|service| !service.uid.is_empty())
}

/// The name of a group has the UID of its Service.
fn read_uid(resource: &mut OwnedResource) {
    let Some(service) = &mut resource.service else {
        return;
    };
    let end = format!("-{}-{}", service.namespace, service.name);
    let uid = resource.name.strip_prefix(GROUP_PREFIX);
    let uid = uid.and_then(|uid| uid.strip_suffix(&end));
    uid.unwrap_or_default().clone_into(&mut service.uid);
}
