//! A cluster that never rests: machines are replaced, switched off and on, Services come and go, the cloud fails
//! for seconds, leaders are killed. A minute after the last of it, nothing may be dead, pending, wrong or left
//! over, and an idle minute may change nothing. Memory is read all the time.
//!
//! `cargo xtask bench soak` builds the binary in release mode and runs this.

mod churn;
mod cluster;
mod kubelets;
mod managers;
mod problems;
mod random;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use cloudkeel_bench_arena::Programs;

use crate::churn::Churn;
use crate::cluster::SoakCluster;
use crate::managers::Managers;
use crate::report::Report;

/// Until then everything has to be right again.
const SETTLING: Duration = Duration::from_mins(1);
/// Whatever is wrong after this is wrong for good.
const GIVING_UP: Duration = Duration::from_mins(5);
/// For changes that should not be.
const IDLE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_secs(1);

/// What happens, and for how long.
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary to measure.
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// How many Nodes.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// How many Services there are most of the time.
    #[arg(long, default_value_t = 50)]
    services: usize,
    /// For how many minutes things come and go.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// A machine is replaced, or switched off, every so many milliseconds.
    #[arg(long, default_value_t = 1_500)]
    machine_every: u64,
    /// A Service is made, changed or deleted every so many milliseconds.
    #[arg(long, default_value_t = 2_000)]
    service_every: u64,
    /// The cloud fails every so many seconds, for up to five. 0 is never.
    #[arg(long, default_value_t = 20)]
    fault_every: u64,
    /// One of the two managers is killed every so many seconds. 0 is never.
    #[arg(long, default_value_t = 120)]
    kill_every: u64,
    /// How many seconds a silent kubelet goes unnoticed. Life has 40.
    #[arg(long, default_value_t = 8)]
    unnoticed: u64,
    /// How long the cloud takes for an answer, in milliseconds.
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Everything random follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Flags for the binary.
    #[arg(last = true)]
    flags: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let programs =
        Programs::provide(arguments.binary.clone(), arguments.flags.clone(), &[]).await?;
    let report = run(&arguments, &programs).await?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report.json())?);
    } else {
        print!("{}", report.table());
    }
    Ok(if report.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn run(arguments: &Arguments, programs: &Programs) -> Result<Report> {
    eprintln!(
        "{} Nodes and {} Services …",
        arguments.nodes, arguments.services
    );
    let latency = Duration::from_millis(arguments.latency);
    let cluster = SoakCluster::build(arguments.nodes, arguments.services, latency).await?;
    let mut managers = Managers::start(programs, &cluster)?;
    wait_until_right(&cluster, GIVING_UP).await?;

    let mut report = Report::default();
    cluster.stage.reset_calls();
    let mut churn = Churn::new(arguments);
    churn.run(&cluster, &mut managers, &mut report).await?;
    report.churned(&cluster, churn.counts());

    eprintln!("it is quiet now …");
    let began = Instant::now();
    tokio::time::sleep(SETTLING).await;
    report.after_a_minute = cluster.problems().await?;
    report.left_for_good = wait_until_right(&cluster, GIVING_UP).await?;
    report.settled = began.elapsed();

    cluster.stage.reset_calls();
    let writes = cluster.node_writes().await?;
    tokio::time::sleep(IDLE).await;
    report.idle_cloud_changes = cluster.stage.calls().mutating;
    report.idle_node_writes = cluster.node_writes().await? - writes;
    report.sample(&managers)?;
    if !report.is_good() {
        eprintln!("the log of the managers:\n{}", managers.logs());
    }
    Ok(report)
}

/// What is still wrong when nothing is, or after this long.
async fn wait_until_right(cluster: &SoakCluster, at_most: Duration) -> Result<Vec<String>> {
    let began = Instant::now();
    loop {
        let problems = cluster.problems().await?;
        if problems.is_empty() || began.elapsed() > at_most {
            return Ok(problems);
        }
        tokio::time::sleep(POLL).await;
    }
}
