//! Initialises N tainted Nodes with the real binary, on a real API server, with a cloud that answers slowly, and
//! prints what that cost. A Go CCM does the same beside it.
//!
//! `cargo xtask bench nodes` builds the binary in release mode and runs this.

mod cluster_nodes;
mod cost;
mod rounds;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use cloudkeel_bench_arena::{Contestant, Programs};

use crate::cost::table;
use crate::rounds::Rounds;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary to measure.
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// How many Nodes; each number is a run of its own, on a control plane of its own.
    #[arg(long, value_delimiter = ',', default_value = "100,1000")]
    nodes: Vec<usize>,
    /// Who runs, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "cloudkeel,go,go-tuned"
    )]
    contestants: Vec<Contestant>,
    /// How often each contestant runs, in turn. What is printed is the run with the median time of each, and the
    /// shortest and the longest time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// How long the cloud takes for an answer, in milliseconds.
    #[arg(long, default_value_t = 20)]
    latency: u64,
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
    let latency = Duration::from_millis(arguments.latency);
    let contestants = &arguments.contestants;
    let programs = Programs::provide(arguments.binary, arguments.flags, contestants).await?;
    let mut costs: Vec<Rounds> = Vec::new();
    for nodes in &arguments.nodes {
        let mut runs: Vec<Rounds> = contestants.iter().map(|_| Rounds::default()).collect();
        for round in 1..=arguments.rounds {
            for (contestant, runs) in contestants.iter().zip(&mut runs) {
                eprintln!("{nodes} nodes, {}, round {round} …", contestant.name());
                let cost = run::measure(&programs, *contestant, *nodes, latency).await?;
                eprintln!("  {cost}");
                runs.add(cost);
            }
        }
        costs.append(&mut runs);
    }
    if arguments.json {
        let costs = serde_json::Value::Array(costs.iter().filter_map(Rounds::json).collect());
        println!("{}", serde_json::to_string_pretty(&costs)?);
    } else {
        print!("{}", table(&costs));
    }
    Ok(())
}
