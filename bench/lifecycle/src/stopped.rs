//! Machines that are stopped, and stay so.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, anyhow};
use cloudkeel_bench_arena::{Contestant, Programs};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Until a Node that stays not ready is asked about at its slowest pace.
const SETTLING: Duration = Duration::from_secs(90);

/// What it costs that nothing happens.
pub(crate) struct Idle {
    contestant: Contestant,
    stopped: usize,
    nodes: usize,
    calls_per_minute: f64,
}

impl Idle {
    pub(crate) fn json(&self) -> Value {
        json!({
            "contestant": self.contestant.name(),
            "stopped": self.stopped,
            "nodes": self.nodes,
            "callsPerMinute": self.calls_per_minute,
        })
    }
}

pub(crate) async fn measure(
    programs: &Programs,
    contestant: Contestant,
    (stopped, nodes): (usize, usize),
    watched: Duration,
    latency: Duration,
) -> Result<Idle> {
    let cluster = Cluster::build(programs, contestant, nodes, latency).await?;
    for (number, machine) in cluster.machines.iter().enumerate().take(stopped) {
        let off = cluster.stage.cloud.power_off(*machine);
        off.map_err(|refusal| anyhow!("machine {machine}: {refusal:?}"))?;
        cluster.set_not_ready(number).await?;
    }
    tokio::time::sleep(SETTLING).await;
    cluster.stage.cloud.reset_calls();
    tokio::time::sleep(watched).await;
    let calls = u32::try_from(cluster.stage.cloud.calls().total())?;
    Ok(Idle {
        contestant,
        stopped,
        nodes,
        calls_per_minute: f64::from(calls) * 60.0 / watched.as_secs_f64(),
    })
}

pub(crate) fn table(rows: &[Idle]) -> String {
    let mut text = format!(
        "{:<12} {:>8} {:>8} {:>18}\n",
        "who", "stopped", "of nodes", "cloud calls/minute"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<12} {:>8} {:>8} {:>18.1}",
            row.contestant.name(),
            row.stopped,
            row.nodes,
            row.calls_per_minute,
        );
    }
    text
}
