//! What the cloud makes of steps, in a few lines.

use cloudkeel_api::{IpFamily, LoadBalancerSpec};

use super::*;
use crate::wire::NewBalancer;

/// The balancer of a spec, as it is once it is built.
pub(super) fn built(spec: &LoadBalancerSpec) -> Balancer {
    let steps = plan(DesiredState::Present(spec), &Observed::default(), &facts()).unwrap();
    apply(None, &steps).unwrap()
}

/// What steps make of a balancer.
pub(super) fn apply(mut have: Option<Balancer>, steps: &[Step]) -> Option<Balancer> {
    for step in steps {
        have = take(have, step.clone());
    }
    have
}

fn take(have: Option<Balancer>, step: Step) -> Option<Balancer> {
    let change = match step {
        Step::Create(new) => {
            assert_eq!(have, None, "there is one already");
            return Some(made(*new));
        }
        Step::Change { change, .. } => change,
    };
    let mut balancer = have.expect("there is something to change");
    match change {
        Change::Delete => return None,
        Change::Adopt(labels) | Change::Release(labels) => balancer.labels = labels,
        Change::Patch(patch) => {
            let address = patch.address;
            patch.apply_to(&mut balancer);
            readdress(&mut balancer, address);
        }
        Change::Listeners(listeners) => balancer.listeners = listeners,
        Change::Targets(change) => {
            let removed = |at: &TargetAt| {
                change.remove.contains(at) || change.add.contains(at) || change.drain.contains(at)
            };
            balancer.targets.retain(|target| !removed(&target.at));
            balancer.targets.extend(change.add.into_iter().map(serving));
            balancer
                .targets
                .extend(change.drain.into_iter().map(draining));
            balancer.targets.sort();
        }
    }
    balancer.version += 1;
    Some(balancer)
}

fn made(new: NewBalancer) -> Balancer {
    let mut balancer = Balancer {
        id: 7,
        version: 3,
        name: new.name,
        labels: new.labels,
        state: BalancerState::Active,
        kind: new.kind.unwrap_or_else(|| "small".into()),
        internal: new.internal,
        families: new.families,
        addresses: vec![],
        hostname: new.hostname,
        algorithm: new.algorithm,
        proxy_protocol: new.proxy_protocol,
        source_ranges: new.source_ranges,
        affinity: new.affinity,
        protected: new.protected,
        listeners: new.listeners,
        targets: new.targets,
        problems: Vec::new(),
        health: Vec::new(),
    };
    readdress(&mut balancer, new.address);
    balancer
}

/// One address per family: the requested one, else the one it has, else any.
fn readdress(balancer: &mut Balancer, desired: Option<std::net::IpAddr>) {
    let held = balancer.addresses.clone();
    let of = |family: IpFamily, ip: &std::net::IpAddr| IpFamily::of(*ip) == family;
    let addresses = balancer.families.iter().map(|family| {
        let requested = desired.filter(|ip| of(*family, ip));
        let kept = held.iter().copied().find(|ip| of(*family, ip));
        requested.or(kept).unwrap_or(match family {
            IpFamily::V4 => [198, 18, 0, 1].into(),
            IpFamily::V6 => [0x2001, 0xdb8, 1, 0, 0, 0, 0, 1].into(),
        })
    });
    balancer.addresses = addresses.collect();
}
