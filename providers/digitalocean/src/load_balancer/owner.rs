//! The tag that says whose load balancer it is. Tags have no values, so one tag holds all:
//! `cloudkeel:<UID of the Service>:<UID of the cluster>:<namespace>:<name>`.

use cloudkeel_api::BalancerRef;
use cloudkeel_toolkit::{Labels, Owner, OwnerLabels, ServiceLabel, is_referenced};

use crate::annotations::LOAD_BALANCER_ID;
use crate::wire::LoadBalancer;

const PREFIX: &str = "cloudkeel:";
/// The parts of the tag, in their order.
const PARTS: [&str; 4] = ["service-uid", "cluster-uid", "namespace", "name"];

pub(super) const OWNER: OwnerLabels = OwnerLabels {
    service_uid: PARTS[0],
    cluster_uid: PARTS[1],
    service: ServiceLabel::Split {
        namespace: PARTS[2],
        name: PARTS[3],
    },
    others: &[],
};

/// The tag that a load balancer of this Service gets.
pub(super) fn tag_for(balancer_ref: &BalancerRef, cluster: Option<&str>) -> String {
    let labels = OWNER.added(&Labels::new(), balancer_ref, cluster);
    let parts = PARTS.map(|part| labels.get(part).map_or("", String::as_str));
    format!("{PREFIX}{}", parts.join(":"))
}

/// The owner tag among others.
pub(super) fn owner_tag(tags: &[String]) -> Option<&String> {
    tags.iter().find(|tag| tag.starts_with(PREFIX))
}

/// What the owner tag says.
pub(super) fn labels(balancer: &LoadBalancer) -> Labels {
    let tag = owner_tag(&balancer.settings.tags).and_then(|tag| tag.strip_prefix(PREFIX));
    let values = tag.into_iter().flat_map(|tag| tag.split(':'));
    let pairs = PARTS
        .iter()
        .zip(values)
        .filter(|(_, value)| !value.is_empty());
    pairs
        .map(|(part, value)| ((*part).to_owned(), value.to_owned()))
        .collect()
}

/// Whose load balancer it is. One without an owner tag, as the Go CCM makes them, is the Service's if the Service points
/// at it.
pub(super) fn owner(
    balancer: &LoadBalancer,
    balancer_ref: &BalancerRef,
    cluster: Option<&str>,
) -> Owner {
    let owner = OWNER.owner(&labels(balancer), balancer_ref, cluster);
    let places: Vec<_> = balancer
        .addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    let id_key = LOAD_BALANCER_ID.name();
    match owner {
        Owner::Unowned if is_referenced(balancer_ref, id_key, &balancer.id, &places) => Owner::Us,
        owner => owner,
    }
}

/// Whether a load balancer was created for the Service of this UID, by its tag or by its default name.
pub(crate) fn is_owned_by(balancer: &LoadBalancer, service: &cloudkeel_api::ServiceRef) -> bool {
    OWNER.is_labelled(&labels(balancer), service)
        || balancer.settings.name == service.default_balancer_name()
}
