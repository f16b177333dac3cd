//! What a part of the run cost.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cloudkeel_bench_arena::{Contestant, Running};
use serde_json::{Value, json};

use crate::cluster::ServiceCluster;

/// A phase that takes longer than this has failed.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Long beside a request, short beside a phase.
const POLL: Duration = Duration::from_millis(100);

/// A part of the run, and its cost.
#[derive(Debug, Clone)]
pub(crate) struct Phase {
    contestant: Contestant,
    name: &'static str,
    /// How long it took until everything was right. Changes that a phase began with are over by then.
    elapsed: Duration,
    cloud_calls: u64,
    mutations: u64,
}

impl Phase {
    /// Waits until everything is as it should be.
    pub(crate) async fn until(
        cluster: &ServiceCluster,
        contestant: Contestant,
        name: &'static str,
        running: &Running,
        is_right: impl AsyncFn(&ServiceCluster) -> Result<bool>,
    ) -> Result<Self> {
        let began = Instant::now();
        while !is_right(cluster).await? {
            if began.elapsed() > TIMEOUT {
                let log = running.log();
                bail!("{name}: not done after {TIMEOUT:?}; the log of the program:\n{log}");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(Self::ended(cluster, contestant, name, began.elapsed()))
    }

    /// Waits until the cloud has been asked something, and then nothing more for this long.
    pub(crate) async fn until_quiet(
        cluster: &ServiceCluster,
        contestant: Contestant,
        name: &'static str,
        quiet: Duration,
    ) -> Result<Self> {
        let began = Instant::now();
        let (mut calls, mut since) = (0, began);
        while calls == 0 || since.elapsed() < quiet {
            if began.elapsed() > TIMEOUT {
                bail!("{name}: the cloud was still asked after {TIMEOUT:?}");
            }
            tokio::time::sleep(POLL).await;
            let now = cluster.stage.calls().total;
            if now != calls {
                (calls, since) = (now, Instant::now());
            }
        }
        Ok(Self::ended(
            cluster,
            contestant,
            name,
            since.duration_since(began),
        ))
    }

    /// Waits for so long.
    pub(crate) async fn of(
        cluster: &ServiceCluster,
        contestant: Contestant,
        name: &'static str,
        time: Duration,
    ) -> Self {
        tokio::time::sleep(time).await;
        Self::ended(cluster, contestant, name, time)
    }

    fn ended(
        cluster: &ServiceCluster,
        contestant: Contestant,
        name: &'static str,
        elapsed: Duration,
    ) -> Self {
        let calls = cluster.stage.calls();
        cluster.stage.reset_calls();
        Self {
            contestant,
            name,
            elapsed,
            cloud_calls: calls.total,
            mutations: calls.mutating,
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "contestant": self.contestant.name(),
            "phase": self.name,
            "seconds": self.elapsed.as_secs_f64(),
            "cloudCalls": self.cloud_calls,
            "mutatingCalls": self.mutations,
        })
    }
}

/// The phases as a table for people.
pub(crate) fn table(phases: &[Phase]) -> String {
    let mut text = format!(
        "{:<16} {:<16} {:>9} {:>12} {:>9}\n",
        "who", "phase", "seconds", "cloud calls", "mutating"
    );
    for phase in phases {
        let _ = writeln!(
            text,
            "{:<16} {:<16} {:>9.2} {:>12} {:>9}",
            phase.contestant.name(),
            phase.name,
            phase.elapsed.as_secs_f64(),
            phase.cloud_calls,
            phase.mutations,
        );
    }
    text
}
