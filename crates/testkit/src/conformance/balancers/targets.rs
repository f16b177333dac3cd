//! Nodes that come and go.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{NodeFacts, TargetBy, TargetState, Wish};
use futures::FutureExt as _;

use super::ports::follows;
use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{BY_ADDRESS, Check, DRAIN, Done, check};
use crate::conformance::emulator::Stop;
use crate::conformance::wishes::spec;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/targets-added",
        "Nodes that join become targets",
        |bench| from_to(bench, 1..2, 1..4).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/targets-removed",
        "Nodes that leave are targets no longer",
        |bench| from_to(bench, 1..4, 2..3).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/targets-replaced",
        "all Nodes may be replaced by others at once",
        |bench| from_to(bench, 1..3, 3..5).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/no-targets",
        "a Service may have no targets at all",
        |bench| from_to(bench, 1..3, 1..1).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/destroyed-target-does-not-block",
        "a Node whose machine is gone keeps no other Node from its traffic",
        |bench| destroyed(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/target-without-id-does-not-block",
        "a Node that has no provider ID yet keeps no other Node from its traffic",
        |bench| without_id(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/drain",
        "a leaving target is drained, and serves again if it stays",
        |bench| drain(bench).boxed(),
    )
    .needing(DRAIN),
    check(
        LoadBalancers,
        "load-balancers/targets-by-address",
        "a target of another cloud is reached by its address",
        |bench| by_address(bench).boxed(),
    )
    .needing(BY_ADDRESS),
];

async fn from_to(
    bench: &Bench<'_>,
    before: std::ops::Range<usize>,
    after: std::ops::Range<usize>,
) -> Done {
    let nodes = bench.machines(5).await?;
    let some = |range| nodes.get(range).unwrap_or_default();
    let (before, after) = (some(before), some(after));
    follows(bench, &spec(&[80], before), &spec(&[80], after)).await
}

/// That the first Node is a target although the second cannot be one.
async fn only_first_serves(bench: &Bench<'_>, nodes: &[NodeFacts; 2]) -> Done {
    let [good, bad] = nodes;
    let wish = spec(&[80], nodes);
    // An outcome of any kind will do, as long as the good one serves.
    for _ in 0..5 {
        match bench.settle(&wish).await {
            Ok(_) | Err(Stop::Wrong(_)) => {}
            Err(stop) => return Err(stop),
        }
    }
    let targets = bench.only_balancer()?.targets;
    ensure(targets.contains_key(&good.name), || {
        format!("{} keeps {} out: {targets:?}", bad.name, good.name)
    })?;
    // The one that is refused may be tried again, and nothing else.
    let plan = bench.balancers()?.plan(Wish::Present(&wish)).await?;
    ensure(plan.len() <= 1, || {
        format!("it never comes to rest:\n{plan}")
    })
}

async fn destroyed(bench: &Bench<'_>) -> Done {
    let nodes = two(bench).await?;
    bench.cloud.destroy_machine(&nodes[1].name).await?;
    only_first_serves(bench, &nodes).await
}

async fn without_id(bench: &Bench<'_>) -> Done {
    let mut nodes = two(bench).await?;
    nodes[1] = NodeFacts {
        name: "newcomer".to_owned(),
        ..NodeFacts::default()
    };
    only_first_serves(bench, &nodes).await
}

async fn two(bench: &Bench<'_>) -> Result<[NodeFacts; 2], Stop> {
    let nodes = <[NodeFacts; 2]>::try_from(bench.machines(2).await?);
    nodes.map_err(|_| Stop::cannot_play("there are fewer machines than were added"))
}

async fn drain(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let serving = spec(&[80], &nodes);
    let mut draining = serving.clone();
    for target in draining.targets.values_mut().take(1) {
        target.state = TargetState::Draining;
    }
    follows(bench, &serving, &draining).await?;
    follows(bench, &draining, &serving).await
}

async fn by_address(bench: &Bench<'_>) -> Done {
    let Some(address) = bench.cloud.far_address() else {
        return Err(Stop::cannot_play("no node of another cloud can be reached"));
    };
    let at = address.address.clone();
    let far = NodeFacts {
        name: "far-away".to_owned(),
        provider_id: "elsewhere://7".parse().ok(),
        addresses: vec![address],
        ..NodeFacts::default()
    };
    let mut wish = spec(&[80], &[far]);
    for target in wish.targets.values_mut() {
        target.by = TargetBy::Address;
    }
    bench.settle(&wish).await?;
    let targets = bench.only_balancer()?.targets;
    ensure(targets.keys().eq([&at]), || {
        format!("the targets are {targets:?}, asked for was {at}")
    })
}
