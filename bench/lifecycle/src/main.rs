//! What stopped machines cost while nothing happens, and how soon Nodes go whose machines are replaced one after
//! the other. With the real binary, on a real API server, with a cloud that takes its time to answer.
//!
//! `cargo xtask bench lifecycle` builds the binary in release mode and runs this.

mod cluster;
mod rolling;
mod stopped;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use cloudkeel_bench_arena::{Contestant, Programs};
use serde_json::{Value, json};

use crate::rolling::{Replaced, Rolling};
use crate::stopped::Idle;

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
        default_value = "cloudkeel,go"
    )]
    contestants: Vec<Contestant>,
    /// Stopped machines of how many, as `1/1000`; each is a run of its own, on a control plane of its own.
    #[arg(long, value_delimiter = ',', value_parser = share, default_value = "1/1000")]
    stopped: Vec<(usize, usize)>,
    /// For how many minutes calls are counted.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// How many machines are replaced, of how many, as `8/12`.
    #[arg(long, value_parser = share, default_value = "8/12")]
    replaced: (usize, usize),
    /// Seconds between two machines that are replaced.
    #[arg(long, default_value_t = 30)]
    every: u64,
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

/// `8/12`: some of more.
fn share(text: &str) -> Result<(usize, usize)> {
    let Some((some, all)) = text.split_once('/') else {
        bail!("{text:?} is not a share such as 8/12");
    };
    let (some, all) = (some.parse()?, all.parse()?);
    if some > all {
        bail!("{some} of {all} is more than there are");
    }
    Ok((some, all))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let contestants = &arguments.contestants;
    let latency = Duration::from_millis(arguments.latency);
    let programs = Programs::provide(arguments.binary, arguments.flags, contestants).await?;
    let (mut idle, mut rolled) = (Vec::new(), Vec::new());
    for contestant in contestants {
        for share in &arguments.stopped {
            eprintln!(
                "{}: {} of {} machines are stopped …",
                contestant.name(),
                share.0,
                share.1
            );
            let minutes = Duration::from_secs(60 * arguments.minutes);
            idle.push(stopped::measure(&programs, *contestant, *share, minutes, latency).await?);
        }
        let rolling = Rolling {
            share: arguments.replaced,
            every: Duration::from_secs(arguments.every),
            latency,
        };
        eprintln!(
            "{}: {} machines are replaced …",
            contestant.name(),
            rolling.share.0
        );
        rolled.push(rolling.measure(&programs, *contestant).await?);
    }
    if arguments.json {
        let idle: Vec<Value> = idle.iter().map(Idle::json).collect();
        let rolled: Vec<Value> = rolled.iter().map(Replaced::json).collect();
        let all = json!({"stopped": idle, "replaced": rolled});
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        print!("{}\n{}", stopped::table(&idle), rolling::table(&rolled));
    }
    Ok(())
}
