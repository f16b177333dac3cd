//! Plays seeds: `cargo xtask simulate --seeds 10000 --jobs 2`.

mod campaign;
mod logs;
mod report;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use campaign::Campaign;

/// Plays seeds, and says which went wrong and how to see it again.
#[derive(Debug, Parser)]
#[command(name = "simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Play only this seed, and print everything that happens.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    replay: Option<u64>,
    /// With a replay: what the managers log, from this level up, to standard error.
    #[arg(long, value_name = "LEVEL", requires = "replay")]
    log: Option<tracing::Level>,
    /// With this bug planted, to see whether it is found.
    #[arg(long)]
    bug: Option<String>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
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
    let bug = campaign::bug_named(arguments.bug.as_deref())?;
    if let Some(seed) = arguments.replay {
        if let Some(level) = arguments.log {
            logs::show_from(level);
        }
        return report::replay(seed, bug);
    }
    let campaign = Campaign {
        from: arguments.from,
        seeds: arguments.seeds,
        jobs: arguments.jobs.max(1),
        bug,
    };
    let found = campaign.play()?;
    match arguments.output {
        Output::Text => report::print(&found)?,
        Output::Json => report::print_json(&found)?,
    }
    Ok(found.failed.is_empty())
}
