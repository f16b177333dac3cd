//! Runs seeds: `cargo xtask simulate --seeds 10000`.

mod campaign;
mod logs;
mod record;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, ValueEnum};

use campaign::Campaign;
use record::Record;

/// Plays seeds, and says which went wrong and how to see it again.
#[derive(Debug, Parser)]
#[command(name = "simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them. Without it a new one is chosen and printed, so that every call explores; with a planted bug it
    /// is 0, as in the tests.
    #[arg(long)]
    from: Option<u64>,
    /// How many at once; as many as there are cores by default.
    #[arg(long)]
    jobs: Option<usize>,
    /// Play only this seed, and print everything that happens.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    replay: Option<u64>,
    /// With a replay: what the managers log, from this level up, to standard error.
    #[arg(long, value_name = "LEVEL", requires = "replay")]
    log: Option<tracing::Level>,
    /// With this bug planted, to see whether the invariant that it breaks reports it.
    #[arg(long)]
    bug: Option<String>,
    /// Add the result to the table in this file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = record::FILE)]
    #[arg(conflicts_with_all = ["replay", "bug"])]
    record: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Bases are far from each other and from the seeds that people type, which the tests play.
const BASE_STEP: u64 = 1_000_000;

impl Arguments {
    fn campaign(&self) -> anyhow::Result<Campaign> {
        let bug = campaign::bug_named(self.bug.as_deref())?;
        // The tests say by which seed a bug is found.
        let chosen = || match bug {
            Some(_) => 0,
            None => fastrand::u64(1..1_000_000) * BASE_STEP,
        };
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        Ok(Campaign {
            from: self.from.unwrap_or_else(chosen),
            seeds: self.seeds,
            jobs: self.jobs.unwrap_or_else(cores).max(1),
            bug,
        })
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all went well.
fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let campaign = arguments.campaign()?;
    if let Some(seed) = arguments.replay {
        if let Some(level) = arguments.log {
            logs::show_from(level);
        }
        return report::replay(seed, campaign.bug);
    }
    let record = arguments.record.as_deref().map(Record::open).transpose()?;
    let found = campaign.play()?;
    match arguments.output {
        Output::Text => report::print(&found)?,
        Output::Json => report::print_json(&found)?,
    }
    if let Some(record) = record {
        record.add(&found)?;
    }
    Ok(found.failed.is_empty())
}
