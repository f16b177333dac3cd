//! Runs the checks, each on a cloud of its own.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use cloudkeel_api::{Capability, CloudProvider};
use futures::{FutureExt as _, StreamExt as _, stream};

use super::adapter::{Adapter, Stop};
use super::check::{Check, Done};
use super::desired::balancer_ref;
use super::env::TestEnv;
use super::report::{CheckResult, Report, Verdict};
use super::{background, balancers, credentials, instances, routes, volumes, webhooks};

fn all() -> impl Iterator<Item = &'static Check> {
    instances::checks()
        .chain(credentials::CHECKS)
        .chain(balancers::checks())
        .chain(routes::checks())
        .chain(volumes::CHECKS)
        .chain(webhooks::CHECKS)
        .chain(background::CHECKS)
}

/// The names of all checks, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|check| check.name)
}

/// The names of all checks and what each of them asks.
pub(super) fn questions() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|check| (check.name, check.about))
}

/// The names of the checks that no adapter can declare as a gap.
pub fn mandatory() -> impl Iterator<Item = &'static str> {
    all()
        .filter(|check| check.mandatory)
        .map(|check| check.name)
}

/// Runs all checks.
pub async fn run(adapter: &dyn Adapter) -> Report {
    run_some(adapter, |_| true).await
}

/// Runs the checks of instances and of credentials, for another source of instances: a provider whose instances come from
/// two APIs has an adapter for each.
pub async fn run_instances(adapter: &dyn Adapter) -> Report {
    let groups = ["instances/", "credentials/"];
    run_some(adapter, |name| {
        groups.iter().any(|group| name.starts_with(group))
    })
    .await
}

/// Runs the checks whose names are chosen.
pub async fn run_some(adapter: &dyn Adapter, chosen: impl Fn(&str) -> bool) -> Report {
    let began = Instant::now();
    let checks: Vec<_> = all().filter(|check| chosen(check.name)).collect();
    let done = stream::iter(checks).map(|check| async move {
        let verdict = verdict(adapter, check).await;
        CheckResult {
            name: check.name,
            about: check.about,
            verdict,
        }
    });
    let mut results: Vec<_> = done.buffered(adapter.concurrency().max(1)).collect().await;
    results.extend(unknown_gaps(adapter));
    Report {
        provider: adapter.name().to_owned(),
        results,
        took: began.elapsed(),
    }
}

/// Whether a declared gap is about a check: by its name, or by its group, as in `volumes/*` or `load-balancers/shared-*`.
fn is_about(declared: &str, name: &str) -> bool {
    match declared.strip_suffix('*') {
        Some(group) => group.ends_with(['/', '-']) && name.starts_with(group),
        None => declared == name,
    }
}

/// Declarations about checks that do not exist would hide the rename of one.
fn unknown_gaps(adapter: &dyn Adapter) -> Vec<CheckResult> {
    let known = |declared: &str| all().any(|check| is_about(declared, check.name));
    let gaps = adapter.gaps().iter();
    let failed = |(name, reason): &(&'static str, &str)| {
        let why = match known(name) {
            false => "there is no check of this name",
            true if reason.is_empty() => "it is declared without a reason",
            true => return None,
        };
        Some(CheckResult {
            name,
            about: "a declared gap names a check and has a reason",
            verdict: Verdict::Failed {
                why: why.to_owned(),
            },
        })
    };
    gaps.filter_map(failed).collect()
}

async fn verdict(adapter: &dyn Adapter, check: &Check) -> Verdict {
    let declared = declared(adapter, check);
    if let (Some(reason), true) = (declared, check.mandatory) {
        let why = format!("it is mandatory, but is declared as a gap: {reason}");
        return Verdict::Failed { why };
    }
    let env = match contained(adapter, TestEnv::new(adapter)).await {
        Ok(env) => env,
        Err(stop) => {
            let why = format!("no cloud to check it on: {stop}");
            return Verdict::Failed { why };
        }
    };
    if let Some(lacking) = check.capability.filter(|c| lacks(&*env.provider, *c)) {
        return skipped(declared, &format!("the provider has no {lacking}"));
    }
    let done = contained(adapter, (check.run)(&env)).await;
    classify(done, declared, missing_feature(check, &*env.provider))
}

fn lacks(provider: &dyn CloudProvider, capability: Capability) -> bool {
    !provider.capabilities().contains(&capability)
}

/// What becomes of some work that may also panic or hang.
async fn contained<T>(
    adapter: &dyn Adapter,
    work: impl Future<Output = Result<T, Stop>>,
) -> Result<T, Stop> {
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(adapter.timeout(), work).await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => Err(Stop::failed(format!("it panicked: {}", message(&*panic)))),
        Err(_) => Err(Stop::failed(format!(
            "it hung for {}s",
            adapter.timeout().as_secs()
        ))),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

/// The reason with which the adapter declares a check as a gap.
fn declared<'a>(adapter: &'a dyn Adapter, check: &Check) -> Option<&'a str> {
    let mut gaps = adapter.gaps().iter();
    let found = gaps.find(|(name, _)| is_about(name, check.name));
    found.map(|(_, reason)| *reason)
}

/// What the provider says it does not have, in words.
fn missing_feature(check: &Check, provider: &dyn CloudProvider) -> Option<&'static str> {
    let profile = provider.load_balancers()?.profile(&balancer_ref("web"));
    let feature = check
        .feature
        .filter(|feature| !(feature.is_there)(&profile.features))?;
    Some(feature.words)
}

/// A check that does not have to pass, or that nothing can be said about: a gap if it was declared.
fn skipped(declared: Option<&str>, why: &str) -> Verdict {
    match declared {
        Some(reason) => Verdict::Gap {
            why: reason.to_owned(),
        },
        None => Verdict::Failed {
            why: format!("the adapter declares no gap, but {why}"),
        },
    }
}

fn classify(done: Done, declared: Option<&str>, missing: Option<&str>) -> Verdict {
    match (done, missing, declared) {
        (Ok(()), None, None) => Verdict::Passed,
        (Ok(()), Some(missing), _) => Verdict::Failed {
            why: format!("it works, but the provider's features say: {missing}"),
        },
        (Ok(()), None, Some(reason)) => Verdict::Failed {
            why: format!("it works, but is declared as a gap: {reason}"),
        },
        (Err(_), Some(missing), declared) => {
            skipped(declared, &format!("the provider's features say: {missing}"))
        }
        (Err(Stop::Failed(why)), None, None) => Verdict::Failed { why },
        (Err(stop), None, declared) => skipped(declared, &stop.to_string()),
    }
}
