//! A balancer on which other clients have services and targets too. Pure.

use cloudkeel_api::{BalancerRef, CloudError, LoadBalancerSpec, Protocol};
use cloudkeel_toolkit::{
    HasListenerKey as _, ListenerKey, Parts, SharedParts, is_shared, unshareable,
};

use super::desired::Desired;
use super::owner_labels::{Aspect, OWNER};
use super::service::supported;
use super::step::{Change, Step};
use super::targets::{Wanted, place_of};
use crate::annotations as key;
use crate::wire::LoadBalancer;

/// Which of its parts are the Service's.
pub(super) fn of(
    spec: &LoadBalancerSpec,
    targets: &Wanted,
    balancer: &LoadBalancer,
    is_adopted: bool,
) -> Result<SharedParts, CloudError> {
    let ports = supported(spec).map(|listener| ListenerKey {
        protocol: Protocol::Tcp,
        port: listener.port,
    });
    let want = Parts::of(ports, targets.targets.places.keys());
    let (id, have) = (balancer.id.to_string(), parts(balancer));
    SharedParts::of(&spec.balancer_ref, &id, is_adopted, &want, &have)
}

/// The same of a Service that goes, if the balancer is shared.
pub(super) fn of_leaving(
    balancer_ref: &BalancerRef,
    balancer: &LoadBalancer,
) -> Option<SharedParts> {
    let id = balancer.id.to_string();
    is_shared(balancer_ref, &balancer.labels)
        .then(|| SharedParts::of_leaving(balancer_ref, &id, &parts(balancer)))
}

fn parts(balancer: &LoadBalancer) -> Parts {
    let listeners = balancer.services.iter().map(|it| it.listener_key());
    let targets = balancer.targets.iter().filter_map(place_of);
    Parts::of(listeners, targets.map(|(at, _)| at))
}

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
    let algorithm = asked.algorithm.map(|algorithm| algorithm.as_str());
    let public = &have.public_net;
    let pointers = [
        (&asked.ipv4_ptr, &public.ipv4.dns_ptr),
        (&asked.ipv6_ptr, &public.ipv6.dns_ptr),
    ];
    let differing = [
        ("name", names_it && asked.name != have.name),
        ("type", asks_type && other_type),
        (
            "algorithm",
            asked.aspects.contains(&Aspect::Algorithm)
                && algorithm != Some(have.algorithm.name.as_str()),
        ),
        (
            "public network",
            asked.aspects.contains(&Aspect::Public) && asked.public != Some(public.enabled),
        ),
        (
            "reverse DNS",
            pointers
                .iter()
                .any(|(want, have)| want.is_some() && want != have),
        ),
    ];
    let differing = differing.into_iter().filter(|(_, differs)| *differs);
    let differing: Vec<_> = differing.map(|(what, _)| what).collect();
    unshareable(&have.id.to_string(), &differing)
}

/// Takes off what is the Service's, and then the owner labels.
pub(super) fn leave(balancer: &LoadBalancer, shared: &SharedParts) -> Vec<Step> {
    let id = balancer.id;
    let targets = balancer.targets.iter().filter_map(place_of);
    let targets = targets.map(|(at, _)| at);
    let targets = targets.filter(|at| !shared.is_foreign_target(at));
    let targets = targets.map(|at| Change::RemoveTarget { at, is_last: false });
    let services = balancer.services.iter();
    let services = services.filter(|it| !shared.is_foreign_listener(it.listener_key()));
    let services = services.map(|it| Change::DeleteService {
        listen_port: it.listen_port,
    });
    let changes = services.chain(targets);
    let changes = changes.map(|change| Step::Change { id, change });
    let release = Step::Release {
        id,
        labels: OWNER.removed(&balancer.labels),
    };
    changes.chain([release]).collect()
}
