//! `cargo xtask fuzz --target hcloud-answers --seconds 600`.

mod supervisor;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use cloudkeel_fuzz::{Target, targets};

/// Feeds broken input to every reader of bytes that come from outside.
#[derive(Debug, Clone, Parser)]
#[command(name = "fuzz", bin_name = "cargo xtask fuzz")]
struct Arguments {
    /// Only these.
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// How many inputs for each target; slow ones get their share of it.
    #[arg(long, default_value_t = 2_000)]
    rounds: u64,
    /// In place of rounds: how long, in all.
    #[arg(long, conflicts_with = "rounds")]
    seconds: Option<u64>,
    /// What all inputs follow from. Without it a new one is chosen and printed, so that every call explores.
    #[arg(long)]
    seed: Option<u64>,
    /// Read this file with the target that it is named after, and show what happens.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rounds", "seconds", "seed"])]
    replay: Option<PathBuf>,
    /// Where inputs that break something are written; a folder of the system's by default.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// List the targets, and leave.
    #[arg(long)]
    list: bool,
    /// Be the process that reads, and keep the current input in this file.
    #[arg(long, value_name = "FILE", hide = true)]
    worker: Option<PathBuf>,
}

impl Arguments {
    /// The seed that was given, or a new one.
    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| fastrand::u64(1..1_000_000_000))
    }

    fn out(&self) -> PathBuf {
        let usual = || std::env::temp_dir().join("cloudkeel-fuzz");
        self.out.clone().unwrap_or_else(usual)
    }

    fn chosen(&self) -> anyhow::Result<Vec<Target>> {
        let all = targets::all();
        if self.targets.is_empty() {
            return Ok(all);
        }
        self.targets.iter().map(|name| find(&all, name)).collect()
    }
}

fn find(all: &[Target], name: &str) -> anyhow::Result<Target> {
    let found = all.iter().find(|target| target.name == name);
    found.copied().ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|target| target.name).collect();
        anyhow::anyhow!("{name:?} is no target: name one of {}", known.join(", "))
    })
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
    if arguments.list {
        for target in targets::all() {
            println!("{:20} {}", target.name, target.what);
        }
        return Ok(true);
    }
    if let Some(file) = &arguments.replay {
        let named = file.file_stem().and_then(|stem| stem.to_str());
        let name = arguments.targets.first().map(String::as_str).or(named);
        let target = find(&targets::all(), name.unwrap_or_default())?;
        return worker::replay(target, file);
    }
    let chosen = arguments.chosen()?;
    match &arguments.worker {
        Some(current) => worker::work(arguments, chosen, current),
        None => supervisor::run(arguments, &chosen),
    }
}
