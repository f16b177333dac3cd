//! Measures how long a failover takes with the default durations. It asserts nothing; it prints.

use std::time::{Duration, Instant};

use cloudkeel_manager::election::ElectionConfig;

use crate::candidate::{Contest, LEASE, Running};
use crate::go::GoCandidate;

/// The default durations: 15 s, 10 s and 2 s.
fn usual(contest: &Contest, identity: &str, watch: bool) -> ElectionConfig {
    ElectionConfig {
        watch,
        ..ElectionConfig::new(contest.namespace.name(), LEASE, identity)
    }
}

async fn between_ours(planned: bool, watch: bool) -> Duration {
    let contest = Contest::open().await;
    let first = Running::start(usual(&contest, "a", watch), contest.client.clone());
    first.leads().await;
    let second = Running::start(usual(&contest, "b", watch), contest.client.clone());
    second.waits_for("a").await;
    // Not in step with the renewals.
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..2_000))).await;
    let began = Instant::now();
    if planned {
        first.stop().await;
    } else {
        first.crash().await;
    }
    second.leads().await;
    began.elapsed()
}

async fn between_go(planned: bool) -> Duration {
    let contest = Contest::open().await;
    let mut first = GoCandidate::start(&usual(&contest, "a", false)).await;
    first.leads("a").await;
    let mut second = GoCandidate::start(&usual(&contest, "b", false)).await;
    second.waits_for("a").await;
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..2_000))).await;
    let began = Instant::now();
    if planned {
        first.stop().await;
    } else {
        first.crash().await;
    }
    second.leads("b").await;
    began.elapsed()
}

async fn report(what: &str, runs: impl Iterator<Item = impl Future<Output = Duration>>) {
    let mut took = futures::future::join_all(runs).await;
    took.sort();
    let shown: Vec<_> = took
        .iter()
        .map(|took| format!("{:.2}", took.as_secs_f64()))
        .collect();
    println!("{what:<38} {} s", shown.join(" "));
    assert!(!took.is_empty());
}

#[tokio::test]
#[ignore = "a measurement: cargo xtask test --tier long"]
async fn fail_over_times() {
    const RUNS: usize = 5;
    let runs = || 0..RUNS;
    report(
        "ours, released, watching:",
        runs().map(|_| between_ours(true, true)),
    )
    .await;
    report(
        "ours, released, polling:",
        runs().map(|_| between_ours(true, false)),
    )
    .await;
    report("Go's, released, polling:", runs().map(|_| between_go(true))).await;
    report(
        "ours, crashed, watching:",
        runs().map(|_| between_ours(false, true)),
    )
    .await;
    report(
        "ours, crashed, polling:",
        runs().map(|_| between_ours(false, false)),
    )
    .await;
    report("Go's, crashed, polling:", runs().map(|_| between_go(false))).await;
}
