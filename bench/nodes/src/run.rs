//! One run.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::{Settings, SimulatedCloud};
use kube::Client;
use tempfile::TempDir;

use crate::account;
use crate::contestant::{Contestant, Place, Programs};
use crate::cost::{self, Cost};
use crate::crowd;
use crate::scrape::{self, Requests};

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
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client();
    let cloud = SimulatedCloud::new(Settings::default());
    crowd::gather(&client, &cloud, nodes).await?;
    cloud.change_settings(|settings| settings.latency.fixed = latency);
    cloud.reset_calls();
    let served = cloud.serve_on_loopback().await?;
    let folder = TempDir::new()?;
    let place = Place {
        folder: folder.path(),
        kubeconfig: &account::kubeconfig(&control_plane, folder.path()).await?,
        cloud: &served.url(),
        port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
    };
    let before = scrape::requests(&client).await?;
    let log = folder.path().join("log");
    let mut command = contestant.command(programs, &place)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(&log)?);
    let idle = cost::of_servers()?;
    let started = Instant::now();
    let process = Process(command.spawn().with_context(|| format!("{command:?}"))?);
    while crowd::has_waiting(&client).await? {
        if started.elapsed() > PATIENCE {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("not done after {PATIENCE:?}; the log of the program:\n{log}");
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    let elapsed = started.elapsed();
    let servers = cost::of_servers()?.saturating_sub(idle);
    let after = quiet(&client).await?;
    crowd::verify(&client).await?;
    let (cpu, peak_kib) = cost::of_process(process.0.id())?;
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
    let mut last = scrape::requests(client).await?;
    for _ in 0..PATIENCE.as_secs() / QUIET.as_secs() {
        tokio::time::sleep(QUIET).await;
        let now = scrape::requests(client).await?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
    bail!("it never stops writing")
}

/// The process is ended when the run is over, however that is.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
