//! Half of the kubelets fall silent, as when a rack loses its network, and at the same moment the cloud answers
//! wrongly. All machines run. How many Nodes are deleted, and how often is the cloud asked?
//!
//! `cargo xtask bench faults` builds the binary in release mode and runs this.

mod cluster;
mod fault;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use cloudkeel_bench_arena::{Contestant, Programs};
use serde_json::{Value, json};

use crate::cluster::{FaultCluster, Loss, NODES, SILENT};
use crate::fault::CloudFault;

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary to measure.
    #[arg(long, value_name = "FILE")]
    binary: PathBuf,
    /// Who runs, in this order.
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "cloudkeel,go,go-by-id"
    )]
    contestants: Vec<Contestant>,
    /// How long each fault lasts, in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
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
    let contestants = &arguments.contestants;
    let programs = Programs::provide(arguments.binary, arguments.flags, contestants).await?;
    let lasting = Duration::from_secs(arguments.seconds);
    let mut rows = Vec::new();
    for fault in CloudFault::ALL {
        for contestant in contestants {
            eprintln!("{}: {} …", contestant.name(), fault.name());
            let cluster = FaultCluster::build(&programs, *contestant).await?;
            let loss = match fault {
                CloudFault::MachinesReallyGone => cluster.lose_machines().await?,
                fault => cluster.run_with(fault, lasting).await?,
            };
            rows.push((fault, *contestant, loss));
        }
    }
    if arguments.json {
        let rows = Value::Array(rows.iter().map(row_as_json).collect());
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    Ok(())
}

type Row = (CloudFault, Contestant, Loss);

fn row_as_json((fault, contestant, loss): &Row) -> Value {
    json!({
        "trouble": fault.name(),
        "contestant": contestant.name(),
        "nodesDeleted": loss.deleted,
        "cloudCalls": loss.cloud_calls,
        "seconds": loss.elapsed.as_secs_f64(),
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{NODES} Nodes, {SILENT} of them silent\n{:<28} {:<10} {:>13} {:>12} {:>8}\n",
        "trouble", "who", "nodes deleted", "cloud calls", "seconds"
    );
    for (fault, contestant, loss) in rows {
        let _ = writeln!(
            text,
            "{:<28} {:<10} {:>13} {:>12} {:>8.0}",
            fault.name(),
            contestant.name(),
            loss.deleted,
            loss.cloud_calls,
            loss.elapsed.as_secs_f64(),
        );
    }
    text
}
