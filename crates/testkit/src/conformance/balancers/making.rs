//! A balancer is made once, and then left alone.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{ErrorKind, Wish};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, balancers_of, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::Stop;
use crate::conformance::wishes::{spec, spec_of};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/created",
        "a Service gets one balancer with its ports and targets, an ID and an address",
        |bench| created(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/ensured-twice-is-one",
        "the same wish again makes no mutating call, and no more calls than a look",
        |bench| twice(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/restart-changes-nothing",
        "a provider that remembers nothing makes no mutating call for what is right",
        |bench| restart(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/plan-changes-nothing",
        "`plan` and `survey` say what would be done, and do not do it",
        |bench| planned(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/survey-is-cheap",
        "a survey of many Services costs no more than as many looks, and finds nothing to do",
        |bench| surveyed(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/drift-is-repaired",
        "what somebody else took away is seen by a survey and put back",
        |bench| drift(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/missing-is-not-made-anew",
        "`apply_to_existing` says NotFound for a balancer that is not there, and makes none",
        |bench| missing(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/owned-are-listed",
        "what was made for this cluster is listed with its Service",
        |bench| owned(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/services-do-not-meet",
        "two Services have two balancers, and work on one leaves the other alone",
        |bench| apart(bench).boxed(),
    ),
];

async fn created(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(3).await?;
    let wish = spec(&[80, 443], &nodes);
    let status = bench.settle(&wish).await?;
    let made = bench.only_balancer()?;
    made.misses(&wish).map_err(Stop::Wrong)?;
    ensure(status.id.as_ref() == Some(&made.id), || {
        format!("its ID is {}, the status says {:?}", made.id, status.id)
    })?;
    ensure(!status.ingress.is_empty(), || {
        "the status has no address".to_owned()
    })
}

async fn twice(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(3).await?;
    let wish = spec(&[80, 443], &nodes);
    let first = bench.settle(&wish).await?;
    let made = bench.only_balancer()?;
    let (plan, look) = bench
        .counted(bench.balancers()?.plan(Wish::Present(&wish)))
        .await;
    let plan = plan?;
    ensure(plan.is_empty(), || {
        format!("a settled wish has a plan:\n{plan}")
    })?;
    let (again, calls) = bench.counted(bench.settle(&wish)).await;
    ensure(again? == first, || "the status differs".to_owned())?;
    ensure(bench.only_balancer()? == made, || {
        "the balancer differs".to_owned()
    })?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls for what is there", calls.mutating)
    })?;
    ensure(calls.total <= look.total, || {
        format!("{} calls, a look takes {}", calls.total, look.total)
    })
}

async fn restart(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(3).await?;
    let wish = spec(&[80, 443], &nodes);
    bench.settle(&wish).await?;
    let restarted = bench.cloud.connect().await?;
    let apply = balancers_of(&*restarted)?.apply(Wish::Present(&wish));
    let (outcome, calls) = bench.counted(apply).await;
    let done = outcome?.done().clone();
    ensure(calls.mutating == 0 && done.is_empty(), || {
        format!("{} mutating calls after a restart: {done}", calls.mutating)
    })
}

async fn planned(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let wish = spec(&[80], &nodes);
    let before = bench.cloud.calls();
    let plan = bench.balancers()?.plan(Wish::Present(&wish)).await?;
    ensure(!plan.is_empty(), || {
        "there is nothing to do for a balancer that is not there".to_owned()
    })?;
    let survey = bench.balancers()?.survey(std::slice::from_ref(&wish)).await;
    ensure(survey.len() == 1, || {
        format!("a survey of one Service has {} answers", survey.len())
    })?;
    for surveyed in survey {
        let plan = surveyed?.plan;
        ensure(!plan.is_empty(), || {
            "a survey sees nothing to do".to_owned()
        })?;
    }
    let calls = bench.cloud.calls().since(before);
    ensure(
        calls.mutating == 0 && bench.cloud.balancers().is_empty(),
        || format!("a plan makes {} mutating calls", calls.mutating),
    )
}

async fn surveyed(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let specs: Vec<_> = ["one", "two", "three", "four"]
        .iter()
        .map(|name| spec_of(name, &[80], &nodes))
        .collect();
    let mut looks = 0;
    for wish in &specs {
        bench.settle(wish).await?;
        let plan = bench.balancers()?.plan(Wish::Present(wish));
        looks += bench.counted(plan).await.1.total;
    }
    let (survey, calls) = bench.counted(bench.balancers()?.survey(&specs)).await;
    ensure(survey.len() == specs.len(), || {
        format!("{} answers for {} Services", survey.len(), specs.len())
    })?;
    for surveyed in survey {
        let surveyed = surveyed?;
        ensure(surveyed.plan.is_empty(), || {
            format!("a survey sees a difference:\n{}", surveyed.plan)
        })?;
        ensure(surveyed.report.status.id.is_some(), || {
            "a survey does not see the balancer".to_owned()
        })?;
    }
    ensure(calls.total <= looks && calls.mutating == 0, || {
        format!("a survey makes {calls:?}, single looks {looks} calls")
    })
}

async fn drift(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let wish = spec(&[80, 443], &nodes);
    bench.settle(&wish).await?;
    let before = bench.only_balancer()?;
    bench.cloud.damage_balancer(&before.id).await?;
    for surveyed in bench.balancers()?.survey(std::slice::from_ref(&wish)).await {
        let plan = surveyed?.plan;
        ensure(!plan.is_empty(), || "a survey does not see it".to_owned())?;
    }
    bench.settle(&wish).await?;
    let (before, after) = (before.shape(), bench.only_balancer()?.shape());
    ensure(before == after, || {
        format!("it was {before:?} and is {after:?}")
    })
}

async fn missing(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    let wish = spec(&[80], &nodes);
    let apply = bench.balancers()?.apply_to_existing(&wish);
    let (outcome, calls) = bench.counted(apply).await;
    let kind = outcome.as_ref().err().map(cloudkeel_api::CloudError::kind);
    ensure(kind == Some(ErrorKind::NotFound), || {
        format!("the outcome is {outcome:?}")
    })?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls", calls.mutating)
    })
}

async fn owned(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    let wish = spec(&[80], &nodes);
    let status = bench.settle(&wish).await?;
    let owned = match bench.balancers()?.owned().await {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return Err(Stop::Unsupported(error.message().to_owned()));
        }
        owned => owned?,
    };
    let ours = owned
        .iter()
        .find(|owned| Some(&owned.id) == status.id.as_ref());
    ensure(
        ours.is_some_and(|o| o.service.as_ref() == Some(&wish.claim.service)),
        || format!("the balancer is not listed with its Service: {owned:?}"),
    )
}

async fn apart(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let (one, other) = (
        spec_of("one", &[80], &nodes),
        spec_of("other", &[80], &nodes),
    );
    let first = bench.settle(&one).await?;
    let second = bench.settle(&other).await?;
    ensure(first.id != second.id, || {
        format!("both Services have balancer {:?}", first.id)
    })?;
    let id = second.id.unwrap_or_default();
    let before = bench.balancer(&id)?;
    bench.settle(&spec_of("one", &[443, 8080], &[])).await?;
    bench.remove(&one.claim).await?;
    let after = bench.balancer(&id)?;
    ensure(before == after, || {
        format!("the other Service's was {before:?} and is {after:?}")
    })
}
