//! A balancer on which other clients have services and targets too. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{CloudError, LoadBalancerSpec};
use cloudkeel_toolkit::{ShareableBalancer as _, Sharing, check_unchanged};

use super::desired::Desired;
use super::owner_labels::{Aspect, OWNER};
use super::plan::{algorithm, pointers};
use super::step::{Change, Step};
use crate::annotations as key;
use crate::wire::LoadBalancer;

/// What the Service itself asks of the balancer as a whole has to be so already.
pub(super) fn check(
    spec: &LoadBalancerSpec,
    asked: &Desired,
    have: &LoadBalancer,
) -> Result<(), CloudError> {
    let annotations = &spec.balancer_ref.annotations;
    let names_it = annotations.contains_key(key::NAME.name()) || spec.options.name.is_some();
    let asks_type = annotations.contains_key(key::TYPE.name()) || spec.options.size.is_some();
    let other_type = asked.load_balancer_type.as_ref();
    let other_type = other_type.is_some_and(|it| *it != have.load_balancer_type.name);
    let asks = |aspect| asked.aspects.contains(&aspect);
    let other_algorithm = algorithm(asked, have, &BTreeSet::new()).is_some();
    let other_public = asked.public != Some(have.public_net.enabled);
    let differing = [
        ("name", names_it && asked.name != have.name),
        ("type", asks_type && other_type),
        ("algorithm", asks(Aspect::Algorithm) && other_algorithm),
        ("public network", asks(Aspect::Public) && other_public),
        ("reverse DNS", !pointers(asked, have).is_empty()),
    ];
    check_unchanged(have, &differing)
}

/// Takes off what is the Service's, and then the owner labels.
pub(super) fn leave(balancer: &LoadBalancer, sharing: &Sharing) -> Vec<Step> {
    let id = balancer.id;
    let targets = balancer.targets();
    let targets = targets.filter(|at| !sharing.is_foreign_target(at));
    let targets = targets.map(|at| Change::RemoveTarget { at, is_last: false });
    let services = balancer.services.iter();
    let services = services.filter(|it| !sharing.is_foreign_listener(*it));
    let services = services.map(|it| Change::DeleteService {
        listen_port: it.listen_port,
    });
    let changes = services.chain(targets);
    let changes = changes.map(|change| Step::Change { id, change });
    let release = Step::Release(id, OWNER.removed(&balancer.labels));
    changes.chain([release]).collect()
}
