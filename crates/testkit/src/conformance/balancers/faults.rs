//! A fault at every single step: the next attempt succeeds, and nothing is left behind.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{DesiredState, LoadBalancerSpec, NodeFacts, Outcome, Protocol};
use futures::FutureExt as _;

use crate::conformance::actual::ActualBalancer;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::{listener, spec};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

/// More mutating calls than any spec of the kit should take.
const MOST_STEPS: u64 = 60;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/create-survives-outages",
        "an outage that begins at any mutating call of a creation is repaired by the next attempt, without leaks",
        |env| at_every_step(env, Scenario::Create, Fault::Unavailable).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/create-survives-lost-answers",
        "a lost answer to any mutating call of a creation creates no second balancer",
        |env| at_every_step(env, Scenario::Create, Fault::LostAnswer).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/create-survives-timeouts",
        "no answer from any mutating call of a creation on is repaired by the next attempt",
        |env| at_every_step(env, Scenario::Create, Fault::Timeout).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/create-survives-throttling",
        "a 429 at any mutating call of a creation is repaired by the next attempt",
        |env| at_every_step(env, Scenario::Create, Fault::Throttled).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/change-survives-outages",
        "an outage that begins at any mutating call of a change is repaired by the next attempt",
        |env| at_every_step(env, Scenario::Change, Fault::Unavailable).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/change-survives-lost-answers",
        "a lost answer to any mutating call of a change is repaired by the next attempt",
        |env| at_every_step(env, Scenario::Change, Fault::LostAnswer).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/delete-survives-outages",
        "an outage that begins at any mutating call of a deletion is repaired by the next attempt, without leaks",
        |env| at_every_step(env, Scenario::Delete, Fault::Unavailable).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/delete-survives-lost-answers",
        "a lost answer to any mutating call of a deletion is repaired by the next attempt",
        |env| at_every_step(env, Scenario::Delete, Fault::LostAnswer).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/failed-reads-change-nothing",
        "while reads fail or are wrong, nothing is created, changed or deleted",
        |env| failed_reads(env).boxed(),
    ),
];

/// What is under way when the fault is met.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Create,
    Change,
    Delete,
}

impl Scenario {
    const fn has_balancer_first(self) -> bool {
        matches!(self, Self::Change | Self::Delete)
    }
}

pub(super) fn first_spec(nodes: &[NodeFacts]) -> LoadBalancerSpec {
    spec(&[80, 443], nodes.get(..2).unwrap_or_default())
}

/// Other ports, other targets, another name where the cloud has names.
pub(super) fn second_spec(nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let mut desired = spec(&[443, 8080], nodes.get(1..).unwrap_or_default());
    desired.listeners.push(listener(Protocol::Tcp, 9090));
    desired
}

async fn at_every_step(env: &TestEnv<'_>, scenario: Scenario, fault: Fault) -> Done {
    let undisturbed = env.another().await?;
    play(&undisturbed, scenario, None).await?;
    for step in 1..=MOST_STEPS {
        let env = env.another().await?;
        let reached = play(&env, scenario, Some((step, fault))).await;
        let reached = reached.map_err(|stop| match stop {
            Stop::Failed(why) => Stop::Failed(format!("{fault:?} at mutating call {step}: {why}")),
            stop => stop,
        })?;
        same_end(&undisturbed, &env, step).await?;
        if !reached {
            // The scenario has fewer steps: each of them met the fault.
            return ensure(step > 1, || {
                "the scenario makes no mutating call".to_owned()
            });
        }
    }
    let message = format!("it takes more than {MOST_STEPS} mutating calls");
    Err(Stop::failed(message))
}

/// Plays the scenario once, with a fault at one step. Answers whether that step was reached.
async fn play(
    env: &TestEnv<'_>,
    scenario: Scenario,
    fault: Option<(u64, Fault)>,
) -> Result<bool, Stop> {
    let nodes = env.add_nodes(3).await?;
    let (first, second) = (first_spec(&nodes), second_spec(&nodes));
    if scenario.has_balancer_first() {
        env.settle(&first).await?;
    }
    let desired = match scenario {
        Scenario::Create => DesiredState::Present(&first),
        Scenario::Change => DesiredState::Present(&second),
        Scenario::Delete => DesiredState::Absent(&first.balancer_ref),
    };
    let mut reached = false;
    if let Some((step, fault)) = fault {
        env.inject(calls_with(step, fault), fault)?;
        let (done, calls) = env.counted(attempt(env, desired)).await;
        reached = calls.mutating >= step;
        // It may fail. It may not report success and not be done.
        if done.is_ok() {
            is_reached(env, desired).await?;
        }
        env.clear_faults();
    }
    match desired {
        DesiredState::Present(spec) => env.settle_through_errors(spec).await.map(|_| ())?,
        DesiredState::Absent(balancer_ref) | DesiredState::Released(balancer_ref) => {
            env.remove_through_errors(balancer_ref).await?;
        }
    }
    Ok(reached)
}

async fn is_reached(env: &TestEnv<'_>, desired: DesiredState<'_>) -> Done {
    match desired {
        DesiredState::Present(spec) => env.only_balancer_matches(spec).await,
        DesiredState::Absent(_) | DesiredState::Released(_) => {
            let left = env.cloud.balancers().await?;
            ensure(left.is_empty(), || {
                "the outcome is Gone, and it is not".to_owned()
            })
        }
    }
}

/// A lost answer and a refused call happen once; an outage lasts, whatever is tried again.
const fn calls_with(step: u64, fault: Fault) -> FaultTiming {
    match fault {
        Fault::LostAnswer | Fault::Throttled => FaultTiming::Mutation(step),
        _ => FaultTiming::MutationsFrom(step),
    }
}

async fn attempt(env: &TestEnv<'_>, desired: DesiredState<'_>) -> Done {
    match desired {
        DesiredState::Present(spec) => env.settle(spec).await.map(|_| ()),
        DesiredState::Absent(balancer_ref) | DesiredState::Released(balancer_ref) => {
            env.remove(balancer_ref).await
        }
    }
}

async fn same_end(undisturbed: &TestEnv<'_>, env: &TestEnv<'_>, step: u64) -> Done {
    let (expected, left) = (undisturbed.resources().await?, env.resources().await?);
    ensure(expected == left, || {
        format!("after a fault at mutating call {step} there is {left:?} in place of {expected:?}")
    })?;
    let (expected, have) = (shapes(undisturbed).await?, shapes(env).await?);
    ensure(expected == have, || {
        format!("after a fault at mutating call {step} it is {have:?} in place of {expected:?}")
    })
}

/// All balancers, as far as they do not depend on which cloud they are in.
pub(super) async fn shapes(env: &TestEnv<'_>) -> Result<Vec<ActualBalancer>, Stop> {
    let all = env.cloud.balancers().await?.into_iter();
    Ok(all.map(ActualBalancer::shape).collect())
}

/// Reads fail or are wrong; the address is published, so the controller asks for what exists.
async fn failed_reads(env: &TestEnv<'_>) -> Done {
    let mut played = 0;
    for fault in [
        Fault::Unauthenticated,
        Fault::Denied,
        Fault::Unavailable,
        Fault::Malformed,
        Fault::EmptyList,
        Fault::TruncatedPage,
        Fault::OtherScope,
    ] {
        let env = env.another().await?;
        let nodes = env.add_nodes(3).await?;
        let mut desired = first_spec(&nodes);
        let status = env.settle(&desired).await?;
        desired.balancer_ref.ingress = status.ingress;
        let before = env.cloud.balancers().await?;
        match env.inject(FaultTiming::Always, fault) {
            Ok(()) => played += 1,
            Err(Stop::NotPlayable(_)) => continue,
            Err(stop) => return Err(stop),
        }
        let apply = env.balancers()?.apply_to_existing(&desired);
        let (_, calls) = env.counted(apply).await;
        let gone = env
            .balancers()?
            .apply(DesiredState::Absent(&desired.balancer_ref));
        let reported_gone = matches!(gone.await, Ok(Outcome::Gone { .. }));
        env.clear_faults();
        let after = env.cloud.balancers().await?;
        ensure(before == after, || {
            format!("{fault:?}: it was {before:?} and is {after:?}")
        })?;
        ensure(calls.mutating == 0, || {
            format!("{fault:?}: {} mutating calls", calls.mutating)
        })?;
        // A wrong list that seems right is accepted; an error must not be.
        let seems_right = matches!(fault, Fault::EmptyList | Fault::OtherScope);
        ensure(seems_right || !reported_gone, || {
            format!("{fault:?}: the outcome is Gone")
        })?;
    }
    ensure(played > 0, || "none of the faults can be played".to_owned())
}
