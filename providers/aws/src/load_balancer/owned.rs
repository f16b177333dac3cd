//! Load balancers of this cluster, whether or not their Services are still there.

use cloudkeel_api::{CloudError, ErrorKind, OwnedResource, ResourceKind, ServiceRef};

use super::AwsBalancers;
use super::classic::GROUP_PREFIX;
use super::find::{CLASSIC, NETWORK, TARGET_GROUPS, tags};
use super::nlb::prefix;
use crate::client::Call;
use crate::config::BalancerType;
use crate::tags::SERVICE;
use crate::wire::SecurityGroup;
use crate::wire::classic::ClassicBalancer;
use crate::wire::network::{NetworkBalancer, TargetGroup};

const OPERATION: &str = "list load balancers of the cluster";

impl AwsBalancers {
    /// Those with the name that a CCM gives and the tags of this cluster, and what others left behind. Their parts go with
    /// them.
    pub(super) async fn list_owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        let call = Call::elb("DescribeLoadBalancers");
        let classic: Vec<ClassicBalancer> = self.list(&call, CLASSIC).await?;
        let call = Call::elbv2("DescribeLoadBalancers");
        let network: Vec<NetworkBalancer> = self.list(&call, NETWORK).await?;
        let is_made = |name: &str| uid_in(name).is_some();
        let classic = classic.into_iter().map(|it| (it.name.clone(), it.name));
        let classic = classic.filter(|(_, name)| is_made(name)).collect();
        let network = network.into_iter();
        let network = network.filter(|it| it.balancer_type == "network" && is_made(&it.name));
        let network = network.map(|it| (it.arn, it.name)).collect();
        let mut owned = Vec::new();
        for (kind, all) in [
            (BalancerType::Classic, classic),
            (BalancerType::Nlb, network),
        ] {
            let found = self.tagged(kind, all).await?.into_iter();
            owned.extend(found.map(|(id, name, tag)| OwnedResource {
                kind: ResourceKind::LoadBalancer,
                service: tag.and_then(|tag| service_of(&tag, &name)),
                id,
                name,
            }));
        }
        let groups = self.tagged_groups().await?;
        owned.extend(groups.into_iter().filter_map(owned_group));
        let call = Call::elbv2("DescribeTargetGroups");
        let groups: Vec<TargetGroup> = self.list(&call, TARGET_GROUPS).await?;
        let groups = groups.into_iter().filter(is_loose_group);
        let groups = groups.map(|it| (it.arn, it.name)).collect();
        let groups = self.tagged(BalancerType::Nlb, groups).await?;
        owned.extend(groups.into_iter().filter_map(target_group));
        Ok(owned)
    }

    /// Those of these IDs and names that are the cluster's, with the Service that their tags name.
    async fn tagged(
        &self,
        kind: BalancerType,
        all: Vec<(String, String)>,
    ) -> Result<Vec<Tagged>, CloudError> {
        let ids: Vec<_> = all.iter().map(|(id, _)| id.as_str()).collect();
        let tags = tags(&self.account.api, kind, &ids).await?.ok_or_else(|| {
            let message = "the permission elasticloadbalancing:DescribeTags is missing";
            CloudError::new(OPERATION, ErrorKind::Unsupported, message)
        })?;
        let owned = all.into_iter().filter_map(|(id, name)| {
            let tags = tags.get(&id)?;
            let is_ours = self.facts.cluster.is_tagged(tags);
            is_ours.then(|| (id, name, tags.get(SERVICE).cloned()))
        });
        Ok(owned.collect())
    }
}

/// An ID, a name, and what the tag says that names the Service.
type Tagged = (String, String, Option<String>);

/// Whether no balancer uses a target group, which has a name that a CCM gives.
fn is_loose_group(group: &TargetGroup) -> bool {
    let hash = group.name.rsplit('-').next().unwrap_or_default();
    let is_hash = hash.len() == 10 && hash.bytes().all(|it| it.is_ascii_hexdigit());
    group.balancers.is_empty() && group.name.starts_with("k8s-") && is_hash
}

/// A target group whose balancer is gone. Nothing on it tells the UID of its Service.
fn target_group((id, name, tag): Tagged) -> Option<OwnedResource> {
    let service = service_named(&tag?, "")?;
    let is_its = name.starts_with(&prefix(&service));
    is_its.then_some(OwnedResource {
        kind: ResourceKind::TargetGroup,
        service: Some(service),
        id,
        name,
    })
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
    service_named(text, uid_in(balancer)?)
}

fn service_named(text: &str, uid: &str) -> Option<ServiceRef> {
    let (namespace, name) = text.split_once('/')?;
    Some(ServiceRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::Tags;
    use crate::wire::network::NetworkCheck;

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

    #[test]
    fn a_target_group_without_a_balancer_tells_the_name_of_its_service() {
        const NAME: &str = "k8s-default-web-2e7f1b24e2";
        let group = |name: &str, balancers: &[&str]| TargetGroup {
            arn: "arn:1".to_owned(),
            name: name.to_owned(),
            target_type: "instance".to_owned(),
            protocol: "TCP".to_owned(),
            port: 30_080,
            check: NetworkCheck::default(),
            balancers: balancers.iter().map(ToString::to_string).collect(),
        };
        for (case, name, balancers, expected) in [
            ("left over", NAME, &[][..], true),
            ("in use", NAME, &["arn:lb"], false),
            ("of an operator", "k8s-default-web", &[], false),
            (
                "of another controller",
                "k8s-default-web-2e7f1b24g2",
                &[],
                false,
            ),
        ] {
            assert_eq!(is_loose_group(&group(name, balancers)), expected, "{case}");
        }
        let tagged = |tag: Option<&str>| {
            let tag = tag.map(str::to_owned);
            target_group(("arn:1".to_owned(), NAME.to_owned(), tag))
        };
        let found = tagged(Some("default/web")).unwrap();
        let service = found.service.unwrap();
        assert_eq!(
            (service.to_string(), service.uid),
            ("default/web".to_owned(), String::new())
        );
        for tag in [None, Some("web"), Some("other/web")] {
            assert_eq!(tagged(tag), None, "{tag:?}");
        }
    }
}
