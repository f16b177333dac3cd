//! A balancer that is not there yet: created in one call with everything that belongs to it. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{CloudError, LoadBalancerSpec};
use cloudkeel_toolkit::labels_of_new;

use super::Facts;
use super::desired::Desired;
use super::observe::{Asked, BalancerTypeChange, Observed};
use super::owner_labels::{OWNER, with_set};
use super::service::{desired_services, without_node_port};
use super::step::{NewBalancer, Place, Step};
use super::targets::{TargetAt, TargetBody};
use crate::annotations as key;
use crate::wire::{AlgorithmField, BalancerType, Service};

const OPERATION: &str = "plan load balancer";

/// The call that creates it, or why it cannot be created. Certificates can be added later.
pub(super) fn create(
    spec: &LoadBalancerSpec,
    asked: &Asked,
    have: &Observed,
    facts: &Facts,
) -> Result<Step, CloudError> {
    let desired = &asked.desired;
    desired.unread.check()?;
    if let Some(why) = without_network(desired, facts).or(without_node_port(spec).next()) {
        return Err(CloudError::invalid(OPERATION, why));
    }
    let wanted = match &have.type_change {
        BalancerTypeChange::To(wanted) => wanted,
        BalancerTypeChange::Unobtainable(why) => return Err(why.to_error()),
        BalancerTypeChange::None => {
            let message = "no type is set for the new load balancer";
            return Err(CloudError::invalid(OPERATION, message));
        }
    };
    let cluster = facts.cluster.as_deref();
    let labels = labels_of_new(&spec.balancer_ref);
    let labels = OWNER.added(&labels, &spec.balancer_ref, cluster);
    let algorithm = |algorithm: crate::config::Algorithm| AlgorithmField {
        name: algorithm.as_str().to_owned(),
    };
    Ok(Step::Create(Box::new(NewBalancer {
        name: desired.name.clone(),
        load_balancer_type: wanted.id,
        type_name: wanted.name.clone(),
        labels: with_set(&labels, &desired.aspects),
        place: place(desired)?,
        algorithm: desired.algorithm.map(algorithm),
        public: desired.public,
        services: services(spec, desired, have, wanted),
        targets: targets(asked, facts, wanted),
        network: network(desired, facts),
    })))
}

/// Targets are to be reached through a network that there is not.
pub(super) fn without_network(asked: &Desired, facts: &Facts) -> Option<String> {
    let is_missing = asked.use_private_ip && facts.network.is_none();
    is_missing.then(|| {
        format!(
            "{}: targets can only be reached by private addresses if HCLOUD_NETWORK (or `network`) is set",
            key::USE_PRIVATE_IP.name()
        )
    })
}

fn place(asked: &Desired) -> Result<Place, CloudError> {
    match (&asked.location, &asked.network_zone) {
        (Some(location), _) => Ok(Place::Location(location.clone())),
        (None, Some(zone)) => Ok(Place::NetworkZone(zone.clone())),
        (None, None) => {
            let message = format!(
                "no location is set for the new load balancer: annotate the Service with {} or {}, or \
                 set HCLOUD_LOAD_BALANCERS_LOCATION (or `loadBalancers.location`)",
                key::LOCATION.name(),
                key::NETWORK_ZONE.name()
            );
            Err(CloudError::invalid(OPERATION, message))
        }
    }
}

/// The call takes a network and no address in it. One that should have a certain address is attached later.
fn network(asked: &Desired, facts: &Facts) -> Option<u64> {
    let anywhere = asked.private_ipv4.is_none() && asked.subnet.is_none();
    facts.network.filter(|_| anywhere)
}

/// As many services as fit. Those that wait for a certificate come later.
fn services(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    wanted: &BalancerType,
) -> Vec<Service> {
    if have.certificates.is_awaited() {
        return Vec::new();
    }
    let mut services = desired_services(spec, asked, have.certificates.ids(), &BTreeSet::new());
    services.truncate(wanted.max_services);
    services
}

/// As many servers as fit, by the names of their Nodes. Addresses come later: whether they may be targets is
/// known to another service, which may not answer.
fn targets(asked: &Asked, facts: &Facts, wanted: &BalancerType) -> Vec<TargetBody> {
    let private = facts.reaches_privately(&asked.desired);
    if private && network(&asked.desired, facts).is_none() {
        return Vec::new();
    }
    let places = asked.targets.targets.by_node().into_iter();
    let places = places.take(wanted.max_targets);
    let servers = places.filter(|(at, _)| matches!(at, TargetAt::Server(_)));
    servers.map(|(at, _)| at.body(Some(private))).collect()
}
