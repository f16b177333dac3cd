//! What the cloud refuses: a target that is not there, and whatever is over a limit.

use std::time::Duration;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{
    CloudError, DesiredState, ErrorKind, Event, LoadBalancerSpec, NodeFacts, Outcome, ProviderId,
    Severity,
};
use futures::FutureExt as _;

use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::{balancer_ref, listener, spec, spec_of};
use crate::conformance::env::{TestEnv, ensure};

/// The biggest limit that the kit fills up.
const BIGGEST: u32 = 200;

/// How often a balancer that the cloud is still working on is checked.
const POLLS: usize = 500;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/refused-target-is-reported",
        "a target whose instance is gone is named by an outcome or an Event within 10 minutes",
        |env| refused_target(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/targets-over-the-limit",
        "of more targets than the balancer takes, as many serve as it takes, and the outcome or an Event says so",
        |env| targets(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/listeners-over-the-limit",
        "of more ports than the balancer takes, as many are served as it takes, with all targets, and the outcome or an Event says so",
        |env| listeners(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/quota-is-limit-exceeded",
        "a balancer over the account's quota is LimitExceeded, the others stay, and it is created once there is room",
        |env| quota(env).boxed(),
    ),
];

/// Applies a spec that is over a limit, until the cloud is done with what fits. The outcome says so, or an Event does.
async fn apply_over_the_limit(env: &TestEnv<'_>, desired: &LoadBalancerSpec) -> Done {
    let is_warning = |event: &Event| event.severity == Severity::Warning;
    env.events();
    let mut warned = false;
    for _ in 0..POLLS {
        let outcome = env
            .balancers()?
            .apply(DesiredState::Present(desired))
            .await?;
        warned |= env.events().iter().any(is_warning);
        match outcome {
            Outcome::Pending { check_after, .. } => env.cloud.wait(check_after).await,
            Outcome::Incomplete { failures, .. } => {
                let kinds = [ErrorKind::LimitExceeded, ErrorKind::Invalid];
                return ensure(kinds.contains(&failures.kind), || {
                    format!("a limit is exceeded, but the outcome is {failures:?}")
                });
            }
            outcome => {
                return ensure(warned, || {
                    format!(
                        "a limit is exceeded, but no Event says so, and the outcome is {outcome:?}"
                    )
                });
            }
        }
    }
    Err(Stop::failed("it is still pending"))
}

/// Whether a text names a Node or its instance.
fn names(text: &str, node: &NodeFacts) -> bool {
    let id = node.provider_id.as_ref().map_or("", ProviderId::as_str);
    let short = id.rsplit('/').next().unwrap_or(id);
    text.contains(&node.name) || (!short.is_empty() && text.contains(short))
}

async fn refused_target(env: &TestEnv<'_>) -> Done {
    let [good, bad] = env.add_some().await?;
    env.cloud.destroy_instance(&bad.name).await?;
    let desired = spec(&[80], &[good, bad.clone()]);
    let mut reported = Vec::new();
    // A Node outlives its instance by minutes, so a provider may wait before it reports.
    for _ in 0..10 {
        match env
            .balancers()?
            .apply(DesiredState::Present(&desired))
            .await?
        {
            Outcome::Incomplete { failures, .. } => {
                reported.push(format!("{} {:?}", failures.message, failures.details));
            }
            Outcome::Settled { .. } | Outcome::Pending { .. } => {}
            outcome @ Outcome::Gone { .. } => {
                return Err(Stop::failed(format!("the outcome is {outcome:?}")));
            }
        }
        reported.extend(env.events().into_iter().map(|event| event.message));
        if reported.iter().any(|text| names(text, &bad)) {
            return Ok(());
        }
        env.cloud.wait(Duration::from_mins(1)).await;
    }
    let message = format!("{} gets no traffic, but reported is {reported:?}", bad.name);
    Err(Stop::failed(message))
}

/// The limit of the cloud, which the provider's profile must not contradict.
fn limit(actual: Option<u32>, profile: Option<u32>, what: &str) -> Result<usize, Stop> {
    if let (Some(actual), Some(profile)) = (actual, profile) {
        ensure(actual == profile, || {
            format!("a balancer takes {actual} {what}, the profile says {profile}")
        })?;
    }
    match actual.or(profile) {
        Some(limit) if limit <= BIGGEST => Ok(limit as usize),
        Some(limit) => Err(Stop::not_playable(format!(
            "{limit} {what} are too many to try"
        ))),
        None => Err(Stop::not_playable(format!("no limit of {what} is known"))),
    }
}

async fn targets(env: &TestEnv<'_>) -> Done {
    let profile = env.balancers()?.profile(&balancer_ref("web"));
    let actual = env.cloud.samples().limits.targets;
    let limit = limit(actual, profile.limits.targets, "targets")?;
    let nodes = env.add_nodes(limit + 2).await?;
    apply_over_the_limit(env, &spec(&[80], &nodes)).await?;
    let served = env.only_balancer().await?.targets.len();
    ensure(served == limit, || {
        format!("{served} targets serve, {limit} could")
    })?;
    let fitting = spec(&[80], nodes.get(2..).unwrap_or_default());
    env.settle(&fitting).await?;
    env.only_balancer_matches(&fitting).await
}

async fn listeners(env: &TestEnv<'_>) -> Done {
    let profile = env.balancers()?.profile(&balancer_ref("web"));
    let actual = env.cloud.samples().limits.listeners;
    let limit = limit(actual, profile.limits.listeners, "listeners")?;
    let nodes = env.add_nodes(2).await?;
    let mut desired = spec(&[], &nodes);
    let ports = (8_000..).take(limit + 2);
    desired.listeners = ports
        .map(|port| listener(cloudkeel_api::Protocol::Tcp, port))
        .collect();
    let mut fitting = desired.clone();
    fitting.listeners.truncate(limit);
    // The balancer begins with less than it takes: a provider that changes all or nothing stays there.
    let mut first = fitting.clone();
    first.listeners.truncate(limit.div_ceil(2));
    first.targets.pop_last();
    env.settle(&first).await?;
    apply_over_the_limit(env, &desired).await?;
    let only = env.only_balancer().await?;
    let (served, targets) = (only.listeners.len(), only.targets.len());
    ensure(served == limit && targets == 2, || {
        format!("{served} ports and {targets} targets are served, {limit} and 2 could be")
    })?;
    env.settle(&fitting).await?;
    env.only_balancer_matches(&fitting).await
}

async fn quota(env: &TestEnv<'_>) -> Done {
    let first = spec_of("first", &[80], &[]);
    let second = spec_of("second", &[80], &[]);
    env.settle(&first).await?;
    let before = env.only_balancer().await?;
    env.cloud.change(Change::BalancerQuota(1)).await?;
    let outcome = env.balancers()?.apply(DesiredState::Present(&second)).await;
    let kind = outcome.as_ref().err().map(CloudError::kind);
    ensure(kind == Some(ErrorKind::LimitExceeded), || {
        format!("the quota is used up, but the outcome is {outcome:?}")
    })?;
    ensure(env.only_balancer().await? == before, || {
        "the other one was changed".to_owned()
    })?;
    env.cloud.change(Change::BalancerQuota(10)).await?;
    let id = env.settle(&second).await?.id.unwrap_or_default();
    let made = env.balancer(&id).await?;
    made.check_matches(&second).map_err(Stop::Failed)
}
