//! Settings that are taken back: the default returns.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::LoadBalancerSpec;
use futures::FutureExt as _;

use super::health::asked_for;
use crate::conformance::actual::ActualBalancer;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/name-taken-back",
        "without the name that was asked for, a balancer has its default name again",
        |env| {
            taken_back(env, "the name", |spec| {
                spec.options.name = Some("front".to_owned());
            })
            .boxed()
        },
    ),
    check(
        LoadBalancers,
        "load-balancers/size-taken-back",
        "without the size that was asked for, a balancer has its default size again",
        |env| size(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/health-check-taken-back",
        "without the health check that was asked for, targets are checked by default again",
        |env| taken_back(env, "the health check", check_by_http).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/annotations-taken-back",
        "without an annotation of the provider's own, a balancer is as it was before",
        |env| annotations(env).boxed(),
    ),
];

fn check_by_http(spec: &mut LoadBalancerSpec) {
    for listener in &mut spec.listeners {
        listener.health_check = asked_for();
    }
}

/// What shows of a setting. Labels may hold what the provider has to remember.
async fn shown(env: &TestEnv<'_>, spec: &LoadBalancerSpec) -> Result<ActualBalancer, Stop> {
    env.settle(spec).await?;
    let mut shown = env.only_balancer().await?.shape();
    shown.labels.clear();
    Ok(shown)
}

/// That a setting changes the balancer, and that the balancer is as before without it.
async fn taken_back(
    env: &TestEnv<'_>,
    what: &str,
    set: impl FnOnce(&mut LoadBalancerSpec),
) -> Done {
    let nodes = env.add_nodes(1).await?;
    let plain = spec(&[80], &nodes);
    let mut given = plain.clone();
    set(&mut given);
    let before = shown(env, &plain).await?;
    let with = shown(env, &given).await?;
    ensure(before != with, || {
        format!("{what} changes nothing of {with:?}")
    })?;
    let after = shown(env, &plain).await?;
    ensure(before == after, || {
        format!("{what} was taken back: before it was {before:?}, now {after:?}")
    })
}

async fn size(env: &TestEnv<'_>) -> Done {
    let Some(sizes) = env.cloud.samples().sizes else {
        return Err(Stop::not_playable("there is only one size"));
    };
    let usual = shown(env, &spec(&[80], &[])).await?.size;
    let other = sizes
        .into_iter()
        .find(|size| usual.as_deref() != Some(*size));
    let other = other.map(str::to_owned);
    let env = env.another().await?;
    taken_back(&env, "the size", |spec| spec.options.size = other).await
}

async fn annotations(env: &TestEnv<'_>) -> Done {
    let annotations = env.cloud.samples().annotations;
    if annotations.is_empty() {
        return Err(Stop::not_playable(
            "the provider has no annotations of its own",
        ));
    }
    for (key, value) in annotations {
        let env = env.another().await?;
        let set = |spec: &mut LoadBalancerSpec| {
            let annotations = &mut spec.balancer_ref.annotations;
            annotations.insert(key.to_owned(), value.to_owned());
        };
        taken_back(&env, key, set).await?;
    }
    Ok(())
}
