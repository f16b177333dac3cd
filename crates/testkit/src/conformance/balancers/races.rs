//! Two at once, and one that stops in the middle.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::Wish;
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, balancers_of, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::Stop;
use crate::conformance::wishes::spec;

/// More awaits than any wish of the kit should take.
const MOST_POLLS: usize = 400;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/two-at-once-make-one",
        "two providers that are asked for the same balancer at once end with one",
        |bench| two_at_once(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/dropped-anywhere-comes-right",
        "an attempt that is dropped at any await is made good by the next, without leaks",
        |bench| dropped(bench).boxed(),
    ),
];

async fn two_at_once(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let wish = spec(&[80, 443], &nodes);
    let other = bench.cloud.connect().await?;
    let one = bench.balancers()?.apply(Wish::Present(&wish));
    let two = balancers_of(&*other)?.apply(Wish::Present(&wish));
    // One of them may fail; what counts is where it ends.
    let _ = futures::join!(one, two);
    bench.settle_at_last(&wish).await?;
    bench.only_balancer()?.misses(&wish).map_err(Stop::Wrong)?;
    let kinds = bench.kinds();
    let calm = bench.another().await?;
    calm.machines(2).await?;
    calm.settle(&wish).await?;
    ensure(kinds == calm.kinds(), || {
        format!("there is {kinds:?} in place of {:?}", calm.kinds())
    })
}

/// Drives a future until it is done or was polled this often, and drops it then.
async fn polled_at_most(work: impl Future, times: usize) -> bool {
    let mut work = pin!(work);
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if polls >= times => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn dropped(bench: &Bench<'_>) -> Done {
    let calm = bench.another().await?;
    let nodes = calm.machines(2).await?;
    calm.settle(&spec(&[80, 443], &nodes)).await?;
    for polls in 1..=MOST_POLLS {
        let bench = bench.another().await?;
        let wish = spec(&[80, 443], &bench.machines(2).await?);
        let done = polled_at_most(bench.settle(&wish), polls).await;
        bench
            .settle_at_last(&wish)
            .await
            .map_err(|stop| Stop::wrong(format!("dropped at await {polls}: {stop}")))?;
        bench.only_balancer()?.misses(&wish).map_err(Stop::Wrong)?;
        ensure(bench.kinds() == calm.kinds(), || {
            let (left, wanted) = (bench.kinds(), calm.kinds());
            format!("dropped at await {polls}: there is {left:?} in place of {wanted:?}")
        })?;
        if done && polls == 1 {
            return Err(Stop::cannot_play("everything is done without an await"));
        }
        if done {
            return Ok(());
        }
    }
    let message = format!("it takes more than {MOST_POLLS} awaits");
    Err(Stop::wrong(message))
}
