//! Runs the checks, each on a cloud of its own.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use cloudkeel_api::CloudProvider;
use futures::FutureExt as _;

use super::bench::Bench;
use super::check::{Check, Done};
use super::emulator::{Setup, Stop};
use super::report::{CheckResult, Report, Verdict};
use super::wishes::claim;
use super::{balancers, instances, routes};

fn all() -> impl Iterator<Item = &'static Check> {
    instances::checks()
        .chain(balancers::checks())
        .chain(routes::CHECKS)
}

/// The names of all checks, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|check| check.name)
}

/// Runs all checks.
pub async fn run(setup: &dyn Setup) -> Report {
    run_some(setup, |_| true).await
}

/// Runs the checks whose names are chosen.
pub async fn run_some(setup: &dyn Setup, chosen: impl Fn(&str) -> bool) -> Report {
    let mut results = Vec::new();
    for check in all().filter(|check| chosen(check.name)) {
        results.push(CheckResult {
            name: check.name,
            about: check.about,
            verdict: verdict(setup, check).await,
        });
    }
    results.extend(unknown_gaps(setup));
    Report {
        provider: setup.name().to_owned(),
        results,
    }
}

/// Declarations about checks that do not exist would hide the rename of one.
fn unknown_gaps(setup: &dyn Setup) -> Vec<CheckResult> {
    let known = |name: &str| all().any(|check| check.name == name);
    let gaps = setup.gaps().iter().filter(|(name, _)| !known(name));
    let failed = |(name, _): &(&'static str, &str)| CheckResult {
        name,
        about: "a declared gap names a check",
        verdict: Verdict::Failed {
            why: "there is no check of this name".to_owned(),
        },
    };
    gaps.map(failed).collect()
}

async fn verdict(setup: &dyn Setup, check: &Check) -> Verdict {
    let bench = match contained(setup, Bench::new(setup)).await {
        Ok(bench) => bench,
        Err(stop) => {
            let why = format!("no cloud to try it on: {stop}");
            return Verdict::Failed { why };
        }
    };
    let provider = &*bench.provider;
    if let Some(capability) = check.capability
        && !provider.capabilities().contains(&capability)
    {
        let why = format!("declared by the provider: no {capability}");
        return Verdict::Gap { why };
    }
    let done = contained(setup, (check.run)(&bench)).await;
    judge(done, declared(setup, check, provider))
}

/// What becomes of some work that may also panic or hang.
async fn contained<T>(
    setup: &dyn Setup,
    work: impl Future<Output = Result<T, Stop>>,
) -> Result<T, Stop> {
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(setup.patience(), work).await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => Err(Stop::wrong(format!("it panicked: {}", words(&*panic)))),
        Err(_) => Err(Stop::wrong(format!(
            "it hung for {}s",
            setup.patience().as_secs()
        ))),
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a word")
}

/// Why a check need not pass, if somebody said so.
fn declared(setup: &dyn Setup, check: &Check, provider: &dyn CloudProvider) -> Option<String> {
    let mut gaps = setup.gaps().iter();
    if let Some((_, why)) = gaps.find(|(name, _)| *name == check.name) {
        return Some((*why).to_owned());
    }
    let features = provider.load_balancers()?.profile(&claim("web")).features;
    let feature = check
        .feature
        .filter(|feature| !(feature.is_there)(&features))?;
    Some(format!("declared by the provider: {}", feature.words))
}

fn judge(done: Done, declared: Option<String>) -> Verdict {
    match (done, declared) {
        (Ok(()), None) => Verdict::Passed,
        (Ok(()), Some(gap)) => Verdict::Failed {
            why: format!("it works, but is declared as a gap: {gap}"),
        },
        (Err(_), Some(why)) => Verdict::Gap { why },
        (Err(Stop::Wrong(why)), None) => Verdict::Failed { why },
        (Err(Stop::Unsupported(why)), None) => Verdict::Gap {
            why: format!("declared by the provider: {why}"),
        },
        (Err(Stop::CannotPlay(why)), None) => Verdict::Gap {
            why: format!("the emulator cannot play it: {why}"),
        },
    }
}
