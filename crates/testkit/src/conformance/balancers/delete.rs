//! Deleting balancers.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{BalancerRef, DesiredState, ErrorKind, LoadBalancerSpec, Outcome};
use futures::FutureExt as _;

use crate::conformance::ActualBalancer;
use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::{balancer_ref, spec, spec_of};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

/// A removal that another project answers is checked this often.
const POLLS: usize = 5;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/deleted-without-leaks",
        "a Service that goes leaves nothing behind",
        |env| deleted(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/deleted-twice",
        "deleting what is not there succeeds without a mutating call",
        |env| twice(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/never-created-is-gone",
        "a Service that never had a balancer is Gone without a mutating call",
        |env| never_made(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/protected-is-kept",
        "a balancer that is protected in the cloud is kept, and trying again changes nothing",
        |env| protected(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/released-stays",
        "a balancer that is released stays as it is and is no longer the Service's",
        |env| released(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/released-may-be-adopted",
        "a balancer that is released is taken over by a Service that asks for it",
        |env| inherited(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/only-real-removals-are-acknowledged",
        "a removal that another project answers with 'no such balancer' is not acknowledged, a real one is",
        |env| acknowledgement(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/recreated",
        "a Service may have a balancer again",
        |env| again(env).boxed(),
    ),
];

async fn deleted(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let before = env.resources().await?;
    let desired = spec(&[80, 443], &nodes);
    env.settle(&desired).await?;
    env.remove(&desired.balancer_ref).await?;
    let after = env.resources().await?;
    ensure(before == after, || {
        format!("before there was {before:?}, afterwards {after:?}")
    })
}

/// That the Service has no balancer, and that this costs nothing to find out.
async fn is_gone(env: &TestEnv<'_>, balancer_ref: &BalancerRef) -> Done {
    let apply = env.balancers()?.apply(DesiredState::Absent(balancer_ref));
    let (outcome, calls) = env.counted(apply).await;
    let outcome = outcome?;
    let nothing_done = outcome.done().is_empty() && calls.mutating == 0;
    ensure(
        matches!(outcome, Outcome::Gone { .. }) && nothing_done,
        || format!("the outcome is {outcome:?} after {calls:?}"),
    )
}

async fn twice(env: &TestEnv<'_>) -> Done {
    let desired = spec(&[80], &[]);
    env.settle(&desired).await?;
    env.remove(&desired.balancer_ref).await?;
    is_gone(env, &desired.balancer_ref).await
}

async fn never_made(env: &TestEnv<'_>) -> Done {
    env.settle(&spec_of("other", &[80], &[])).await?;
    is_gone(env, &balancer_ref("never")).await?;
    env.only_balancer().await.map(drop)
}

async fn protected(env: &TestEnv<'_>) -> Done {
    let desired = spec(&[80], &[]);
    env.settle(&desired).await?;
    let id = env.only_balancer().await?.id;
    env.cloud.change(Change::Protect(&id)).await?;
    // An error, an end and a wait are all allowed. An end must say what was kept or released, so that the
    // controller does not wait for a balancer that it cannot find.
    let first = env
        .balancers()?
        .apply(DesiredState::Absent(&desired.balancer_ref))
        .await;
    env.balancer(&id).await?;
    if let Ok(Outcome::Gone { done, kept, .. }) = &first {
        ensure(!done.is_empty() || !kept.is_empty(), || {
            "it says that nothing was there".to_owned()
        })?;
    }
    let apply = env
        .balancers()?
        .apply(DesiredState::Absent(&desired.balancer_ref));
    let (outcome, calls) = env.counted(apply).await;
    env.balancer(&id).await?;
    ensure(calls.mutating == 0, || {
        format!(
            "trying again makes {} mutating calls: {outcome:?}",
            calls.mutating
        )
    })
}

/// Releases the balancer of a Service, and shows that it is still there.
async fn release(env: &TestEnv<'_>, desired: &LoadBalancerSpec) -> Result<ActualBalancer, Stop> {
    env.settle(desired).await?;
    let before = env.only_balancer().await?;
    let mut is_said = false;
    for _ in 0..POLLS {
        let outcome = match env
            .balancers()?
            .apply(DesiredState::Released(&desired.balancer_ref))
            .await
        {
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
                return env.balancer(&before.id).await;
            }
            Outcome::Pending { check_after, .. } => env.cloud.wait(check_after).await,
            outcome @ (Outcome::Settled { .. } | Outcome::Incomplete { .. }) => {
                return Err(Stop::failed(format!("releasing it ended as {outcome:?}")));
            }
        }
    }
    Err(Stop::failed("it is still not released"))
}

async fn released(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let desired = spec(&[80], &nodes);
    let kept = release(env, &desired).await?;
    kept.check_matches(&desired).map_err(Stop::Failed)?;
    // It is no longer the Service's, so a Service that goes finds nothing.
    is_gone(env, &desired.balancer_ref).await?;
    env.balancer(&kept.id).await.map(drop)
}

async fn inherited(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let kept = release(env, &spec(&[80], &nodes)).await?;
    let mut successor = spec_of("successor", &[80], &nodes);
    successor.balancer_ref.adopt = Some(kept.id.clone());
    env.settle(&successor).await?;
    let adopted = env.only_balancer().await?;
    ensure(adopted.id == kept.id, || {
        format!("balancer {} was made in place of {}", adopted.id, kept.id)
    })?;
    env.remove(&successor.balancer_ref).await
}

/// Whether the cloud is said to have agreed to a removal, by the end of it or of some checks.
async fn is_acknowledged(env: &TestEnv<'_>, balancer_ref: &BalancerRef) -> Result<bool, Stop> {
    for _ in 0..POLLS {
        match env
            .balancers()?
            .apply(DesiredState::Absent(balancer_ref))
            .await
        {
            Ok(Outcome::Gone { acknowledged, .. }) => return Ok(acknowledged),
            Ok(Outcome::Pending {
                acknowledged: true, ..
            }) => return Ok(true),
            Ok(Outcome::Pending { check_after, .. }) => env.cloud.wait(check_after).await,
            Ok(Outcome::Settled { .. } | Outcome::Incomplete { .. }) => {
                return Err(Stop::failed(
                    "no balancer was asked for, and the outcome has one",
                ));
            }
            // An error acknowledges nothing.
            Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

async fn acknowledgement(env: &TestEnv<'_>) -> Done {
    let desired = spec(&[80], &[]);
    env.settle(&desired).await?;
    let from_now_on = FaultTiming::MutationsFrom(1);
    env.inject(from_now_on, Fault::OtherScope)?;
    let acknowledged = is_acknowledged(env, &desired.balancer_ref).await?;
    env.clear_faults();
    env.only_balancer().await?;
    ensure(!acknowledged, || {
        "it is acknowledged by a project that never had it".to_owned()
    })?;
    let acknowledged = is_acknowledged(env, &desired.balancer_ref).await?;
    env.remove_through_errors(&desired.balancer_ref).await?;
    ensure(acknowledged, || {
        "the cloud removed it, and that is not acknowledged".to_owned()
    })
}

async fn again(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    let desired = spec(&[80], &nodes);
    env.settle(&desired).await?;
    env.remove(&desired.balancer_ref).await?;
    env.settle(&desired).await?;
    env.only_balancer_matches(&desired).await
}
