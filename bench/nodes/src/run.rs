//! One run.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cloudkeel_bench_arena::{
    Contestant, Programs, Requests, Stage, of_process, of_servers, requests,
};
use kube::Client;

use crate::cost::Cost;
use crate::crowd;

/// A run that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(15);
/// Short beside a run.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Events come after the fact. When there was none for this long, all have come.
const QUIET: Duration = Duration::from_secs(2);

/// Starts everything anew, initialises so many Nodes, and measures the process that does it.
pub(crate) async fn measure(
    programs: &Programs,
    contestant: Contestant,
    nodes: usize,
    latency: Duration,
) -> Result<Cost> {
    let stage = Stage::build().await?;
    let (client, cloud) = (stage.client(), &stage.cloud);
    crowd::gather(&client, cloud, nodes).await?;
    cloud.change_settings(|settings| settings.latency.fixed = latency);
    cloud.reset_calls();
    let before = requests(&client).await?;
    let idle = of_servers()?;
    let started = Instant::now();
    let running = stage.start(programs, contestant, "cloud-node", &[])?;
    while crowd::has_waiting(&client).await? {
        if started.elapsed() > PATIENCE {
            let log = running.log();
            bail!("not done after {PATIENCE:?}; the log of the program:\n{log}");
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    let elapsed = started.elapsed();
    let servers = of_servers()?.saturating_sub(idle);
    let after = quiet(&client).await?;
    crowd::verify(&client).await?;
    let (cpu, peak_kib) = of_process(running.id())?;
    Ok(Cost {
        contestant,
        nodes,
        elapsed,
        cloud_calls: cloud.calls().total(),
        node_writes: after.node_writes - before.node_writes,
        event_writes: after.event_writes - before.event_writes,
        servers,
        cpu,
        peak_kib,
    })
}

/// Waits until nothing is written any more.
async fn quiet(client: &Client) -> Result<Requests> {
    let mut last = requests(client).await?;
    for _ in 0..PATIENCE.as_secs() / QUIET.as_secs() {
        tokio::time::sleep(QUIET).await;
        let now = requests(client).await?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
    bail!("it never stops writing")
}
