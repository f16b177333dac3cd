//! Whose load balancer it is.

use cloudkeel_api::{BalancerRef, ServiceRef};
use cloudkeel_toolkit::{Labels, Owner, OwnerLabels, OwnerTag, is_referenced};

use crate::annotations::LOAD_BALANCER_ID;
use crate::wire::LoadBalancer;

pub(super) const TAG: OwnerTag = OwnerTag {
    prefix: "cloudkeel:",
};
pub(super) const OWNER: OwnerLabels = OwnerTag::LABELS;

/// What the owner tag says.
pub(super) fn labels(balancer: &LoadBalancer) -> Labels {
    TAG.labels(&balancer.settings.tags)
}

/// Whose load balancer it is. One without an owner tag, as the Go CCM makes them, is the Service's if the Service points
/// at it.
pub(super) fn owner(
    balancer: &LoadBalancer,
    balancer_ref: &BalancerRef,
    cluster: Option<&str>,
) -> Owner {
    let addresses = balancer.addresses();
    let places: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let id_key = LOAD_BALANCER_ID.name();
    match OWNER.owner(&labels(balancer), balancer_ref, cluster) {
        Owner::Unowned if is_referenced(balancer_ref, id_key, &balancer.id, &places) => Owner::Us,
        owner => owner,
    }
}

/// Whether a load balancer was created for a Service, by its tag or by its default name.
pub(crate) fn is_owned_by(balancer: &LoadBalancer, service: &ServiceRef) -> bool {
    OWNER.is_labelled(&labels(balancer), service)
        || balancer.settings.name == service.default_balancer_name()
}
