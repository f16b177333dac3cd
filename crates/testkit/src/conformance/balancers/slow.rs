//! A slow cloud, and reads that lag behind.

use std::time::Duration;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{CloudError, DesiredState, Outcome};
use futures::FutureExt as _;
use tokio::time::Instant;

use super::faults::{first_spec, second_spec, shapes};
use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::env::{TestEnv, balancers_of, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

/// How long a job of a slow cloud takes.
const JOB: Duration = Duration::from_mins(5);

/// How long one attempt may hold a worker, whatever the cloud does.
const MOST: Duration = Duration::from_mins(1);

/// How much longer every answer of a slow cloud takes.
const SLOW: Duration = Duration::from_secs(4);

/// How far reads lag.
const LAG: Duration = Duration::from_secs(30);

/// How often a balancer that the cloud is still working on is checked.
const POLLS: usize = 2_000;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/slow-jobs-are-pending",
        "jobs that take 5 minutes are Pending, hold no worker, and end as fast ones do",
        |env| slow_jobs(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/slow-answers-are-awaited",
        "answers that take 4 seconds end as fast ones do",
        |env| slow_answers(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/stale-reads-create-no-second",
        "a provider whose reads do not show the balancer yet creates no second one",
        |env| stale_create(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/stale-reads-only-delay",
        "a change and a deletion while reads lag are complete once they have caught up",
        |env| stale_change(env).boxed(),
    ),
];

/// Applies a desired state until it is reached. Answers with how often it was Pending.
async fn polled(env: &TestEnv<'_>, desired: DesiredState<'_>) -> Result<usize, Stop> {
    for pending in 0..POLLS {
        let began = Instant::now();
        let outcome = env.balancers()?.apply(desired).await?;
        let held = began.elapsed();
        ensure(held <= MOST, || {
            format!("one attempt holds a worker for {held:?}")
        })?;
        match outcome {
            Outcome::Pending { check_after, .. } => env.cloud.wait(check_after).await,
            Outcome::Settled { .. } | Outcome::Gone { .. } => return Ok(pending),
            Outcome::Incomplete { failures, .. } => return Err(failures.to_error().into()),
        }
    }
    Err(Stop::failed(format!(
        "it is still pending after {POLLS} checks"
    )))
}

async fn slow_jobs(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let (first, second) = (first_spec(&nodes), second_spec(&nodes));
    env.cloud.change(Change::SlowJobs(JOB)).await?;
    let pending = polled(env, DesiredState::Present(&first)).await?;
    ensure(pending > 0, || {
        "a creation of 5 minutes was never Pending".to_owned()
    })?;
    env.only_balancer_matches(&first).await?;
    polled(env, DesiredState::Present(&second)).await?;
    env.only_balancer_matches(&second).await?;
    polled(env, DesiredState::Absent(&first.balancer_ref)).await?;
    let left = env.cloud.balancers().await?.len();
    ensure(left == 0, || format!("{left} balancers are left"))
}

/// Creates and changes a balancer.
async fn create_and_change(env: &TestEnv<'_>, fault: Option<Fault>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let (first, second) = (first_spec(&nodes), second_spec(&nodes));
    if let Some(fault) = fault {
        env.inject(FaultTiming::Always, fault)?;
    }
    env.settle(&first).await?;
    env.only_balancer_matches(&first).await?;
    env.settle(&second).await?;
    env.only_balancer_matches(&second).await
}

async fn slow_answers(env: &TestEnv<'_>) -> Done {
    let fast = env.another().await?;
    create_and_change(&fast, None).await?;
    create_and_change(env, Some(Fault::Slow(SLOW))).await?;
    let (expected, have) = (shapes(&fast).await?, shapes(env).await?);
    ensure(expected == have, || {
        format!("it is {have:?} in place of {expected:?}")
    })?;
    let nodes = &first_spec(&[]);
    env.remove(&nodes.balancer_ref).await?;
    let left = env.cloud.balancers().await?.len();
    ensure(left == 0, || format!("{left} balancers are left"))
}

async fn stale_create(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let desired = first_spec(&nodes);
    env.cloud.wait(2 * LAG).await;
    env.settle(&desired).await?;
    env.inject(FaultTiming::Always, Fault::Stale(LAG))?;
    // After a restart nothing but reads says that there is one.
    let restarted = env.reconnect().await?;
    for _ in 0..3 {
        let applied = balancers_of(&*restarted)?.apply(DesiredState::Present(&desired));
        let _: Result<Outcome, CloudError> = applied.await;
        env.only_balancer().await?;
    }
    env.clear_faults();
    env.settle_through_errors(&desired).await?;
    env.only_balancer_matches(&desired).await
}

async fn stale_change(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let (first, second) = (first_spec(&nodes), second_spec(&nodes));
    env.settle(&first).await?;
    env.cloud.wait(2 * LAG).await;
    env.inject(FaultTiming::Always, Fault::Stale(LAG))?;
    for _ in 0..3 {
        let applied = env.balancers()?.apply(DesiredState::Present(&second));
        let _: Result<Outcome, CloudError> = applied.await;
    }
    env.clear_faults();
    env.settle_through_errors(&second).await?;
    env.only_balancer_matches(&second).await?;
    env.cloud.wait(2 * LAG).await;
    env.inject(FaultTiming::Always, Fault::Stale(LAG))?;
    for _ in 0..3 {
        let removed = env
            .balancers()?
            .apply(DesiredState::Absent(&second.balancer_ref));
        let _: Result<Outcome, CloudError> = removed.await;
    }
    env.clear_faults();
    env.remove_through_errors(&second.balancer_ref).await?;
    let left = env.cloud.balancers().await?.len();
    ensure(left == 0, || format!("{left} balancers are left"))
}
