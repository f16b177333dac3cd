//! Locks, and balancers that several Services share.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{BalancerRef, DesiredState, LoadBalancerSpec, Outcome};
use futures::FutureExt as _;
use futures::future::ready;

use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::{balancer_ref, spec_of};
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/lock-keys-are-stable",
        "a Service has the same lock keys whenever it is asked for them, and shares none with a Service of its own balancer",
        |env| ready(locks(env)).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/shared-serves-both",
        "two Services that share a balancer are both served by it",
        |env| both(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/shared-outlives-one",
        "a Service that goes takes only its own ports from a shared balancer",
        |env| outlives(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/shared-is-locked",
        "Services that share a balancer share a lock key",
        |env| locked(env).boxed(),
    ),
];

fn locks(env: &TestEnv<'_>) -> Done {
    let (one, other) = (balancer_ref("one"), balancer_ref("other"));
    let mut changed = one.clone();
    changed.labels.insert("app".to_owned(), "web".to_owned());
    changed.finalizers.push("example.com/other".to_owned());
    let balancers = env.balancers()?;
    let keys = balancers.lock_keys(&one);
    ensure(!keys.is_empty(), || "a Service has no lock key".to_owned())?;
    let again = balancers.lock_keys(&changed);
    ensure(keys == again, || {
        format!("the lock keys were {keys:?} and are {again:?}")
    })?;
    let others = balancers.lock_keys(&other);
    ensure(keys.is_disjoint(&others), || {
        format!("Services with balancers of their own share a lock: {keys:?} and {others:?}")
    })
}

/// Two Services on one balancer: that of the first.
async fn shared(env: &TestEnv<'_>) -> Result<[LoadBalancerSpec; 2], Stop> {
    let Some(share) = env.cloud.samples().share else {
        return Err(Stop::not_playable("Services do not share balancers"));
    };
    let nodes = env.add_nodes(2).await?;
    let first = spec_of("first", &[80], &nodes);
    let id = env.settle(&first).await?.id.unwrap_or_default();
    let mut second = spec_of("second", &[443], &nodes);
    second.balancer_ref.annotations.extend(share(&id));
    let joined = env.settle(&second).await?.id;
    ensure(joined.as_deref() == Some(&*id), || {
        format!("the second Service has balancer {joined:?}, not {id}")
    })?;
    Ok([first, second])
}

/// That the one balancer has exactly these ports.
async fn serves(env: &TestEnv<'_>, expected: &[u16]) -> Done {
    let only = env.only_balancer().await?;
    let mut ports: Vec<_> = only
        .listeners
        .iter()
        .map(|listener| listener.port)
        .collect();
    ports.sort_unstable();
    ensure(ports == expected, || {
        format!("its ports are {ports:?}, not {expected:?}")
    })
}

async fn both(env: &TestEnv<'_>) -> Done {
    let [first, second] = shared(env).await?;
    serves(env, &[80, 443]).await?;
    for spec in [&first, &second] {
        let (settled, calls) = env.counted(env.settle(spec)).await;
        settled?;
        ensure(calls.mutating == 0, || {
            format!("{} mutating calls: they undo each other", calls.mutating)
        })?;
    }
    serves(env, &[80, 443]).await
}

async fn outlives(env: &TestEnv<'_>) -> Done {
    let [first, second] = shared(env).await?;
    env.remove(&second.balancer_ref).await?;
    serves(env, &[80]).await?;
    env.remove(&first.balancer_ref).await?;
    let left = env.cloud.balancers().await?.len();
    ensure(left == 0, || format!("{left} balancers are left"))
}

/// A Service with the annotations that the provider asked for.
async fn annotated(env: &TestEnv<'_>, spec: &LoadBalancerSpec) -> Result<BalancerRef, Stop> {
    let outcome = env.balancers()?.apply(DesiredState::Present(spec)).await?;
    let mut balancer_ref = spec.balancer_ref.clone();
    if let Outcome::Settled {
        status, changes, ..
    } = outcome
    {
        balancer_ref.ingress = status.ingress;
        let written = changes.annotations.into_iter();
        let written = written.filter_map(|(key, value)| Some((key, value?)));
        balancer_ref.annotations.extend(written);
    }
    Ok(balancer_ref)
}

async fn locked(env: &TestEnv<'_>) -> Done {
    let [first, second] = shared(env).await?;
    let (first, second) = (
        annotated(env, &first).await?,
        annotated(env, &second).await?,
    );
    let balancers = env.balancers()?;
    let (one, other) = (balancers.lock_keys(&first), balancers.lock_keys(&second));
    ensure(!one.is_disjoint(&other), || {
        format!("they may be worked on at once: {one:?} and {other:?}")
    })
}
