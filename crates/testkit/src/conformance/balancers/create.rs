//! A balancer is created once, and then left alone.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{DesiredState, ErrorKind, LoadBalancerSpec};
use futures::FutureExt as _;

use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::{spec, spec_of};
use crate::conformance::env::{TestEnv, balancers_of, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/created",
        "a Service gets one balancer with its ports and targets, an ID and an address",
        |env| created(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/applied-twice-is-one",
        "the same spec again makes no mutating call, and no more calls than a plan",
        |env| twice(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/restart-changes-nothing",
        "a provider that remembers nothing makes no mutating call for what is right",
        |env| restart(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/plan-changes-nothing",
        "`plan` and `observe_all` say what would be done, and do not do it",
        |env| planned(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/drift-check-is-cheap",
        "`observe_all` of many Services costs no more than as many plans, and finds nothing to do",
        |env| observed(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/drift-is-repaired",
        "listeners and targets that were removed by hand are seen by `observe_all` and put back",
        |env| damaged(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/missing-is-not-recreated",
        "`apply_to_existing` is NotFound for a balancer that is not there, and creates none",
        |env| missing(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/owned-are-listed",
        "`owned` lists what was created for this cluster, with its Service",
        |env| owned(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/services-are-separate",
        "two Services have two balancers, and work on one leaves the other alone",
        |env| apart(env).boxed(),
    ),
];

async fn created(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let desired = spec(&[80, 443], &nodes);
    let status = env.settle(&desired).await?;
    let made = env.only_balancer().await?;
    made.check_matches(&desired).map_err(Stop::Failed)?;
    ensure(status.id.as_ref() == Some(&made.id), || {
        format!("its ID is {}, the status says {:?}", made.id, status.id)
    })?;
    ensure(!status.ingress.is_empty(), || {
        "the status has no address".to_owned()
    })
}

async fn twice(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let desired = spec(&[80, 443], &nodes);
    let first = env.settle(&desired).await?;
    let made = env.only_balancer().await?;
    let (plan, planning) = env
        .counted(env.balancers()?.plan(DesiredState::Present(&desired)))
        .await;
    let plan = plan?;
    ensure(plan.is_empty(), || {
        format!("a settled spec has a plan:\n{plan}")
    })?;
    let (again, calls) = env.counted(env.settle(&desired)).await;
    ensure(again? == first, || "the status differs".to_owned())?;
    ensure(env.only_balancer().await? == made, || {
        "the balancer differs".to_owned()
    })?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls for what is there", calls.mutating)
    })?;
    ensure(calls.total <= planning.total, || {
        format!("{} calls, a plan takes {}", calls.total, planning.total)
    })
}

async fn restart(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let desired = spec(&[80, 443], &nodes);
    env.settle(&desired).await?;
    let restarted = env.reconnect().await?;
    let apply = balancers_of(&*restarted)?.apply(DesiredState::Present(&desired));
    let (outcome, calls) = env.counted(apply).await;
    let done = outcome?.done().clone();
    ensure(calls.mutating == 0 && done.is_empty(), || {
        format!("{} mutating calls after a restart: {done}", calls.mutating)
    })
}

async fn planned(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let desired = spec(&[80], &nodes);
    let before = env.calls();
    let plan = env
        .balancers()?
        .plan(DesiredState::Present(&desired))
        .await?;
    ensure(!plan.is_empty(), || {
        "there is nothing to do for a balancer that is not there".to_owned()
    })?;
    let observed = env.balancers()?.observe_all(std::slice::from_ref(&desired));
    let observed = observed.await;
    ensure(observed.len() == 1, || {
        format!(
            "`observe_all` of one Service has {} answers",
            observed.len()
        )
    })?;
    for observation in observed {
        let plan = observation?.plan;
        ensure(!plan.is_empty(), || {
            "`observe_all` sees nothing to do".to_owned()
        })?;
    }
    let calls = env.calls().since(before);
    let created = !env.cloud.balancers().await?.is_empty();
    ensure(calls.mutating == 0 && !created, || {
        format!("a plan makes {} mutating calls", calls.mutating)
    })
}

async fn observed(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let specs: Vec<_> = ["one", "two", "three", "four"]
        .iter()
        .map(|name| spec_of(name, &[80], &nodes))
        .collect();
    let mut planning = 0;
    for desired in &specs {
        env.settle(desired).await?;
        let plan = env.balancers()?.plan(DesiredState::Present(desired));
        planning += env.counted(plan).await.1.total;
    }
    let (observed, calls) = env.counted(env.balancers()?.observe_all(&specs)).await;
    ensure(observed.len() == specs.len(), || {
        format!("{} answers for {} Services", observed.len(), specs.len())
    })?;
    for observation in observed {
        let observation = observation?;
        ensure(observation.plan.is_empty(), || {
            format!("`observe_all` sees a difference:\n{}", observation.plan)
        })?;
        ensure(observation.report.status.id.is_some(), || {
            "`observe_all` does not see the balancer".to_owned()
        })?;
    }
    ensure(calls.total <= planning && calls.mutating == 0, || {
        format!("`observe_all` makes {calls:?}, single plans {planning} calls")
    })
}

async fn damaged(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let desired = spec(&[80, 443], &nodes);
    env.settle(&desired).await?;
    let before = env.only_balancer().await?;
    env.cloud.change(Change::Damage(&before.id)).await?;
    is_seen(env, &desired).await?;
    env.settle(&desired).await?;
    let (before, after) = (before.shape(), env.only_balancer().await?.shape());
    ensure(before == after, || {
        format!("it was {before:?} and is {after:?}")
    })
}

/// That `observe_all` sees a difference.
pub(super) async fn is_seen(env: &TestEnv<'_>, desired: &LoadBalancerSpec) -> Done {
    let observed = env.balancers()?.observe_all(std::slice::from_ref(desired));
    for observation in observed.await {
        let plan = observation?.plan;
        ensure(!plan.is_empty(), || {
            "`observe_all` does not see it".to_owned()
        })?;
    }
    Ok(())
}

async fn missing(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    let desired = spec(&[80], &nodes);
    let apply = env.balancers()?.apply_to_existing(&desired);
    let (outcome, calls) = env.counted(apply).await;
    let kind = outcome.as_ref().err().map(cloudkeel_api::CloudError::kind);
    ensure(kind == Some(ErrorKind::NotFound), || {
        format!("the outcome is {outcome:?}")
    })?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls", calls.mutating)
    })
}

async fn owned(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    let desired = spec(&[80], &nodes);
    let status = env.settle(&desired).await?;
    let owned = match env.balancers()?.owned().await {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return Err(Stop::Unsupported(error.message().to_owned()));
        }
        owned => owned?,
    };
    let ours = owned
        .iter()
        .find(|owned| Some(&owned.id) == status.id.as_ref());
    let service = &desired.balancer_ref.service;
    ensure(
        ours.and_then(|owned| owned.service.as_ref())
            .is_some_and(|it| it.to_string() == service.to_string() && it.has_uid(&service.uid)),
        || format!("the balancer is not listed with its Service: {owned:?}"),
    )
}

async fn apart(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let (one, other) = (
        spec_of("one", &[80], &nodes),
        spec_of("other", &[80], &nodes),
    );
    let first = env.settle(&one).await?;
    let second = env.settle(&other).await?;
    ensure(first.id != second.id, || {
        format!("both Services have balancer {:?}", first.id)
    })?;
    let id = second.id.unwrap_or_default();
    let before = env.balancer(&id).await?;
    env.settle(&spec_of("one", &[443, 8080], &[])).await?;
    env.remove(&one.balancer_ref).await?;
    let after = env.balancer(&id).await?;
    ensure(before == after, || {
        format!("the other Service's was {before:?} and is {after:?}")
    })
}
