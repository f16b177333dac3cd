//! Taking balancers down.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{Outcome, Wish};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::Stop;
use crate::conformance::wishes::{claim, spec, spec_of};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/deleted-without-leaks",
        "a Service that goes leaves nothing behind",
        |bench| deleted(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/deleted-twice",
        "deleting what is not there succeeds without a mutating call",
        |bench| twice(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/never-made-is-gone",
        "a Service that never had a balancer is Gone without a mutating call",
        |bench| never_made(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/protected-is-kept",
        "a balancer that is protected in the cloud is kept, and trying again changes nothing",
        |bench| protected(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/made-again",
        "a Service may have its balancer back",
        |bench| again(bench).boxed(),
    ),
];

async fn deleted(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let before = bench.kinds();
    let wish = spec(&[80, 443], &nodes);
    bench.settle(&wish).await?;
    bench.remove(&wish.claim).await?;
    let after = bench.kinds();
    ensure(before == after, || {
        format!("before there was {before:?}, afterwards {after:?}")
    })
}

/// That the Service has no balancer, and that this costs nothing to find out.
async fn is_gone(bench: &Bench<'_>, claim: &cloudkeel_api::Claim) -> Done {
    let apply = bench.balancers()?.apply(Wish::Absent(claim));
    let (outcome, calls) = bench.counted(apply).await;
    let outcome = outcome?;
    let nothing_done = outcome.done().is_empty() && calls.mutating == 0;
    ensure(
        matches!(outcome, Outcome::Gone { .. }) && nothing_done,
        || format!("the outcome is {outcome:?} after {calls:?}"),
    )
}

async fn twice(bench: &Bench<'_>) -> Done {
    let wish = spec(&[80], &[]);
    bench.settle(&wish).await?;
    bench.remove(&wish.claim).await?;
    is_gone(bench, &wish.claim).await
}

async fn never_made(bench: &Bench<'_>) -> Done {
    bench.settle(&spec_of("other", &[80], &[])).await?;
    is_gone(bench, &claim("never")).await?;
    bench.only_balancer().map(|_| ())
}

async fn protected(bench: &Bench<'_>) -> Done {
    let wish = spec(&[80], &[]);
    bench.settle(&wish).await?;
    let id = bench.only_balancer()?.id;
    bench.cloud.protect_balancer(&id).await?;
    // Whether that is an error, an end or a wait is the provider's to choose.
    let _ = bench.balancers()?.apply(Wish::Absent(&wish.claim)).await;
    bench.balancer(&id)?;
    let apply = bench.balancers()?.apply(Wish::Absent(&wish.claim));
    let (outcome, calls) = bench.counted(apply).await;
    bench.balancer(&id)?;
    ensure(calls.mutating == 0, || {
        format!(
            "trying again makes {} mutating calls: {outcome:?}",
            calls.mutating
        )
    })
}

async fn again(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    let wish = spec(&[80], &nodes);
    bench.settle(&wish).await?;
    bench.remove(&wish.claim).await?;
    bench.settle(&wish).await?;
    bench.only_balancer()?.misses(&wish).map_err(Stop::Wrong)
}
