//! The program, from its command line to its exit code.

mod clouds;
mod configz;
mod controllers;
mod elections;
mod invocation;
mod leader;
mod manager;
mod orphans;
mod plan;
mod ports;
mod preflight;
mod prepare;
mod process;
mod replica;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use cloudkeel_api::Registry;
use tracing::error;

pub(crate) use clouds::{CloudBuilder, CloudParts};
pub(crate) use controllers::ServiceScope;
pub(crate) use invocation::{Configuration, read_configuration};
pub(crate) use prepare::metrics;

pub use invocation::{ExtraCommand, Invocation, Start, read_and_check, read_invocation};
pub use manager::{Ending, RunError};
pub use preflight::Environment;
pub use replica::{Reload, Replica};

use crate::commands::plan::PlanArgs;
use crate::log_messages::{LEADER_ELECTION_LOST, RUN_FAILED};
use crate::logging;

/// Runs the program with these arguments, the first of which is its own name.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    registry: &Registry,
    extra: &[ExtraCommand],
) -> ExitCode {
    let arguments: Vec<String> = arguments
        .into_iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if let Some(run) = invocation::extra_command(&arguments, extra) {
        return run(&arguments);
    }
    let environment = Environment::current();
    match read_and_check(&arguments, registry, extra, &environment) {
        Ok(Invocation::Print(text)) => print(&text),
        Ok(Invocation::Command(command)) => {
            let mut out = std::io::stdout().lock();
            match command.run(registry, extra, &mut out) {
                Ok(code) => code,
                Err(problem) => fail(&problem.to_string()),
            }
        }
        Ok(Invocation::Plan(args, start)) => run_plan(&args, *start, registry, environment),
        Ok(Invocation::Manager(start)) => run_manager(*start, registry, environment),
        Err(problem) => fail(&problem),
    }
}

fn run_manager(start: Start, registry: &Registry, environment: Environment) -> ExitCode {
    let log = match logging::start(&start.options.logging) {
        Ok(log) => log,
        Err(problem) => return fail(&problem.to_string()),
    };
    logging::log_panics();
    let running = manager::run(start, registry, environment, log);
    match block_on(running) {
        Err(problem) => fail(&problem),
        Ok(ending) => code_of(ending),
    }
}

fn code_of(ending: Result<Ending, RunError>) -> ExitCode {
    match ending {
        Ok(Ending::Stopped) => ExitCode::SUCCESS,
        Ok(Ending::LeaseLost(why)) => {
            error!(err = why, "{LEADER_ELECTION_LOST}");
            ExitCode::FAILURE
        }
        Err(problem) => {
            error!(err = problem.to_string(), "{RUN_FAILED}");
            ExitCode::FAILURE
        }
    }
}

/// Nothing is logged unless `-v` asks for it: the plan says what is wrong.
fn run_plan(
    args: &PlanArgs,
    start: Start,
    registry: &Registry,
    environment: Environment,
) -> ExitCode {
    if start.options.logging.verbosity > 0
        && let Err(problem) = logging::start(&start.options.logging)
    {
        return fail(&problem.to_string());
    }
    let ended = if args.orphans || args.teardown {
        block_on(orphans::run(args, start, registry, environment))
    } else {
        block_on(plan::plan(args, start, registry, environment))
    };
    ended.flatten().unwrap_or_else(|problem| fail(&problem))
}

/// Runs work that has credentials to its end, on this thread alone. The work is mostly waiting: several threads would
/// wake each other for every response, which took a third of the CPU time, and each has its own stack and arena.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, String> {
    process::disable_core_dumps();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|problem| format!("cannot start: {problem}"))?;
    let ended = runtime.block_on(work);
    // A blocked thread does not keep the process alive.
    runtime.shutdown_background();
    Ok(ended)
}

fn print(text: &str) -> ExitCode {
    // A reader that closed the pipe, such as `head`, is no failure.
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
    ExitCode::SUCCESS
}

fn fail(problem: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {problem}");
    ExitCode::FAILURE
}
