//! A balancer on which other clients have listeners and targets too.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{DesiredState, LoadBalancerSpec, Outcome, ServiceChanges, TargetState, names};
use futures::FutureExt as _;

use crate::conformance::actual::ActualBalancer;
use crate::conformance::adapter::{Change, OwnerLabels, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, balancers_of, ensure};

/// The port on which another client listens.
const FOREIGN: u16 = 9_999;
/// The instance to which another client sends traffic.
const FOREIGN_TARGET: &str = "node-3";
/// How often a balancer that the cloud is still working on is checked.
const POLLS: usize = 500;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/foreign-parts-are-left-alone",
        "on a balancer that is not exclusive, listeners and targets of another client stay, those that the Service gives up go, also after a restart",
        |env| left_alone(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/foreign-parts-survive-the-service",
        "a Service that goes leaves an adopted balancer that is not exclusive with what is another client's, and nothing of its own",
        |env| survive(env).boxed(),
    ),
];

/// A Service that has adopted a balancer, to which another client has added a listener and a target, and the ports of other
/// clients: some clouds make no balancer without one.
async fn adopted(env: &TestEnv<'_>) -> Result<(LoadBalancerSpec, Vec<u16>), Stop> {
    let nodes = env.add_nodes(3).await?;
    let mut desired = spec(&[80, 443], nodes.get(..2).unwrap_or_default());
    let features = env.balancers()?.profile(&desired.balancer_ref).features;
    if !features.shared {
        let why = "its balancers cannot be shared with other clients";
        return Err(Stop::Unsupported(why.to_owned()));
    }
    let id = env
        .cloud
        .add_balancer("made-by-hand", OwnerLabels::None)
        .await?;
    let mut foreign = env.only_balancer().await?.ports();
    desired.balancer_ref.adopt = Some(id.clone());
    let exclusive = names::LB_EXCLUSIVE.name().to_owned();
    let annotations = &mut desired.balancer_ref.annotations;
    annotations.insert(exclusive, "false".to_owned());
    settle(env, &mut desired).await?;
    let mut only = env.only_balancer().await?;
    only.listeners.retain(|it| !foreign.contains(&it.port));
    only.check_matches(&desired).map_err(Stop::Failed)?;
    env.cloud.change(Change::AddListener(&id, FOREIGN)).await?;
    let added = Change::AddTarget(&id, FOREIGN_TARGET);
    env.cloud.change(added).await?;
    foreign.push(FOREIGN);
    let all = ["node-1", "node-2", "node-3"];
    has(env, &[&[80, 443], foreign.as_slice()].concat(), &all).await?;
    Ok((desired, foreign))
}

/// Settles as the service controller does, which writes to the Service what the provider asks for.
async fn settle(env: &TestEnv<'_>, desired: &mut LoadBalancerSpec) -> Done {
    // What one provider knows, the next one has to find.
    let provider = env.reconnect().await?;
    for _ in 0..POLLS {
        let balancers = balancers_of(&*provider)?;
        match balancers.apply(DesiredState::Present(desired)).await? {
            Outcome::Settled { changes, .. } => {
                write(desired, changes);
                return Ok(());
            }
            Outcome::Incomplete { failures, .. } => return Err(failures.to_error().into()),
            Outcome::Pending {
                check_after,
                changes,
                ..
            } => {
                write(desired, changes);
                env.cloud.wait(check_after).await;
            }
            Outcome::Gone { .. } => return Err(Stop::failed("the outcome is Gone")),
        }
    }
    Err(Stop::failed("it is still pending"))
}

fn write(desired: &mut LoadBalancerSpec, changes: ServiceChanges) {
    let annotations = &mut desired.balancer_ref.annotations;
    for (key, value) in changes.annotations {
        match value {
            Some(value) => annotations.insert(key, value),
            None => annotations.remove(&key),
        };
    }
}

/// That the one balancer has these ports and targets.
async fn has(env: &TestEnv<'_>, ports: &[u16], targets: &[&str]) -> Result<ActualBalancer, Stop> {
    let only = env.only_balancer().await?;
    let (found, mut ports) = (only.ports(), ports.to_vec());
    ports.sort_unstable();
    let serving = only.targets.iter();
    let serving = serving.filter(|(_, state)| **state == TargetState::Serving);
    let serving: Vec<_> = serving.map(|(name, _)| name.as_str()).collect();
    ensure(found == ports && serving == targets, || {
        format!("it has ports {found:?} and targets {serving:?}, not {ports:?} and {targets:?}")
    })?;
    Ok(only)
}

async fn left_alone(env: &TestEnv<'_>) -> Done {
    let (mut desired, foreign) = adopted(env).await?;
    let before = env.only_balancer().await?;
    let (settled, calls) = env.counted(settle(env, &mut desired)).await;
    settled?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls because of them", calls.mutating)
    })?;
    ensure(env.only_balancer().await? == before, || {
        "it was touched".to_owned()
    })?;
    desired.listeners.retain(|listener| listener.port == 443);
    desired.targets = desired
        .targets
        .iter()
        .filter(|(name, _)| *name == "node-1")
        .map(|(name, target)| (name.clone(), target.clone()))
        .collect();
    settle(env, &mut desired).await?;
    let ports = [&[443], foreign.as_slice()].concat();
    has(env, &ports, &["node-1", FOREIGN_TARGET]).await?;
    Ok(())
}

async fn survive(env: &TestEnv<'_>) -> Done {
    let (desired, foreign) = adopted(env).await?;
    let before = env.only_balancer().await?;
    env.remove(&desired.balancer_ref).await?;
    let after = has(env, &foreign, &[FOREIGN_TARGET]).await?;
    ensure(after.name == before.name, || {
        format!("it was renamed to {:?}", after.name)
    })?;
    let owned = env.balancers()?.owned().await?;
    ensure(owned.is_empty(), || format!("it is still owned: {owned:?}"))
}
