//! Two at once, and work that is dropped in the middle.

use std::collections::BTreeMap;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{DesiredState, ErrorKind, LoadBalancerSpec};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::faults::{first_spec, second_spec};
use crate::conformance::adapter::Stop;
use crate::conformance::cancelled::{Cancellation, at_each_await};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, balancers_of, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/two-at-once-create-one",
        "two providers that are asked for the same balancer at once end with one",
        |env| two_at_once(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/cancelled-create",
        "a creation that is dropped at any await is completed by the next attempt, without leaks",
        |env| at_each_await(env, CREATE).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/cancelled-change",
        "so is a change",
        |env| at_each_await(env, CHANGE).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/cancelled-delete",
        "so is a deletion",
        |env| at_each_await(env, DELETE).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/cancelled-release",
        "so is a release, and the balancer stays",
        |env| at_each_await(env, RELEASE).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/cancelled-reads-are-repeatable",
        "`plan`, `observe_all` and `owned` that are dropped at any await succeed when they are repeated",
        |env| at_each_await(env, READS).boxed(),
    ),
];

async fn two_at_once(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let desired = spec(&[80, 443], &nodes);
    let other = env.reconnect().await?;
    let one = env.balancers()?.apply(DesiredState::Present(&desired));
    let two = balancers_of(&*other)?.apply(DesiredState::Present(&desired));
    // One of them may fail; what counts is where it ends.
    let _ = futures::join!(one, two);
    env.settle_through_errors(&desired).await?;
    env.only_balancer_matches(&desired).await?;
    let left = env.resources().await?;
    let undisturbed = env.another().await?;
    undisturbed.add_nodes(2).await?;
    undisturbed.settle(&desired).await?;
    let expected = undisturbed.resources().await?;
    ensure(left == expected, || {
        format!("there is {left:?} in place of {expected:?}")
    })
}

/// The specs before and after a change, and what there is with a balancer and without one.
struct Before {
    first: LoadBalancerSpec,
    second: LoadBalancerSpec,
    without: BTreeMap<&'static str, usize>,
}

type Prepared<'a> = BoxFuture<'a, Result<Before, Stop>>;

async fn prepared(env: &TestEnv<'_>) -> Result<Before, Stop> {
    let nodes = env.add_nodes(3).await?;
    Ok(Before {
        first: first_spec(&nodes),
        second: second_spec(&nodes),
        without: env.resources().await?,
    })
}

fn nothing<'a>(env: &'a TestEnv<'a>) -> Prepared<'a> {
    prepared(env).boxed()
}

fn with_balancer<'a>(env: &'a TestEnv<'a>) -> Prepared<'a> {
    async {
        let before = prepared(env).await?;
        env.settle(&before.first).await?;
        Ok(before)
    }
    .boxed()
}

/// That there is one balancer, which matches, and nothing else that was not there before.
async fn settled(env: &TestEnv<'_>, spec: &LoadBalancerSpec, before: &Before) -> Done {
    env.settle_through_errors(spec).await?;
    env.only_balancer_matches(spec).await?;
    left_over(env, before, 1).await
}

async fn left_over(env: &TestEnv<'_>, before: &Before, balancers: usize) -> Done {
    let mut expected = before.without.clone();
    expected.insert("balancer", balancers);
    let left = env.resources().await?;
    ensure(left == expected, || {
        format!("there is {left:?} in place of {expected:?}")
    })
}

const CREATE: Cancellation<Before> = Cancellation {
    prepare: nothing,
    work: |env, before| env.settle(&before.first).map(|done| done.map(drop)).boxed(),
    repeat: |env, before| settled(env, &before.first, before).boxed(),
};

const CHANGE: Cancellation<Before> = Cancellation {
    prepare: with_balancer,
    work: |env, before| {
        env.settle(&before.second)
            .map(|done| done.map(drop))
            .boxed()
    },
    repeat: |env, before| settled(env, &before.second, before).boxed(),
};

const DELETE: Cancellation<Before> = Cancellation {
    prepare: with_balancer,
    work: |env, before| env.remove(&before.first.balancer_ref).boxed(),
    repeat: |env, before| {
        async {
            env.remove_through_errors(&before.first.balancer_ref)
                .await?;
            left_over(env, before, 0).await
        }
        .boxed()
    },
};

const RELEASE: Cancellation<Before> = Cancellation {
    prepare: with_balancer,
    work: |env, before| {
        env.end(DesiredState::Released(&before.first.balancer_ref))
            .boxed()
    },
    repeat: |env, before| {
        async {
            let released = DesiredState::Released(&before.first.balancer_ref);
            env.end_through_errors(released).await?;
            // It is no longer the Service's, so a deletion leaves it alone.
            env.remove(&before.first.balancer_ref).await?;
            env.only_balancer_matches(&before.first).await?;
            left_over(env, before, 1).await
        }
        .boxed()
    },
};

const READS: Cancellation<Before> = Cancellation {
    prepare: with_balancer,
    work: |env, before| all_is_seen(env, before).boxed(),
    repeat: |env, before| all_is_seen(env, before).boxed(),
};

/// That every read shows the one balancer as it should be.
async fn all_is_seen(env: &TestEnv<'_>, before: &Before) -> Done {
    let (balancers, spec) = (env.balancers()?, &before.first);
    let plan = balancers.plan(DesiredState::Present(spec)).await?;
    ensure(plan.is_empty(), || format!("a plan has steps: {plan}"))?;
    for observed in balancers.observe_all(std::slice::from_ref(spec)).await {
        let plan = observed?.plan;
        ensure(plan.is_empty(), || format!("there is to do: {plan}"))?;
    }
    match balancers.owned().await {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        owned => {
            let count = owned?.len();
            ensure(count > 0, || "nothing is owned".to_owned())
        }
    }
}
