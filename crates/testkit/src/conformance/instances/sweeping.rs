//! Looking at all machines at once.

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Instance, InstanceState, Shared};
use futures::FutureExt as _;

use super::doubt::several_pages;
use super::finding::present;
use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::Stop;

pub(super) const CHECKS: &[Check] = &[
    check(
        Instances,
        "instances/sweep-equals-look-ups",
        "a sweep shows every machine as a look-up does, and none that is destroyed",
        |bench| equals(bench).boxed(),
    ),
    check(
        Instances,
        "instances/sweep-costs-its-pages",
        "a sweep costs one call per page and changes nothing",
        |bench| costs(bench).boxed(),
    ),
    check(
        Instances,
        "instances/look-ups-cost-one-call-each",
        "looking many machines up costs at most one call each",
        |bench| look_ups(bench).boxed(),
    ),
    check(
        Instances,
        "instances/empty-account-is-an-empty-sweep",
        "an account without machines is an empty sweep and no error",
        |bench| nothing(bench).boxed(),
    ),
    check(
        Instances,
        "instances/scope-is-the-same-everywhere",
        "`check` and a sweep name the same scope, also after a restart",
        |bench| scope(bench).boxed(),
    ),
];

async fn equals(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(4).await?;
    let [off, destroyed, ..] = nodes.as_slice() else {
        return Err(Stop::cannot_play(
            "there are fewer machines than were added",
        ));
    };
    bench.cloud.switch_off_machine(&off.name).await?;
    bench.cloud.destroy_machine(&destroyed.name).await?;
    let sweep = bench.instances()?.sweep().await?;
    let seen = sweep.instances().len();
    ensure(seen == 3, || format!("a sweep of 3 machines shows {seen}"))?;
    for node in nodes.iter().filter(|node| node.name != destroyed.name) {
        let found = present(bench.instances()?.find(node, None).await)?;
        let swept = sweep.get(&found.id);
        let swept = swept.ok_or_else(|| Stop::wrong(format!("{} is not swept", node.name)))?;
        // A sweep may leave the state to a look-up.
        let state = match swept.state {
            InstanceState::Unknown => found.state,
            state => state,
        };
        let swept = Instance {
            state,
            ..swept.clone()
        };
        ensure(swept == found, || {
            format!("the sweep shows {swept:?}, the look-up {found:?}")
        })?;
    }
    Ok(())
}

async fn costs(bench: &Bench<'_>) -> Done {
    let machines = several_pages(bench)?;
    bench.machines(machines).await?;
    let (sweep, calls) = bench.counted(bench.instances()?.sweep()).await;
    let (seen, pages) = (sweep?.instances().len(), bench.cloud.pages(machines)?);
    ensure(seen == machines, || {
        format!("a sweep of {machines} machines shows {seen}")
    })?;
    ensure(calls.total == pages && calls.mutating == 0, || {
        format!("{machines} machines fill {pages} pages, but a sweep makes {calls:?}")
    })
}

async fn look_ups(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(20).await?;
    let nodes: Vec<_> = nodes.into_iter().map(Shared::from).collect();
    let look = bench.instances()?.find_many(&nodes, None);
    let (answers, calls) = bench.counted(look).await;
    for answer in answers {
        present(answer)?;
    }
    ensure(calls.total <= 20 && calls.mutating == 0, || {
        format!("20 look-ups make {calls:?}")
    })
}

async fn nothing(bench: &Bench<'_>) -> Done {
    let seen = bench.instances()?.sweep().await?.instances().len();
    ensure(seen == 0, || {
        format!("an empty account shows {seen} machines")
    })
}

async fn scope(bench: &Bench<'_>) -> Done {
    bench.machines(1).await?;
    let swept = bench.instances()?.sweep().await?.scope().clone();
    let restarted = bench.cloud.connect().await?;
    for provider in [&bench.provider, &restarted] {
        let checked = provider.check().await?;
        ensure(checked == swept, || {
            format!("`check` says {checked}, a sweep says {swept}")
        })?;
    }
    Ok(())
}
