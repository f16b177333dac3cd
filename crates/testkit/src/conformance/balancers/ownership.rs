//! Whose balancer it is. Nothing foreign is touched.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{CloudError, DesiredState, ErrorKind, LoadBalancerSpec, Outcome};
use futures::{FutureExt as _, TryFutureExt as _};

use crate::conformance::actual::ActualBalancer;
use crate::conformance::adapter::{Change, OwnerLabels, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/other-clusters-name-refused",
        "another cluster's balancer of the same name is NotOurs and stays as it is",
        |env| refused(env, OwnerLabels::OtherCluster).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/unowned-name-refused",
        "a balancer of the same name without owner labels is NotOurs and stays as it is",
        |env| refused(env, OwnerLabels::None).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/other-clusters-name-not-deleted",
        "a Service that goes leaves another cluster's balancer of its name alone",
        |env| not_deleted(env, OwnerLabels::OtherCluster).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/unowned-name-not-deleted",
        "a Service that goes leaves a balancer of its name without owner labels alone",
        |env| not_deleted(env, OwnerLabels::None).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/adopted-on-request",
        "a balancer that the Service asks for by ID is taken over, and no other is created",
        |env| adopted(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/other-clusters-not-adopted",
        "another cluster's balancer is not taken over even if asked for",
        |env| not_adopted(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/missing-not-adopted",
        "asking for a balancer that does not exist is an error and creates none",
        |env| absent_not_adopted(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/removed-labels-make-no-second",
        "a balancer that the Service points at, whose labels were removed by hand, is labelled again or NotOurs; there is no second one",
        |env| unlabelled(env).map_ok(drop).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/removed-labels-come-back",
        "a balancer whose labels were removed by hand is as it was once it is adopted on request",
        |env| labelled_again(env).boxed(),
    ),
];

/// The name that the balancer of this desired state has.
async fn name_of(env: &TestEnv<'_>, desired: &LoadBalancerSpec) -> Result<String, Stop> {
    env.settle(desired).await?;
    let name = env.only_balancer().await?.name;
    env.remove(&desired.balancer_ref).await?;
    Ok(name)
}

async fn refused(env: &TestEnv<'_>, owner: OwnerLabels) -> Done {
    let nodes = env.add_nodes(1).await?;
    let desired = spec(&[80], &nodes);
    let name = name_of(env, &desired).await?;
    env.cloud.add_balancer(&name, owner).await?;
    let theirs = env.only_balancer().await?;
    let apply = env.balancers()?.apply(DesiredState::Present(&desired));
    let (outcome, calls) = env.counted(apply).await;
    let kind = outcome.as_ref().err().map(CloudError::kind);
    let observed = env.balancers()?.observe_all(std::slice::from_ref(&desired));
    let observed = observed.await;
    ensure(env.only_balancer().await? == theirs, || {
        "it was touched".to_owned()
    })?;
    ensure(kind == Some(ErrorKind::NotOurs), || {
        format!("a balancer called {name:?} is in the way, and the outcome is {outcome:?}")
    })?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls", calls.mutating)
    })?;
    ensure(observed.iter().all(Result::is_err), || {
        format!("`observe_all` does not report it: {observed:?}")
    })
}

async fn not_deleted(env: &TestEnv<'_>, owner: OwnerLabels) -> Done {
    let desired = spec(&[80], &[]);
    let name = name_of(env, &desired).await?;
    env.cloud.add_balancer(&name, owner).await?;
    let theirs = env.only_balancer().await?;
    let apply = env
        .balancers()?
        .apply(DesiredState::Absent(&desired.balancer_ref));
    let (outcome, calls) = env.counted(apply).await;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls", calls.mutating)
    })?;
    ensure(env.only_balancer().await? == theirs, || {
        "it was touched".to_owned()
    })?;
    ensure(matches!(outcome, Ok(Outcome::Gone { .. })), || {
        format!("the Service cannot go because of it: {outcome:?}")
    })
}

async fn adopted(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    let id = env
        .cloud
        .add_balancer("made-by-hand", OwnerLabels::None)
        .await?;
    let mut desired = spec(&[80], &nodes);
    desired.balancer_ref.adopt = Some(id.clone());
    let status = env.settle(&desired).await?;
    ensure(status.id.as_deref() == Some(&*id), || {
        format!("asked for was {id}, got {:?}", status.id)
    })?;
    env.only_balancer_matches(&desired).await?;
    // From now on its owner labels say whose it is.
    desired.balancer_ref.adopt = None;
    let (status, calls) = env.counted(env.settle(&desired)).await;
    let id_now = status?.id;
    ensure(id_now.as_deref() == Some(&*id), || {
        format!("without the annotation it is {id_now:?}, not {id}")
    })?;
    let only_a_name = calls.mutating <= 1;
    ensure(only_a_name, || {
        format!("{} mutating calls without the annotation", calls.mutating)
    })
}

async fn not_adopted(env: &TestEnv<'_>) -> Done {
    let id = env
        .cloud
        .add_balancer("another-clusters", OwnerLabels::OtherCluster)
        .await?;
    let theirs = env.only_balancer().await?;
    let mut desired = spec(&[80], &[]);
    desired.balancer_ref.adopt = Some(id);
    let apply = env.balancers()?.apply(DesiredState::Present(&desired));
    let (outcome, calls) = env.counted(apply).await;
    let kind = outcome.as_ref().err().map(CloudError::kind);
    ensure(env.only_balancer().await? == theirs, || {
        "it was touched".to_owned()
    })?;
    ensure(
        kind == Some(ErrorKind::NotOurs) && calls.mutating == 0,
        || format!("the outcome is {outcome:?} after {calls:?}"),
    )
}

async fn absent_not_adopted(env: &TestEnv<'_>) -> Done {
    let id = env
        .cloud
        .add_balancer("short-lived", OwnerLabels::None)
        .await?;
    let mut desired = spec(&[80], &[]);
    desired.balancer_ref.adopt = Some(format!("{id}404"));
    let apply = env.balancers()?.apply(DesiredState::Present(&desired));
    let (outcome, calls) = env.counted(apply).await;
    ensure(outcome.is_err() && calls.mutating == 0, || {
        format!("the outcome is {outcome:?} after {calls:?}")
    })
}

/// What a Service asks for whose balancer lost its labels, and that balancer as it was.
async fn unlabelled(env: &TestEnv<'_>) -> Result<(LoadBalancerSpec, ActualBalancer), Stop> {
    let nodes = env.add_nodes(1).await?;
    let mut desired = spec(&[80], &nodes);
    let status = env.settle(&desired).await?;
    desired.balancer_ref.ingress = status.ingress;
    let labelled = env.only_balancer().await?;
    let id = labelled.id.clone();
    env.cloud.change(Change::RemoveLabels(&id)).await?;
    if env.only_balancer().await? == labelled {
        return Err(Stop::not_playable("its balancers have no labels"));
    }
    for _ in 0..2 {
        let applied = env
            .balancers()?
            .apply(DesiredState::Present(&desired))
            .await;
        let there = env.only_balancer().await?;
        ensure(there.id == id, || {
            format!("{id} was replaced by {}", there.id)
        })?;
        let kind = applied.as_ref().err().map(CloudError::kind);
        ensure(kind.is_none_or(|kind| kind == ErrorKind::NotOurs), || {
            format!("a balancer without labels is in the way, and the outcome is {applied:?}")
        })?;
    }
    Ok((desired, labelled))
}

async fn labelled_again(env: &TestEnv<'_>) -> Done {
    let (mut desired, labelled) = unlabelled(env).await?;
    desired.balancer_ref.adopt = Some(labelled.id.clone());
    env.settle(&desired).await?;
    let after = env.only_balancer().await?;
    ensure(after == labelled, || {
        format!("it was {labelled:?} and is {after:?}")
    })
}
