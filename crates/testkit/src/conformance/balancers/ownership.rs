//! Whose balancer it is. Nothing foreign is touched.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{CloudError, ErrorKind, LoadBalancerSpec, Outcome, Wish};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::{Mark, Stop};
use crate::conformance::wishes::spec;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/foreign-namesake-refused",
        "another cluster's balancer of the same name is NotOurs and stays as it is",
        |bench| namesake(bench, Mark::OtherCluster).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/unmarked-namesake-refused",
        "nobody's balancer of the same name is NotOurs and stays as it is",
        |bench| namesake(bench, Mark::Nobody).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/foreign-namesake-not-deleted",
        "a Service that goes leaves another cluster's balancer of its name alone",
        |bench| not_deleted(bench, Mark::OtherCluster).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/unmarked-namesake-not-deleted",
        "a Service that goes leaves nobody's balancer of its name alone",
        |bench| not_deleted(bench, Mark::Nobody).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/adopted-on-request",
        "a balancer that the Service asks for by ID is taken over, and no other is made",
        |bench| adopted(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/foreign-not-adopted",
        "another cluster's balancer is not taken over even if asked for",
        |bench| not_adopted(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/absent-not-adopted",
        "asking for a balancer that does not exist is an error and makes none",
        |bench| absent_not_adopted(bench).boxed(),
    ),
];

/// The name that the balancer of this wish has.
async fn name_of(bench: &Bench<'_>, wish: &LoadBalancerSpec) -> Result<String, Stop> {
    bench.settle(wish).await?;
    let name = bench.only_balancer()?.name;
    bench.remove(&wish.claim).await?;
    Ok(name)
}

async fn namesake(bench: &Bench<'_>, mark: Mark) -> Done {
    let nodes = bench.machines(1).await?;
    let wish = spec(&[80], &nodes);
    let name = name_of(bench, &wish).await?;
    bench.cloud.add_balancer(&name, mark).await?;
    let theirs = bench.only_balancer()?;
    let apply = bench.balancers()?.apply(Wish::Present(&wish));
    let (outcome, calls) = bench.counted(apply).await;
    let kind = outcome.as_ref().err().map(CloudError::kind);
    let survey = bench.balancers()?.survey(std::slice::from_ref(&wish)).await;
    ensure(bench.only_balancer()? == theirs, || {
        "it was touched".to_owned()
    })?;
    ensure(kind == Some(ErrorKind::NotOurs), || {
        format!("a balancer called {name:?} is in the way, and the outcome is {outcome:?}")
    })?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls", calls.mutating)
    })?;
    ensure(survey.iter().all(Result::is_err), || {
        format!("a survey does not see it in the way: {survey:?}")
    })
}

async fn not_deleted(bench: &Bench<'_>, mark: Mark) -> Done {
    let wish = spec(&[80], &[]);
    let name = name_of(bench, &wish).await?;
    bench.cloud.add_balancer(&name, mark).await?;
    let theirs = bench.only_balancer()?;
    let apply = bench.balancers()?.apply(Wish::Absent(&wish.claim));
    let (outcome, calls) = bench.counted(apply).await;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls", calls.mutating)
    })?;
    ensure(bench.only_balancer()? == theirs, || {
        "it was touched".to_owned()
    })?;
    ensure(matches!(outcome, Ok(Outcome::Gone { .. })), || {
        format!("the Service cannot go because of it: {outcome:?}")
    })
}

async fn adopted(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    let id = bench
        .cloud
        .add_balancer("made-by-hand", Mark::Nobody)
        .await?;
    let mut wish = spec(&[80], &nodes);
    wish.claim.adopt = Some(id.clone());
    let status = bench.settle(&wish).await?;
    ensure(status.id.as_deref() == Some(&*id), || {
        format!("asked for was {id}, got {:?}", status.id)
    })?;
    bench.only_balancer()?.misses(&wish).map_err(Stop::Wrong)?;
    // From now on its mark says whose it is.
    wish.claim.adopt = None;
    let (status, calls) = bench.counted(bench.settle(&wish)).await;
    let id_now = status?.id;
    ensure(id_now.as_deref() == Some(&*id), || {
        format!("without the annotation it is {id_now:?}, not {id}")
    })?;
    let only_a_name = calls.mutating <= 1;
    ensure(only_a_name, || {
        format!("{} mutating calls without the annotation", calls.mutating)
    })
}

async fn not_adopted(bench: &Bench<'_>) -> Done {
    let id = bench
        .cloud
        .add_balancer("somebody-elses", Mark::OtherCluster)
        .await?;
    let theirs = bench.only_balancer()?;
    let mut wish = spec(&[80], &[]);
    wish.claim.adopt = Some(id);
    let apply = bench.balancers()?.apply(Wish::Present(&wish));
    let (outcome, calls) = bench.counted(apply).await;
    let kind = outcome.as_ref().err().map(CloudError::kind);
    ensure(bench.only_balancer()? == theirs, || {
        "it was touched".to_owned()
    })?;
    ensure(
        kind == Some(ErrorKind::NotOurs) && calls.mutating == 0,
        || format!("the outcome is {outcome:?} after {calls:?}"),
    )
}

async fn absent_not_adopted(bench: &Bench<'_>) -> Done {
    let id = bench
        .cloud
        .add_balancer("short-lived", Mark::Nobody)
        .await?;
    let mut wish = spec(&[80], &[]);
    wish.claim.adopt = Some(format!("{id}404"));
    let apply = bench.balancers()?.apply(Wish::Present(&wish));
    let (outcome, calls) = bench.counted(apply).await;
    ensure(outcome.is_err() && calls.mutating == 0, || {
        format!("the outcome is {outcome:?} after {calls:?}")
    })
}
