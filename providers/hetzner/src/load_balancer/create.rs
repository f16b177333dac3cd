//! A balancer that is not there yet: made in one call with everything that belongs to it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{CloudError, LoadBalancerSpec};

use super::Facts;
use super::desired::Desired;
use super::marks::{marked, with_set};
use super::observe::{Observed, WantedType};
use super::service::{WantedService, wanted as wanted_services, without_node_port};
use super::step::{NewBalancer, Place, Step};
use super::targets::{TargetAt, Wanted};
use crate::annotations as key;
use crate::wire::BalancerType;

const OPERATION: &str = "plan load balancer";

/// The call that makes it, or why it cannot be made. Certificates can be added later.
pub(super) fn create(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
) -> Result<Step, CloudError> {
    asked.check_readable()?;
    if let Some(why) = without_network(asked, facts).or(without_node_port(spec).next()) {
        return Err(CloudError::invalid(OPERATION, why));
    }
    let kind = match &have.kind {
        WantedType::Change(kind) => kind,
        WantedType::Unobtainable(why) => return Err(why.to_error()),
        WantedType::AsItIs => {
            let message = "the type of the new load balancer is not known";
            return Err(CloudError::invalid(OPERATION, message));
        }
    };
    let network = network(asked, facts);
    let nothing = BTreeMap::new();
    let labels = marked(&nothing, &spec.claim, facts.cluster.as_deref());
    Ok(Step::Create(Box::new(NewBalancer {
        name: asked.name.clone(),
        kind: (kind.id, kind.name.clone()),
        labels: with_set(&labels, &asked.aspects),
        place: place(asked)?,
        algorithm: asked.algorithm,
        public: asked.public,
        services: services(spec, asked, have),
        targets: targets(spec, asked, have, facts, kind),
        network,
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
                "nobody says where to make the load balancer: annotate the Service with {} or {}, or \
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

/// Services that wait for a certificate come later.
fn services(spec: &LoadBalancerSpec, asked: &Desired, have: &Observed) -> Vec<WantedService> {
    if have.certificates.is_awaited() {
        return Vec::new();
    }
    wanted_services(spec, asked, have.certificates.ids(), &BTreeSet::new())
}

/// As many servers as fit, by the names of their Nodes. Addresses come later: whether they may be targets is
/// known to another service, which may not answer.
fn targets(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &Observed,
    facts: &Facts,
    kind: &BalancerType,
) -> Vec<(TargetAt, bool)> {
    let private = facts.reaches_privately(asked);
    if private && network(asked, facts).is_none() {
        return Vec::new();
    }
    let wanted = Wanted::of(spec, asked, &have.dedicated);
    let mut places: Vec<_> = wanted.places.iter().collect();
    places.sort_by_key(|(at, node)| (*node, *at));
    places
        .into_iter()
        .take(kind.max_targets)
        .filter(|(at, _)| matches!(at, TargetAt::Server(_)))
        .map(|(at, _)| (*at, private))
        .collect()
}
