//! One run.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::{Settings, SimulatedCloud};
use tempfile::TempDir;

use crate::cost::{self, Cost};
use crate::crowd;

/// A run that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(10);
/// Long beside a request, short beside a run.
const POLL: Duration = Duration::from_millis(250);

/// Starts everything anew, initialises so many Nodes, and measures the process that does it.
pub(crate) async fn measure(
    binary: &Path,
    flags: &[String],
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
    let config = folder.path().join("clouds.yaml");
    std::fs::write(&config, configuration(&served.url()))?;
    let port = free_port()?;
    let kubeconfig = control_plane.kubeconfig_for("bench", &["system:masters"]);
    let started = Instant::now();
    let process = Process(
        Command::new(binary)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--cloud-config={}", config.display()))
            .arg(format!("--secure-port={port}"))
            .args([
                "--bind-address=127.0.0.1",
                "--authorization-always-allow-paths=/metrics",
            ])
            .args(["--authentication-skip-lookup", "--controllers=cloud-node"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log"))?)
            .spawn()
            .with_context(|| format!("{} does not start", binary.display()))?,
    );
    while crowd::waiting(&client).await? > 0 {
        if started.elapsed() > PATIENCE {
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            bail!("not done after {PATIENCE:?}; the log of the program:\n{log}");
        }
        tokio::time::sleep(POLL).await;
    }
    let elapsed = started.elapsed();
    let (cpu, peak_kib) = cost::of_process(process.0.id())?;
    Ok(Cost {
        nodes,
        elapsed,
        cloud_calls: cloud.calls().total(),
        writes: node_writes(port)?,
        cpu,
        peak_kib,
    })
}

fn configuration(url: &str) -> String {
    format!(
        "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: sim\n  provider: local\n  \
         config: {{endpoint: \"{url}\", token: {}}}\n",
        SimulatedCloud::TOKEN
    )
}

/// The process is ended when the run is over, however that is.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The PATCH requests that the process counted itself: those of Nodes, for it patches nothing else
/// while it initialises.
fn node_writes(port: u16) -> Result<u64> {
    let scraped = Command::new("curl")
        .args(["--silent", "--insecure", "--max-time", "5"])
        .arg(format!("https://127.0.0.1:{port}/metrics"))
        .output()
        .context("curl does not run")?;
    let text = String::from_utf8_lossy(&scraped.stdout).into_owned();
    let patches = text.lines().filter(|line| {
        line.starts_with("rest_client_requests_total") && line.contains("method=\"PATCH\"")
    });
    let counts = patches.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of requests"
    )]
    Ok(counts.sum::<f64>() as u64)
}
