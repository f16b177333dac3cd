//! Names and tags: whose a load balancer and its listeners are.
//!
//! The Go CCM tags load balancers and listeners with the name that it gives a Service's load balancer. That name has no
//! UID, and many clusters are called `kubernetes`, so it counts only if the Service points back. Tags with UIDs are
//! added to what is created here.

use std::net::IpAddr;

use cloudkeel_api::{BalancerRef, ServiceRef};
use cloudkeel_toolkit::{
    CloudBalancer, Labels, Owner, OwnerLabels, SHARED_LABEL, ServiceLabel, is_referenced,
};

use crate::annotations as key;
use crate::wire::balancer::{Listener, LoadBalancer};

/// What the names of all load balancers that were made for Services begin with.
pub(super) const NAME_PREFIX: &str = "kube_service_";

/// The longest name or description.
pub(super) const LONGEST: usize = 255;

/// The tag with the UID of the Service. This tag decides.
pub const SERVICE_UID: &str = "cloudkeel.dev/service-uid";

/// The tag with the UID of the cluster.
pub const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

pub(super) const OWNER: OwnerLabels = OwnerLabels {
    service_uid: SERVICE_UID,
    cluster_uid: CLUSTER_UID,
    service: ServiceLabel::Joined("cloudkeel.dev/service"),
    others: &[],
};

/// A load balancer, and its floating IP where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) balancer: LoadBalancer,
    pub(super) floating_ip: Option<IpAddr>,
}

impl CloudBalancer for Candidate {
    fn id(&self) -> String {
        self.balancer.id.clone()
    }

    fn name(&self) -> &str {
        &self.balancer.name
    }

    fn is_named_for(&self, service: &ServiceRef) -> bool {
        self.balancer.is_named_for(service)
    }
}

impl CloudBalancer for LoadBalancer {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// Perhaps when the cluster had another name. The oldest names are made of the Service's UID.
    fn is_named_for(&self, service: &ServiceRef) -> bool {
        let end = format!("_{}_{}", service.namespace, service.name);
        let is_made_for = self.name.starts_with(NAME_PREFIX) && self.name.ends_with(&end);
        is_made_for || self.name == service.default_balancer_name()
    }
}

/// The name that the Go CCM gives a Service's load balancer, and by which it tags.
pub(super) fn service_name(balancer_ref: &BalancerRef) -> String {
    let (cluster, service) = (&balancer_ref.cluster.name, &balancer_ref.service);
    cut(format!(
        "{NAME_PREFIX}{cluster}_{}_{}",
        service.namespace, service.name
    ))
}

/// The name of a part of a load balancer, such as `listener_0_kube_service_…`.
pub(super) fn part_name(part: &str, index: usize, name: &str) -> String {
    cut(format!("{part}_{index}_{name}"))
}

pub(super) fn cut(mut name: String) -> String {
    let end = name.floor_char_boundary(LONGEST);
    name.truncate(end);
    name
}

/// Tags such as `cloudkeel.dev/service-uid=…` as labels.
pub(super) fn labels_of(tags: &[String]) -> Labels {
    let pairs = tags.iter().filter_map(|tag| tag.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

pub(super) fn tag(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

/// The tags of a load balancer that is created or adopted: those that it has, the Service's name and its owner.
pub(super) fn owned_tags(
    tags: &[String],
    balancer_ref: &BalancerRef,
    cluster: Option<&str>,
) -> Vec<String> {
    let labels = OWNER.added(&Labels::new(), balancer_ref, cluster);
    let ours = labels.iter().map(|(key, value)| tag(key, value));
    let mut tags = tags.to_vec();
    for tag in std::iter::once(service_name(balancer_ref)).chain(ours) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// The tags of a load balancer that is not the Service's any more. Those of another owner stay.
pub(super) fn released_tags(tags: &[String], balancer_ref: &BalancerRef) -> Vec<String> {
    let name = service_name(balancer_ref);
    let labels = labels_of(tags);
    let is_owner = OWNER.is_labelled(&labels, &balancer_ref.service);
    let kept = OWNER.removed(&labels);
    let is_kept = |tag: &&String| match tag.split_once('=') {
        Some((key, _)) => !is_owner || kept.contains_key(key),
        None => **tag != name,
    };
    tags.iter().filter(is_kept).cloned().collect()
}

/// Tags with the one that says that other clients have parts of a load balancer too, or without it.
pub(super) fn shared_tags(mut tags: Vec<String>, is_shared: bool) -> Vec<String> {
    let shared = tag(SHARED_LABEL, "true");
    if is_shared != tags.contains(&shared) {
        tags.retain(|tag| *tag != shared);
        tags.extend(is_shared.then_some(shared));
    }
    tags
}

/// The names of other Services that share a load balancer.
pub(super) fn other_services<'a>(
    tags: &'a [String],
    name: &'a str,
) -> impl Iterator<Item = &'a String> {
    tags.iter()
        .filter(move |tag| tag.starts_with(NAME_PREFIX) && *tag != name)
}

/// Whether a listener belongs to another Service that shares the load balancer. What no Service claims is of the owner.
pub(super) fn is_others(listener: &Listener, balancer: &LoadBalancer, name: &str) -> bool {
    let mut others = other_services(&balancer.tags, name);
    !listener.tags.iter().any(|tag| tag == name)
        && others.any(|other| listener.tags.contains(other))
}

/// Whose load balancer it is: by the tags with UIDs, else by whether the Service points at it.
pub(super) fn owner_of(
    candidate: &Candidate,
    balancer_ref: &BalancerRef,
    cluster: Option<&str>,
) -> Owner {
    let (balancer, floating_ip) = (&candidate.balancer, candidate.floating_ip);
    let by_tags = OWNER.owner(&labels_of(&balancer.tags), balancer_ref, cluster);
    let places = [balancer.vip_address, floating_ip].into_iter().flatten();
    let places: Vec<_> = places.map(|ip| ip.to_string()).collect();
    let points_at_it = is_referenced(
        balancer_ref,
        key::LOAD_BALANCER_ID.name(),
        &balancer.id,
        &places,
    );
    match by_tags {
        Owner::Unowned if points_at_it && is_named_for(balancer, balancer_ref) => Owner::Us,
        by_tags => by_tags,
    }
}

/// Whether the name of a load balancer says that it was made for this Service.
pub(super) fn is_named_for(balancer: &LoadBalancer, balancer_ref: &BalancerRef) -> bool {
    balancer.name == service_name(balancer_ref) || balancer.is_named_for(&balancer_ref.service)
}
