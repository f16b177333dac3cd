//! Health checks: each target is checked at its interval, and new ones at once.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::pool::Pool;
use super::probe::Prober;
use super::rules::Rules;
use super::target::Target;

/// Targets of one port that are asked at the same time.
const AT_ONCE: usize = 32;

/// Checks the targets of a port until it is stopped. Newcomers do not put off the checks of others.
pub(super) async fn watch(pool: Arc<Pool>, prober: Arc<Prober>, stop: CancellationToken) {
    let watching = async {
        let mut last_round: Option<Instant> = None;
        loop {
            let rules = pool.rules();
            let interval = Duration::from_secs(rules.health_check.interval_seconds.into());
            let is_due = last_round.is_none_or(|ended| ended.elapsed() >= interval);
            check(&prober, &rules, pool.to_check(!is_due)).await;
            let ended = match last_round {
                Some(ended) if !is_due => ended,
                _ => Instant::now(),
            };
            last_round = Some(ended);
            tokio::select! {
                () = sleep_until(ended + interval) => {}
                () = pool.news.notified() => {}
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = watching => {}
    }
}

async fn check(prober: &Prober, rules: &Rules, targets: Vec<Arc<Target>>) {
    let retries = rules.health_check.retries;
    stream::iter(targets)
        .for_each_concurrent(AT_ONCE, |target| async move {
            let result = prober.probe(rules, target.address).await;
            target.record(result, retries);
        })
        .await;
}
