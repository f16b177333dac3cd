//! Nodes that come and go.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{DesiredState, NodeFacts, TargetBy, TargetState};
use futures::FutureExt as _;

use super::ports::follows;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{BY_ADDRESS, Check, DRAIN, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/targets-added",
        "Nodes that join become targets",
        |env| from_to(env, 1..2, 1..4).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/targets-removed",
        "Nodes that leave are targets no longer",
        |env| from_to(env, 1..4, 2..3).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/targets-replaced",
        "all Nodes may be replaced by others at once",
        |env| from_to(env, 1..3, 3..5).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/no-targets",
        "a Service may have no targets at all",
        |env| from_to(env, 1..3, 1..1).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/destroyed-target-blocks-no-other",
        "a Node whose instance is gone does not block the other targets",
        |env| destroyed(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/target-without-id-blocks-no-other",
        "a Node that has no provider ID yet does not block the other targets",
        |env| without_id(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/drain",
        "a leaving target is drained, and serves again if it stays",
        |env| drain(env).boxed(),
    )
    .needing(DRAIN),
    check(
        LoadBalancers,
        "load-balancers/targets-by-address",
        "a target of another cloud is reached by its address",
        |env| by_address(env).boxed(),
    )
    .needing(BY_ADDRESS),
];

async fn from_to(
    env: &TestEnv<'_>,
    before: std::ops::Range<usize>,
    after: std::ops::Range<usize>,
) -> Done {
    let nodes = env.add_nodes(5).await?;
    let some = |range| nodes.get(range).unwrap_or_default();
    let (before, after) = (some(before), some(after));
    follows(env, &spec(&[80], before), &spec(&[80], after)).await
}

/// That the first Node is a target although the second cannot be one.
async fn only_first_serves(env: &TestEnv<'_>, nodes: &[NodeFacts; 2]) -> Done {
    let [good, bad] = nodes;
    let desired = spec(&[80], nodes);
    // An outcome of any kind will do, as long as the good one serves.
    for _ in 0..5 {
        match env.settle(&desired).await {
            Ok(_) | Err(Stop::Failed(_)) => {}
            Err(stop) => return Err(stop),
        }
    }
    let targets = env.only_balancer().await?.targets;
    ensure(targets.contains_key(&good.name), || {
        format!("{} blocks {}: {targets:?}", bad.name, good.name)
    })?;
    // The one that is refused may be tried again, and nothing else.
    let plan = env
        .balancers()?
        .plan(DesiredState::Present(&desired))
        .await?;
    ensure(plan.len() <= 1, || format!("it never settles:\n{plan}"))
}

async fn destroyed(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_some::<2>().await?;
    env.cloud.destroy_instance(&nodes[1].name).await?;
    only_first_serves(env, &nodes).await
}

async fn without_id(env: &TestEnv<'_>) -> Done {
    let mut nodes = env.add_some::<2>().await?;
    nodes[1] = NodeFacts {
        name: "new-node".to_owned(),
        ..NodeFacts::default()
    };
    only_first_serves(env, &nodes).await
}

async fn drain(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let serving = spec(&[80], &nodes);
    let mut draining = serving.clone();
    for target in draining.targets.values_mut().take(1) {
        target.state = TargetState::Draining;
    }
    follows(env, &serving, &draining).await?;
    follows(env, &draining, &serving).await
}

async fn by_address(env: &TestEnv<'_>) -> Done {
    let Some(address) = env.cloud.samples().outside_target else {
        return Err(Stop::not_playable(
            "no node of another cloud can be reached",
        ));
    };
    let at = address.address.clone();
    let far = NodeFacts {
        name: "far-away".to_owned(),
        provider_id: "elsewhere://7".parse().ok(),
        addresses: vec![address],
        ..NodeFacts::default()
    };
    let mut desired = spec(&[80], &[far]);
    for target in desired.targets.values_mut() {
        target.by = TargetBy::Address;
    }
    env.settle(&desired).await?;
    let targets = env.only_balancer().await?.targets;
    ensure(targets.keys().eq([&at]), || {
        format!("the targets are {targets:?}, asked for was {at}")
    })
}
