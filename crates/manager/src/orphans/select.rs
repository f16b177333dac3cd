//! Which resources nothing asks for. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{OwnedResource, Route, RouteTarget, ServiceRef, UnprovenResource};
use ipnet::IpNet;

/// The resources of a Service in a cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The Service; `None` if the labels do not say.
    pub(crate) service: Option<ServiceRef>,
    /// Its resources.
    pub(crate) resources: Vec<OwnedResource>,
}

/// The resources in a list whose Service is gone, Service by Service. `existing` are all Services of the cluster: whatever
/// one of them has is the manager's to change or to remove.
pub(crate) fn orphaned(owned: &[OwnedResource], existing: &BTreeSet<ServiceRef>) -> Vec<Group> {
    let mut groups = BTreeMap::<Option<ServiceRef>, Vec<OwnedResource>>::new();
    for resource in owned {
        let service = resource.service.clone();
        if service
            .as_ref()
            .is_some_and(|service| existing.iter().any(|one| service.is(one)))
        {
            continue;
        }
        groups.entry(service).or_default().push(resource.clone());
    }
    let groups = groups.into_iter();
    groups
        .map(|(service, resources)| Group { service, resources })
        .collect()
}

/// Of what is not proven to be this cluster's, what no Service of it can have: by its UID, or by its name where that is all
/// that is known.
pub(crate) fn without_service(
    mut unproven: Vec<UnprovenResource>,
    existing: &[ServiceRef],
) -> Vec<UnprovenResource> {
    unproven.retain(|it| {
        let made_for = it.resource.service.as_ref();
        made_for.is_none_or(|made_for| !existing.iter().any(|service| made_for.is(service)))
    });
    unproven
}

/// The routes that lead Pod networks of this cluster to its Nodes. All others may be another owner's.
pub(crate) fn routes_of_cluster(listed: Vec<Route>, cluster_cidrs: &[IpNet]) -> Vec<Route> {
    let is_ours = |route: &Route| {
        let is_pod_network = cluster_cidrs
            .iter()
            .any(|cidr| cidr.contains(&route.destination));
        is_pod_network && matches!(route.target, RouteTarget::Node { .. })
    };
    listed.into_iter().filter(is_ours).collect()
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::ResourceKind;

    use super::*;

    fn service(name: &str, uid: &str) -> ServiceRef {
        ServiceRef {
            namespace: "default".into(),
            name: name.into(),
            uid: uid.into(),
        }
    }

    fn resource(kind: ResourceKind, id: &str, of: Option<(&str, &str)>) -> OwnedResource {
        OwnedResource {
            kind,
            id: id.into(),
            name: format!("name-{id}"),
            service: of.map(|(name, uid)| service(name, uid)),
        }
    }

    #[test]
    fn only_what_no_service_has_by_its_uid_is_orphaned() {
        let owned = [
            resource(ResourceKind::LoadBalancer, "1", Some(("web", "present"))),
            resource(ResourceKind::LoadBalancer, "2", Some(("web", "gone"))),
            resource(ResourceKind::Address, "3", Some(("web", "gone"))),
            resource(ResourceKind::SecurityGroup, "4", None),
            resource(ResourceKind::TargetGroup, "5", Some(("web", ""))),
            resource(ResourceKind::TargetGroup, "6", Some(("shop", ""))),
        ];
        let groups = orphaned(&owned, &BTreeSet::from([service("web", "present")]));
        let ids: Vec<(Option<&str>, Vec<&str>)> = groups
            .iter()
            .map(|group| {
                let uid = group.service.as_ref().map(|service| service.uid.as_str());
                (
                    uid,
                    group.resources.iter().map(|it| it.id.as_str()).collect(),
                )
            })
            .collect();
        let expected = [
            (None, vec!["4"]),
            (Some(""), vec!["6"]),
            (Some("gone"), vec!["2", "3"]),
        ];
        assert_eq!(ids, expected);
    }

    #[test]
    fn what_only_names_a_service_is_left_over_if_no_service_has_the_uid_or_else_the_name() {
        let unproven = |id: &str, uid: &str| UnprovenResource {
            resource: resource(ResourceKind::Address, id, Some(("web", uid))),
            why: String::new(),
        };
        let all = [
            unproven("no UID", ""),
            unproven("present", "u-1"),
            unproven("gone", "u-2"),
        ];
        let service = |name: &str| ServiceRef {
            namespace: "default".into(),
            name: name.into(),
            uid: "u-1".into(),
        };
        for (existing, expected) in [("web", &["gone"][..]), ("db", &["no UID", "gone"])] {
            let left = without_service(all.to_vec(), &[service(existing)]);
            let ids: Vec<_> = left.iter().map(|it| it.resource.id.as_str()).collect();
            assert_eq!(ids, expected, "{existing}");
        }
    }

    #[test]
    fn only_routes_of_pod_networks_to_nodes_are_the_clusters() {
        let route = |destination: &str, target: RouteTarget| Route {
            name: String::new(),
            destination: destination.parse().unwrap(),
            target,
            blackhole: false,
            follows_addresses: false,
        };
        let node = || RouteTarget::Node {
            name: "n".into(),
            uid: "u".into(),
            provider_id: None,
            addresses: Vec::new(),
        };
        let elsewhere = RouteTarget::Elsewhere { hop: "h".into() };
        let listed = vec![
            route("10.244.1.0/24", node()),
            route("10.244.2.0/24", elsewhere),
            route("10.9.0.0/24", node()),
        ];
        let ours = routes_of_cluster(listed.clone(), &["10.244.0.0/16".parse().unwrap()]);
        assert_eq!(ours, [listed[0].clone()]);
        assert_eq!(
            routes_of_cluster(listed, &[]),
            [],
            "without a cluster CIDR nothing is known"
        );
    }
}
