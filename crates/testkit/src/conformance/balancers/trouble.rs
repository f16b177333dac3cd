//! Trouble at every single step: the next attempt comes right, and nothing is left lying about.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{LoadBalancerSpec, NodeFacts, Outcome, Protocol, Wish};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::{Stop, Strike, Trouble};
use crate::conformance::wishes::{listener, spec};

/// More mutating calls than any wish of the kit should take.
const MOST_STEPS: u64 = 60;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/create-survives-outages",
        "an outage that begins at any mutating call of a creation is made good by the next attempt, without leaks",
        |bench| at_every_step(bench, Story::Create, Trouble::Unavailable).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/create-survives-lost-answers",
        "a lost answer to any mutating call of a creation makes no second balancer",
        |bench| at_every_step(bench, Story::Create, Trouble::LostAnswer).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/create-survives-silence",
        "silence from any mutating call of a creation on is made good by the next attempt",
        |bench| at_every_step(bench, Story::Create, Trouble::Timeout).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/create-survives-throttling",
        "a 429 at any mutating call of a creation is made good by the next attempt",
        |bench| at_every_step(bench, Story::Create, Trouble::Throttled).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/change-survives-outages",
        "an outage that begins at any mutating call of a change is made good by the next attempt",
        |bench| at_every_step(bench, Story::Change, Trouble::Unavailable).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/change-survives-lost-answers",
        "a lost answer to any mutating call of a change is made good by the next attempt",
        |bench| at_every_step(bench, Story::Change, Trouble::LostAnswer).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/delete-survives-outages",
        "an outage that begins at any mutating call of a deletion is made good by the next attempt, without leaks",
        |bench| at_every_step(bench, Story::Delete, Trouble::Unavailable).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/delete-survives-lost-answers",
        "a lost answer to any mutating call of a deletion is made good by the next attempt",
        |bench| at_every_step(bench, Story::Delete, Trouble::LostAnswer).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/blind-looks-change-nothing",
        "while reads fail or lie, nothing is made, changed or deleted",
        |bench| blind(bench).boxed(),
    ),
];

/// What is under way when the trouble comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Story {
    Create,
    Change,
    Delete,
}

impl Story {
    const fn has_balancer_first(self) -> bool {
        matches!(self, Self::Change | Self::Delete)
    }
}

fn first_wish(nodes: &[NodeFacts]) -> LoadBalancerSpec {
    spec(&[80, 443], nodes.get(..2).unwrap_or_default())
}

/// Other ports, other targets, another name where the cloud has names.
fn second_wish(nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let mut wish = spec(&[443, 8080], nodes.get(1..).unwrap_or_default());
    wish.listeners.push(listener(Protocol::Tcp, 9090));
    wish
}

async fn at_every_step(bench: &Bench<'_>, story: Story, trouble: Trouble) -> Done {
    let calm = bench.another().await?;
    tell(&calm, story, None).await?;
    for step in 1..=MOST_STEPS {
        let bench = bench.another().await?;
        let struck = tell(&bench, story, Some((step, trouble))).await;
        let struck = struck.map_err(|stop| match stop {
            Stop::Wrong(why) => Stop::Wrong(format!("{trouble:?} at mutating call {step}: {why}")),
            stop => stop,
        })?;
        same_end(&calm, &bench, step)?;
        if !struck {
            // The story has fewer steps: all of them were tried.
            return ensure(step > 1, || "the story makes no mutating call".to_owned());
        }
    }
    let message = format!("it takes more than {MOST_STEPS} mutating calls");
    Err(Stop::wrong(message))
}

/// Tells the story once, with trouble at one step. Answers whether that step was reached.
async fn tell(
    bench: &Bench<'_>,
    story: Story,
    trouble: Option<(u64, Trouble)>,
) -> Result<bool, Stop> {
    let nodes = bench.machines(3).await?;
    let (first, second) = (first_wish(&nodes), second_wish(&nodes));
    if story.has_balancer_first() {
        bench.settle(&first).await?;
    }
    let wish = match story {
        Story::Create => Wish::Present(&first),
        Story::Change => Wish::Present(&second),
        Story::Delete => Wish::Absent(&first.claim),
    };
    let mut struck = false;
    if let Some((step, trouble)) = trouble {
        bench.cloud.strike(strike(step, trouble), trouble).await?;
        let (done, calls) = bench.counted(attempt(bench, wish)).await;
        struck = calls.mutating >= step;
        // It may fail. It may not say that it is done and not be.
        if done.is_ok() {
            has_come_true(bench, wish)?;
        }
        bench.cloud.heal().await;
    }
    match wish {
        Wish::Present(spec) => bench.settle_at_last(spec).await.map(|_| ())?,
        Wish::Absent(claim) | Wish::Released(claim) => bench.remove_at_last(claim).await?,
    }
    Ok(struck)
}

fn has_come_true(bench: &Bench<'_>, wish: Wish<'_>) -> Done {
    match wish {
        Wish::Present(spec) => bench.only_balancer()?.misses(spec).map_err(Stop::Wrong),
        Wish::Absent(_) | Wish::Released(_) => ensure(bench.cloud.balancers().is_empty(), || {
            "it is said to be gone and is not".to_owned()
        }),
    }
}

/// A lost answer and a refused call are single mishaps; an outage lasts, whatever is tried again.
const fn strike(step: u64, trouble: Trouble) -> Strike {
    match trouble {
        Trouble::LostAnswer | Trouble::Throttled => Strike::Mutation(step),
        _ => Strike::MutationsFrom(step),
    }
}

async fn attempt(bench: &Bench<'_>, wish: Wish<'_>) -> Done {
    match wish {
        Wish::Present(spec) => bench.settle(spec).await.map(|_| ()),
        Wish::Absent(claim) | Wish::Released(claim) => bench.remove(claim).await,
    }
}

fn same_end(calm: &Bench<'_>, bench: &Bench<'_>, step: u64) -> Done {
    let (wanted, left) = (calm.kinds(), bench.kinds());
    ensure(wanted == left, || {
        format!("after trouble at mutating call {step} there is {left:?} in place of {wanted:?}")
    })?;
    let shapes = |bench: &Bench<'_>| -> Vec<_> {
        let all = bench.cloud.balancers().into_iter();
        all.map(crate::conformance::SeenBalancer::shape).collect()
    };
    let (wanted, have) = (shapes(calm), shapes(bench));
    ensure(wanted == have, || {
        format!("after trouble at mutating call {step} it is {have:?} in place of {wanted:?}")
    })
}

/// Reads fail or lie; the address is published, so the controller asks for what exists.
async fn blind(bench: &Bench<'_>) -> Done {
    let mut played = 0;
    for trouble in [
        Trouble::Unauthenticated,
        Trouble::Denied,
        Trouble::Unavailable,
        Trouble::Malformed,
        Trouble::EmptyList,
        Trouble::TruncatedPage,
        Trouble::OtherScope,
    ] {
        let bench = bench.another().await?;
        let nodes = bench.machines(3).await?;
        let mut wish = first_wish(&nodes);
        let status = bench.settle(&wish).await?;
        wish.claim.ingress = status.ingress;
        let before = bench.cloud.balancers();
        match bench.cloud.strike(Strike::Always, trouble).await {
            Ok(()) => played += 1,
            Err(Stop::CannotPlay(_)) => continue,
            Err(stop) => return Err(stop),
        }
        let apply = bench.balancers()?.apply_to_existing(&wish);
        let (_, calls) = bench.counted(apply).await;
        let gone = bench.balancers()?.apply(Wish::Absent(&wish.claim));
        let said_gone = matches!(gone.await, Ok(Outcome::Gone { .. }));
        bench.cloud.heal().await;
        let after = bench.cloud.balancers();
        ensure(before == after, || {
            format!("{trouble:?}: it was {before:?} and is {after:?}")
        })?;
        ensure(calls.mutating == 0, || {
            format!("{trouble:?}: {} mutating calls", calls.mutating)
        })?;
        // A list that lies well is believed; an error must not be.
        let lie = matches!(trouble, Trouble::EmptyList | Trouble::OtherScope);
        ensure(lie || !said_gone, || {
            format!("{trouble:?}: it is said to be gone")
        })?;
    }
    ensure(played > 0, || "no trouble can be played".to_owned())
}
