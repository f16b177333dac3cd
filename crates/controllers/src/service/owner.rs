//! Which Services are served here, by which cloud, which changes of them matter, and which are to be cleaned
//! up. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::TargetBy;

use super::conditions;
use crate::view::ServiceView;
use crate::wellknown::CLEANUP_FINALIZER;

/// What the configuration says about the balancers of one cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOwner {
    /// The cloud's name.
    pub cloud: String,
    /// Services without a class are its own.
    pub default: bool,
    /// Services of these classes are its own.
    pub classes: BTreeSet<String>,
    /// Its balancers send traffic to Nodes of these clouds; empty means its own.
    pub target_clouds: Vec<String>,
    /// How its own Nodes are reached; another cloud's always by address.
    pub by: TargetBy,
    /// Whether it is configured in cloudkeel's own file, not as its Go counterpart is.
    pub is_own_config: bool,
}

/// Which cloud serves which class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes(Vec<ServiceOwner>);

impl Classes {
    /// From the clouds of the configuration. At most one is the default, and no class has two.
    pub fn new(clouds: Vec<ServiceOwner>) -> Self {
        Self(clouds)
    }
}

/// Which cloud serves a Service, whether or not it is being deleted: the one that has its class, or the
/// default for none. Another type or class is another controller's.
pub fn owner_of_service<'a>(
    service: &ServiceView,
    classes: &'a Classes,
) -> Option<&'a ServiceOwner> {
    let is_owner = |owner: &&ServiceOwner| match &service.class {
        Some(class) => owner.classes.contains(class),
        None => owner.default,
    };
    let mut owners = classes.0.iter().filter(|_| service.is_load_balancer());
    owners.find(is_owner)
}

/// Whether a Service should have a balancer of ours. One that is being deleted should not: no
/// finalizer could protect a new one any more.
pub fn wants_balancer(service: &ServiceView, classes: &Classes) -> bool {
    !service.deleting && owner_of_service(service, classes).is_some()
}

/// Whether a Service waits for its balancer to be deleted: it has the finalizer, and is being deleted or
/// has another type by now.
pub fn needs_cleanup(service: &ServiceView) -> bool {
    service.has_finalizer(CLEANUP_FINALIZER) && (service.deleting || !service.is_load_balancer())
}

/// What is cleaned up after a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleanup<'a> {
    /// The clouds that may have its balancer. Each is asked to delete what carries the Service's owner
    /// labels, which is nothing where it never had one. The one that served it is among them even if it has
    /// no load balancers any more: only it could say that nothing is left.
    pub clouds: Vec<&'a str>,
    /// Whether the finalizer goes even if none of them had anything. If not, it goes only after something
    /// was deleted: another controller may have put it there and rely on it.
    pub finalizer_is_ours: bool,
}

/// Which clouds may have a balancer of this Service that is to be deleted.
///
/// While the type is `LoadBalancer` the class cannot change, so it names the cloud. Another type has
/// no class any more, so it may have been any cloud. A class that is not served here is upstream's
/// blind spot: every cloud-controller-manager takes the finalizer off such a Service when it is
/// deleted, although another one may have put it there. The same holds for a cloud without load
/// balancers, beside which another component gives Services theirs.
pub fn cleanup_of<'a>(
    service: &ServiceView,
    classes: &'a Classes,
    has_balancers: impl Fn(&str) -> bool,
) -> Cleanup<'a> {
    let is_able = |cloud: &&ServiceOwner| has_balancers(&cloud.cloud);
    let named = conditions::cloud_on(service);
    let served_by = named.and_then(|name| classes.0.iter().find(|cloud| cloud.cloud == name));
    let owner = owner_of_service(service, classes).filter(is_able);
    let serves_any = |cloud: &ServiceOwner| cloud.default || !cloud.classes.is_empty();
    let may_have_it = |cloud: &&ServiceOwner| owner.map_or(serves_any(cloud), |o| o == *cloud);
    let clouds = classes.0.iter().filter(may_have_it);
    let mut clouds: Vec<_> = clouds.filter(is_able).collect();
    clouds.sort_by_key(|cloud| !cloud.default);
    let retyped_from_default = !service.is_load_balancer() && clouds.iter().any(|s| s.default);
    let finalizer_is_ours = owner.is_some()
        || match named {
            // Another cloudkeel in this cluster knows better whether its balancer is gone.
            Some(_) => served_by.is_some(),
            None => retyped_from_default,
        };
    let missing = served_by.filter(|cloud| !clouds.contains(cloud));
    let clouds = clouds.into_iter().chain(missing);
    Cleanup {
        clouds: clouds.map(|cloud| cloud.cloud.as_str()).collect(),
        finalizer_is_ours,
    }
}

/// Whether a change of a Service matters to its balancer.
///
/// Everything counts that upstream counts: source ranges, ports, affinity, addresses, all
/// annotations, the UID, the traffic policy with its health check port, and how many IP families
/// there are (not their order). Labels, status and finalizers do not.
pub fn needs_update(before: &ServiceView, after: &ServiceView, classes: &Classes) -> bool {
    let wants = |service| wants_balancer(service, classes);
    match (wants(before), wants(after)) {
        (false, false) => false,
        (true, true) => differs(before, after),
        _ => true,
    }
}

fn differs(before: &ServiceView, after: &ServiceView) -> bool {
    before.class != after.class
        || before.source_ranges != after.source_ranges
        || before.ports != after.ports
        || before.affinity != after.affinity
        || before.load_balancer_ip != after.load_balancer_ip
        || before.external_ips != after.external_ips
        || before.annotations != after.annotations
        || before.service.uid != after.service.uid
        || before.traffic_policy != after.traffic_policy
        || before.health_check_node_port != after.health_check_node_port
        || before.families.len() != after.families.len()
}

#[cfg(test)]
mod tests;
