//! Taking balancers down.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{Claim, ErrorKind, LoadBalancerSpec, Outcome, Wish};
use futures::FutureExt as _;

use crate::conformance::SeenBalancer;
use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::{Stop, Strike, Trouble};
use crate::conformance::wishes::{claim, spec, spec_of};

/// A removal that another project answers is looked at this often.
const LOOKS: usize = 5;

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
        "load-balancers/released-stays",
        "a balancer that is released stays as it is and is no longer the Service's",
        |bench| released(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/released-may-be-adopted",
        "a balancer that is released is taken over by a Service that asks for it",
        |bench| inherited(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/only-agreed-removals-are-acknowledged",
        "a removal that another project answers with 'no such balancer' is not acknowledged, a real one is",
        |bench| acknowledged(bench).boxed(),
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
async fn is_gone(bench: &Bench<'_>, claim: &Claim) -> Done {
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
    // An error, an end and a wait are all allowed. An end must say what was kept or released, so that the
    // controller does not wait for a balancer that it cannot find.
    let first = bench.balancers()?.apply(Wish::Absent(&wish.claim)).await;
    bench.balancer(&id)?;
    if let Ok(Outcome::Gone { done, kept, .. }) = &first {
        ensure(!done.is_empty() || !kept.is_empty(), || {
            "it says that nothing was there".to_owned()
        })?;
    }
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

/// Releases the balancer of a Service, and shows that it is still there.
async fn release(bench: &Bench<'_>, wish: &LoadBalancerSpec) -> Result<SeenBalancer, Stop> {
    bench.settle(wish).await?;
    let before = bench.only_balancer()?;
    let mut is_said = false;
    for _ in 0..LOOKS {
        let outcome = match bench.balancers()?.apply(Wish::Released(&wish.claim)).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                return Err(Stop::Unsupported(error.message().to_owned()));
            }
            outcome => outcome?,
        };
        is_said |= !outcome.done().is_empty();
        match outcome {
            Outcome::Gone { kept, .. } => {
                ensure(is_said || !kept.is_empty(), || {
                    "it does not say what is kept".to_owned()
                })?;
                return bench.balancer(&before.id);
            }
            Outcome::Pending { check_after, .. } => bench.cloud.wait(check_after).await,
            outcome @ (Outcome::Settled { .. } | Outcome::Incomplete { .. }) => {
                return Err(Stop::wrong(format!("releasing it ended as {outcome:?}")));
            }
        }
    }
    Err(Stop::wrong("it is still not released"))
}

async fn released(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let wish = spec(&[80], &nodes);
    let kept = release(bench, &wish).await?;
    kept.misses(&wish).map_err(Stop::Wrong)?;
    // It is no longer the Service's, so a Service that goes finds nothing.
    is_gone(bench, &wish.claim).await?;
    bench.balancer(&kept.id).map(|_| ())
}

async fn inherited(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let kept = release(bench, &spec(&[80], &nodes)).await?;
    let mut successor = spec_of("successor", &[80], &nodes);
    successor.claim.adopt = Some(kept.id.clone());
    bench.settle(&successor).await?;
    let adopted = bench.only_balancer()?;
    ensure(adopted.id == kept.id, || {
        format!("balancer {} was made in place of {}", adopted.id, kept.id)
    })?;
    bench.remove(&successor.claim).await
}

/// Whether the cloud is said to have agreed to a removal, by the end of it or of some looks.
async fn is_acknowledged(bench: &Bench<'_>, claim: &Claim) -> Result<bool, Stop> {
    for _ in 0..LOOKS {
        match bench.balancers()?.apply(Wish::Absent(claim)).await {
            Ok(Outcome::Gone { acknowledged, .. }) => return Ok(acknowledged),
            Ok(Outcome::Pending {
                acknowledged: true, ..
            }) => return Ok(true),
            Ok(Outcome::Pending { check_after, .. }) => bench.cloud.wait(check_after).await,
            Ok(Outcome::Settled { .. } | Outcome::Incomplete { .. }) => {
                return Err(Stop::wrong("a wish for none ended with a balancer"));
            }
            // Nothing is claimed by an error.
            Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

async fn acknowledged(bench: &Bench<'_>) -> Done {
    let wish = spec(&[80], &[]);
    bench.settle(&wish).await?;
    let from_now_on = Strike::MutationsFrom(1);
    bench.cloud.strike(from_now_on, Trouble::OtherScope).await?;
    let claimed = is_acknowledged(bench, &wish.claim).await?;
    bench.cloud.heal().await;
    bench.only_balancer()?;
    ensure(!claimed, || {
        "it says that the cloud agreed, which never heard of it".to_owned()
    })?;
    let claimed = is_acknowledged(bench, &wish.claim).await?;
    bench.remove_at_last(&wish.claim).await?;
    ensure(claimed, || {
        "the cloud agreed, and it does not say so".to_owned()
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
