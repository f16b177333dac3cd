//! What another client adds to a balancer.

use cloudkeel_api::Capability::LoadBalancers;
use futures::FutureExt as _;

use super::create::is_seen;
use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/added-listener-is-removed",
        "a listener that was added by hand is seen by `observe_all` and removed",
        |env| removed(env, |id| Change::AddListener(id, 9_999)).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/added-target-is-removed",
        "a target that was added by hand is seen by `observe_all` and removed",
        |env| removed(env, |id| Change::AddTarget(id, "node-3")).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/added-label-is-kept",
        "a label that was added by hand is no difference, and survives a change",
        |env| label_kept(env).boxed(),
    ),
];

async fn removed(env: &TestEnv<'_>, change: fn(&str) -> Change<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let desired = spec(&[80, 443], nodes.get(..2).unwrap_or_default());
    env.settle(&desired).await?;
    let before = env.only_balancer().await?;
    env.cloud.change(change(&before.id)).await?;
    let changed = env.only_balancer().await?;
    if changed.check_matches(&desired).is_ok() {
        return Err(Stop::not_playable("the change by hand changed nothing"));
    }
    is_seen(env, &desired).await?;
    env.settle(&desired).await?;
    let (before, after) = (before.shape(), env.only_balancer().await?.shape());
    ensure(before == after, || {
        format!("it was {before:?} and is {after:?}")
    })
}

async fn label_kept(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let desired = spec(&[80], &nodes);
    env.settle(&desired).await?;
    let id = env.only_balancer().await?.id;
    let label = Change::AddLabel(&id, ("cost-center", "4711"));
    env.cloud.change(label).await?;
    let (settled, calls) = env.counted(env.settle(&desired)).await;
    settled?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls because of a label", calls.mutating)
    })?;
    // Another name is written together with the labels, where a cloud has both.
    let mut changed = spec(&[443], &nodes);
    changed.options.name = Some("renamed".to_owned());
    env.settle(&changed).await?;
    let labels = env.only_balancer().await?.labels;
    let kept = labels.get("cost-center").map(String::as_str);
    ensure(kept == Some("4711"), || {
        format!("the label is gone: {labels:?}")
    })
}
