//! The program: what it was called for, and the way from start to end.

mod balancing;
mod check;
mod clouds;
mod configz;
mod controllers;
mod dumps;
mod elect;
mod extra;
mod invocation;
mod leading;
mod manager;
mod prepare;
mod replica;
mod serve;
mod shutdown;
mod signals;
mod watching;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use cloudkeel_api::Registry;
use tracing::error;

pub use check::Surroundings;
pub use extra::ExtraCommand;
pub use invocation::{Invocation, Start, read_and_check, read_invocation};
pub use manager::{Ending, RunError};
pub use replica::Replica;

use crate::logging;

/// Runs the program with these arguments, the first of which is its own name. Besides its own commands
/// it knows the extra ones.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    registry: &Registry,
    extra: &[ExtraCommand],
) -> ExitCode {
    let arguments: Vec<String> = arguments
        .into_iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if let Some(run) = extra::asked_for(&arguments, extra) {
        return run(&arguments);
    }
    let surroundings = Surroundings::of_this_process();
    match read_and_check(&arguments, registry, extra, &surroundings) {
        Ok(Invocation::Print(text)) => print(&text),
        Ok(Invocation::Command(command)) => {
            let mut out = std::io::stdout().lock();
            match command.run(registry, &mut out) {
                Ok(()) => ExitCode::SUCCESS,
                Err(problem) => fail(&problem.to_string()),
            }
        }
        Ok(Invocation::Manager(start)) => run_manager(*start, registry, surroundings),
        Err(problem) => fail(&problem),
    }
}

fn run_manager(start: Start, registry: &Registry, surroundings: Surroundings) -> ExitCode {
    let log = match logging::start(&start.options.logging) {
        Ok(log) => log,
        Err(problem) => return fail(&problem.to_string()),
    };
    logging::tell_panics();
    dumps::refuse_dumps();
    // One thread: the work is waiting. Several would wake each other for every answer, which took a third of
    // the processor time, and each has a stack and an arena of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(problem) => return fail(&format!("cannot start: {problem}")),
    };
    let ending = runtime.block_on(manager::run(start, registry, surroundings, log));
    // Whatever still blocks a thread does not keep the process.
    runtime.shutdown_background();
    match ending {
        Ok(Ending::Stopped) => ExitCode::SUCCESS,
        Ok(Ending::LeaseLost(why)) => {
            error!(why, "leaderelection lost");
            ExitCode::FAILURE
        }
        Err(problem) => {
            error!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> ExitCode {
    // A reader that went away, such as `head`, is no failure.
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
    ExitCode::SUCCESS
}

fn fail(problem: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {problem}");
    ExitCode::FAILURE
}
