//! One run.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cloudkeel_bench_arena::{
    Contestant, Programs, Running, Stage, of_process, of_servers, requests,
};
use kube::Client;

use crate::cluster_nodes;
use crate::cost::Cost;

/// A run that takes longer than this has failed.
const TIMEOUT: Duration = Duration::from_mins(15);
/// Short beside a run.
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// Events come after the fact. When there was none for this long, all have come.
const QUIET: Duration = Duration::from_secs(3);

/// Starts everything anew, initialises so many Nodes, and measures the process that does it.
pub(crate) async fn measure(
    programs: &Programs,
    contestant: Contestant,
    nodes: usize,
    latency: Duration,
) -> Result<Cost> {
    let stage = Stage::build().await?;
    let (client, cloud) = (stage.client(), &stage.cloud);
    cluster_nodes::create(&client, cloud, nodes).await?;
    cloud.change_settings(|settings| settings.latency.fixed = latency);
    cloud.reset_calls();
    let before = requests(&client).await?;
    let idle = of_servers()?;
    let started = Instant::now();
    let running = stage.start(programs, contestant, "cloud-node", &[])?;
    while cluster_nodes::any_uninitialized(&client).await? {
        if started.elapsed() > TIMEOUT {
            let log = running.log();
            bail!("not done after {TIMEOUT:?}; the log of the program:\n{log}");
        }
        tokio::time::sleep(POLL_PERIOD).await;
    }
    let elapsed = started.elapsed();
    let last = last_event(&client, &running).await?;
    let after = requests(&client).await?;
    cluster_nodes::verify(&client).await?;
    Ok(Cost {
        contestant,
        nodes,
        elapsed,
        to_last_event: last.at.duration_since(started),
        cloud_calls: cloud.calls().total(),
        node_writes: after.node_writes - before.node_writes,
        event_writes: after.event_writes - before.event_writes,
        servers: last.servers.saturating_sub(idle),
        cpu: last.cpu,
        peak_kib: last.peak_kib,
    })
}

/// What was used until the last Event.
struct LastEvent {
    at: Instant,
    servers: Duration,
    cpu: Duration,
    peak_kib: u64,
}

/// Waits until no Event comes any more.
async fn last_event(client: &Client, running: &Running) -> Result<LastEvent> {
    let now = || -> Result<LastEvent> {
        let (cpu, peak_kib) = of_process(running.id())?;
        Ok(LastEvent {
            at: Instant::now(),
            servers: of_servers()?,
            cpu,
            peak_kib,
        })
    };
    let began = Instant::now();
    let (mut known, mut last) = (cluster_nodes::count_events(client).await?, now()?);
    while last.at.elapsed() < QUIET {
        if began.elapsed() > TIMEOUT {
            bail!("Events still come after {TIMEOUT:?}");
        }
        tokio::time::sleep(POLL_PERIOD).await;
        let events = cluster_nodes::count_events(client).await?;
        if events != known {
            (known, last) = (events, now()?);
        }
    }
    Ok(last)
}
