//! A slow cloud, and callers that give up.

use std::time::Duration;

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{NodeFacts, Priority, Shared};
use futures::FutureExt as _;

use super::lookup::present;
use crate::conformance::cancelled::{Cancellation, at_each_await};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

/// How much longer every answer takes: slow, but no outage.
const SLOW: Duration = Duration::from_secs(4);

pub(super) const CHECKS: &[Check] = &[
    check(
        Instances,
        "instances/slow-answers-are-awaited",
        "answers that take 4 seconds are waited for, by lookups, batches and lists",
        |env| slow(env).boxed(),
    ),
    check(
        Instances,
        "instances/cancelled-reads-are-repeatable",
        "a list, a lookup, a batch and `describe` that are dropped at any await succeed when they are repeated",
        |env| cancelled(env).boxed(),
    ),
];

/// That every read shows these instances.
async fn all_are_shown(env: &TestEnv<'_>, nodes: &[NodeFacts; 2]) -> Done {
    let list = env.instances()?.list().await?;
    ensure(list.instances().len() == 2, || {
        format!("a list of 2 instances shows {}", list.instances().len())
    })?;
    let listed = list.instances().cloned().collect();
    let described = env.instances()?.describe(listed, Priority::Normal).await;
    ensure(described.len() == 2, || {
        format!("`describe` answers for {} of 2", described.len())
    })?;
    for instance in described {
        instance?;
    }
    for answer in env
        .instances()?
        .find_many(&Shared::of_each(nodes), None)
        .await
    {
        present(answer)?;
    }
    for node in nodes {
        present(env.instances()?.find(node, None).await)?;
    }
    Ok(())
}

async fn slow(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_some().await?;
    env.inject(FaultTiming::Always, Fault::Slow(SLOW))?;
    all_are_shown(env, &nodes).await
}

async fn cancelled(env: &TestEnv<'_>) -> Done {
    let scenario = Cancellation {
        prepare: |env| env.add_some::<2>().boxed(),
        work: |env, nodes| all_are_shown(env, nodes).boxed(),
        repeat: |env, nodes| all_are_shown(env, nodes).boxed(),
    };
    at_each_await(env, scenario).await
}
