//! Serves many Services with the real binary, on a real API server, with a cloud that takes its time to
//! answer; replaces every Node under them; restarts; and idles. Prints what each of it cost.
//!
//! `cargo xtask bench services` builds the binary in release mode and runs this.

mod cluster;
mod phase;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use cloudkeel_bench_arena::{Contestant, Programs};

use crate::cluster::ServiceCluster;
use crate::phase::{Phase, table};

/// The default of `--load-balancer-drift-check-period`.
const DRIFT_CHECK_PERIOD: Duration = Duration::from_mins(20);

/// As both call it.
const CONTROLLER: &str = "service-lb-controller";

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary to measure.
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// How many Services.
    #[arg(long, default_value_t = 500)]
    services: usize,
    /// How many Nodes there are, all of which are replaced one by one.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// Who runs, in this order.
    #[arg(long, value_delimiter = ',', value_enum, default_value = "cloudkeel")]
    contestants: Vec<Contestant>,
    /// How long the cloud takes for an answer, in milliseconds.
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// The pause between two Nodes that are replaced, in milliseconds.
    #[arg(long, default_value_t = 100)]
    pace: u64,
    /// How much faster than in life the idle hour passes: the looks for drift come that much more often.
    #[arg(long, default_value_t = 60)]
    hurry: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Flags for the binary.
    #[arg(last = true)]
    flags: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (binary, flags) = (arguments.binary.clone(), arguments.flags.clone());
    let programs = Programs::provide(binary, flags, &arguments.contestants).await?;
    let mut phases = Vec::new();
    for contestant in &arguments.contestants {
        phases.extend(measure(&arguments, &programs, *contestant).await?);
    }
    if arguments.json {
        let phases = phases.iter().map(Phase::json).collect();
        let phases = serde_json::Value::Array(phases);
        println!("{}", serde_json::to_string_pretty(&phases)?);
    } else {
        print!("{}", table(&phases));
    }
    Ok(())
}

async fn measure(
    arguments: &Arguments,
    programs: &Programs,
    contestant: Contestant,
) -> Result<Vec<Phase>> {
    let who = contestant.name();
    let latency = Duration::from_millis(arguments.latency);
    let (nodes, services) = (arguments.nodes, arguments.services);
    let mut cluster = ServiceCluster::build(contestant, nodes, services, latency).await?;
    let start = |cluster: &ServiceCluster, flags: &[&str]| {
        let flags = [&["--leader-elect=false"], flags].concat();
        cluster
            .stage
            .start(programs, contestant, CONTROLLER, &flags)
    };
    let mut phases = Vec::new();

    eprintln!(
        "{who}: {} services get their balancers …",
        arguments.services
    );
    let running = start(&cluster, &[])?;
    let served = Phase::until(
        &cluster,
        contestant,
        "first balancers",
        &running,
        ServiceCluster::is_served,
    );
    phases.push(served.await?);

    eprintln!("{who}: {} nodes are replaced …", arguments.nodes);
    let pace = Duration::from_millis(arguments.pace);
    cluster.replace_nodes(pace).await?;
    let replaced = Phase::until(
        &cluster,
        contestant,
        "nodes replaced",
        &running,
        ServiceCluster::is_served,
    );
    phases.push(replaced.await?);
    running.stop().await?;

    eprintln!("{who}: a restart …");
    let hurried = DRIFT_CHECK_PERIOD / arguments.hurry.max(1);
    let lists = format!(
        "--load-balancer-drift-check-period={}ms",
        hurried.as_millis()
    );
    let looks_for_drift = contestant.is_ours();
    let flags: Vec<&str> = looks_for_drift
        .then_some(lists.as_str())
        .into_iter()
        .collect();
    let running = start(&cluster, &flags)?;
    phases.push(Phase::until_quiet(&cluster, contestant, "restart", hurried / 2).await?);

    if looks_for_drift {
        eprintln!("{who}: an idle hour, {} times as fast …", arguments.hurry);
        let hour = Duration::from_hours(1) / arguments.hurry.max(1);
        phases.push(Phase::of(&cluster, contestant, "idle hour", hour).await);
    }
    running.stop().await?;
    Ok(phases)
}
