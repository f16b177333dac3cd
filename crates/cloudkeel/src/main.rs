//! The `cloudkeel` binary: the manager with the clouds that were compiled in.

mod commands;
mod providers;

use std::process::ExitCode;

fn main() -> ExitCode {
    match providers::registry() {
        Ok(registry) => {
            cloudkeel_manager::run::main(std::env::args_os(), &registry, commands::ADDED)
        }
        Err(mistake) => {
            eprintln!("error: {mistake}");
            ExitCode::FAILURE
        }
    }
}
