//! Load balancers of this cluster, whether or not their Services are still there.

use cloudkeel_api::{CloudError, ErrorKind, OwnedResource, ResourceKind, ServiceRef};

use super::AwsBalancers;
use super::classic::GROUP_PREFIX;
use super::find::{CLASSIC, NETWORK};
use crate::client::Call;
use crate::config::BalancerType;
use crate::tags::SERVICE;
use crate::wire::SecurityGroup;
use crate::wire::classic::ClassicBalancer;
use crate::wire::network::NetworkBalancer;

const OPERATION: &str = "list load balancers of the cluster";

impl AwsBalancers {
    /// Those with the name that a CCM gives and the tags of this cluster. Their parts go with them.
    pub(super) async fn list_owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let call = |of: fn(&'static str) -> Call| of("DescribeLoadBalancers");
        let classic: Vec<ClassicBalancer> = self.list(&call(Call::elb), CLASSIC).await?;
        let network: Vec<NetworkBalancer> = self.list(&call(Call::elbv2), NETWORK).await?;
        let classic = classic.into_iter().map(|it| (it.name.clone(), it.name));
        let is_network = |it: &NetworkBalancer| it.balancer_type == "network";
        let network = network.into_iter().filter(is_network);
        let network = network.map(|it| (it.arn, it.name));
        let mut owned = self
            .tagged(BalancerType::Classic, classic.collect())
            .await?;
        owned.extend(self.tagged(BalancerType::Nlb, network.collect()).await?);
        let groups = self.tagged_groups().await?;
        owned.extend(groups.into_iter().filter_map(owned_group));
        Ok(owned)
    }

    /// Those of these IDs and names that are the cluster's.
    async fn tagged(
        &self,
        kind: BalancerType,
        mut all: Vec<(String, String)>,
    ) -> Result<Vec<OwnedResource>, CloudError> {
        all.retain(|(_, name)| uid_in(name).is_some());
        let ids: Vec<_> = all.iter().map(|(id, _)| id.as_str()).collect();
        let tags = self.tags(kind, &ids).await?.ok_or_else(|| {
            let message = "the permission elasticloadbalancing:DescribeTags is missing";
            CloudError::new(OPERATION, ErrorKind::Unsupported, message)
        })?;
        let owned = all.into_iter().filter_map(|(id, name)| {
            let tags = tags
                .get(&id)
                .filter(|tags| self.facts.cluster.is_tagged(tags))?;
            Some(OwnedResource {
                kind: ResourceKind::LoadBalancer,
                service: tags.get(SERVICE).and_then(|it| service_of(it, &name)),
                id,
                name,
            })
        });
        Ok(owned.collect())
    }
}

/// A classic balancer's own group. It often outlives its balancer, because it cannot be deleted while in use.
fn owned_group(group: SecurityGroup) -> Option<OwnedResource> {
    let balancer = group.name.strip_prefix(GROUP_PREFIX)?;
    let (_, service) = group.description.strip_suffix(')')?.rsplit_once('(')?;
    Some(OwnedResource {
        kind: ResourceKind::SecurityGroup,
        service: Some(service_of(service, balancer)?),
        id: group.id,
        name: group.name,
    })
}

/// The UID in a default name: all digits but the last.
fn uid_in(name: &str) -> Option<&str> {
    let uid = name.strip_prefix('a')?;
    let is_uid = uid.len() == 31 && uid.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_uid.then_some(uid)
}

/// The Service that a balancer was made for, by what is written on it and by its name.
fn service_of(text: &str, balancer: &str) -> Option<ServiceRef> {
    let (namespace, name) = text.split_once('/')?;
    Some(ServiceRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid_in(balancer)?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::Tags;

    #[test]
    fn a_name_tells_the_service_only_if_a_ccm_gave_it() {
        let service = ServiceRef {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: "01234567-89ab-cdef-0123-456789abcdef".to_owned(),
        };
        let name = service.default_balancer_name();
        let found = service_of("default/web", &name).unwrap();
        assert!(found.has_uid(&service.uid));
        assert!(!found.has_uid("11234567-89ab-cdef-0123-456789abcdef"));
        assert_eq!(found.default_balancer_name(), name);
        for (text, name) in [
            ("default", name.as_str()),
            ("default/web", "a-name-that-an-operator-has-given"),
            ("default/web", "a0123"),
            ("default/web", "ag123456789abcdef0123456789abcde"),
        ] {
            assert_eq!(service_of(text, name), None, "{text} {name}");
        }
    }

    #[test]
    fn a_group_that_outlived_its_balancer_tells_its_service() {
        let group = |name: &str, description: &str| SecurityGroup {
            id: "sg-1".to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            tags: Tags::new(),
            rules: BTreeMap::new(),
        };
        let name = "k8s-elb-a0123456789abcdef0123456789abcde";
        let about =
            "Security group for Kubernetes ELB a0123456789abcdef0123456789abcde (default/web)";
        let found = owned_group(group(name, about)).unwrap();
        assert_eq!(found.kind, ResourceKind::SecurityGroup);
        assert_eq!(found.service.unwrap().to_string(), "default/web");
        assert_eq!(owned_group(group(name, "by hand")), None);
        assert_eq!(owned_group(group("nodes", about)), None);
    }
}
