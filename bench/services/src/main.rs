//! Serves many Services with the real binary, on a real API server, with a cloud that takes its time to
//! answer; replaces every Node under them; restarts; and idles. Prints what each of it cost.
//!
//! `cargo xtask bench services` builds the binary in release mode and runs this.

mod phase;
mod town;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use cloudkeel_bench_arena::{Contestant, Programs};

use crate::phase::{Phase, table};
use crate::town::Town;

/// The default of `--load-balancer-sweep-period`.
const SWEEP_PERIOD: Duration = Duration::from_mins(20);

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
    let mut town = Town::build(contestant, nodes, services, latency).await?;
    let start = |town: &Town, flags: &[&str]| {
        let flags = [&["--leader-elect=false"], flags].concat();
        town.stage.start(programs, contestant, CONTROLLER, &flags)
    };
    let mut phases = Vec::new();

    eprintln!(
        "{who}: {} services get their balancers …",
        arguments.services
    );
    let running = start(&town, &[])?;
    let served = Phase::until(
        &town,
        contestant,
        "first balancers",
        &running,
        Town::is_served,
    );
    phases.push(served.await?);

    eprintln!("{who}: {} nodes are replaced …", arguments.nodes);
    let pace = Duration::from_millis(arguments.pace);
    town.replace_nodes(pace).await?;
    let replaced = Phase::until(
        &town,
        contestant,
        "nodes replaced",
        &running,
        Town::is_served,
    );
    phases.push(replaced.await?);
    running.stop().await?;

    eprintln!("{who}: a restart …");
    let hurried = SWEEP_PERIOD / arguments.hurry.max(1);
    let sweeps = format!("--load-balancer-sweep-period={}ms", hurried.as_millis());
    let looks_for_drift = contestant.is_ours();
    let flags: Vec<&str> = looks_for_drift
        .then_some(sweeps.as_str())
        .into_iter()
        .collect();
    let running = start(&town, &flags)?;
    phases.push(Phase::until_quiet(&town, contestant, "restart", hurried / 2).await?);

    if looks_for_drift {
        eprintln!("{who}: an idle hour, {} times as fast …", arguments.hurry);
        let hour = Duration::from_hours(1) / arguments.hurry.max(1);
        phases.push(Phase::of(&town, contestant, "idle hour", hour).await);
    }
    running.stop().await?;
    Ok(phases)
}
