//! Sets up and runs every check of this repository.
//!
//! `cargo xtask test` runs everything, `cargo xtask check` its fast half. Both walk one table of
//! tiers ([`tier::TIERS`]); a tier that cannot run on this machine is skipped where people see it.

mod bench;
mod build;
mod cache;
mod changed;
mod cli;
mod control_plane;
mod count;
mod coverage;
mod disk;
mod edges;
mod house;
mod image;
mod machine;
mod metadata;
mod minors;
mod outcome;
mod page;
mod parallel;
mod programs;
mod record;
mod report;
mod run;
mod screen;
mod selection;
mod session;
mod stack;
mod suites;
mod test_log;
mod tier;
mod tool;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
