//! Serves many Services with the real binary, on a real API server, with a cloud that takes its time to
//! answer; replaces every Node under them; restarts; and idles. Prints what each of it cost.
//!
//! `cargo xtask bench services` builds the binary in release mode and runs this.

mod manager;
mod phase;
mod town;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use crate::manager::Start;
use crate::phase::{Phase, table};
use crate::town::Town;

/// The default of `--load-balancer-sweep-period`.
const SWEEP_PERIOD: Duration = Duration::from_mins(20);

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
    let phases = measure(&arguments).await?;
    if arguments.json {
        let phases = phases.iter().map(Phase::json).collect();
        let phases = serde_json::Value::Array(phases);
        println!("{}", serde_json::to_string_pretty(&phases)?);
    } else {
        print!("{}", table(&phases));
    }
    Ok(())
}

async fn measure(arguments: &Arguments) -> Result<Vec<Phase>> {
    let latency = Duration::from_millis(arguments.latency);
    let mut town = Town::build(arguments.nodes, arguments.services, latency).await?;
    let start = Start::new(&arguments.binary, &arguments.flags, &town)?;
    let mut phases = Vec::new();

    eprintln!("{} services get their balancers …", arguments.services);
    let running = start.run(&[])?;
    let served = Phase::until(&town, "first balancers", &running, Town::is_served).await?;
    phases.push(served);

    eprintln!("{} nodes are replaced …", arguments.nodes);
    town.replace_nodes(Duration::from_millis(arguments.pace))
        .await?;
    phases.push(Phase::until(&town, "nodes replaced", &running, Town::is_served).await?);
    running.stop().await?;

    eprintln!("a restart …");
    let hurried = SWEEP_PERIOD / arguments.hurry.max(1);
    let sweeps = format!("--load-balancer-sweep-period={}ms", hurried.as_millis());
    let running = start.run(&[&sweeps])?;
    phases.push(Phase::until_quiet(&town, "restart", hurried / 2).await?);

    eprintln!("an idle hour, {} times as fast …", arguments.hurry);
    let hour = Duration::from_hours(1) / arguments.hurry.max(1);
    phases.push(Phase::of(&town, "idle hour", hour).await);
    running.stop().await?;
    Ok(phases)
}
