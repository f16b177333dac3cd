//! The `cloudkeel` binary: the manager with the clouds that were compiled in.

#[cfg(feature = "emulators")]
mod emulate;
mod providers;

use std::ffi::OsString;
use std::process::ExitCode;

use cloudkeel_manager::run::ExtraCommand;

/// Commands that need more than the manager may depend on.
const EXTRA: &[ExtraCommand] = &[
    #[cfg(feature = "demo")]
    ExtraCommand {
        name: "demo",
        command: cloudkeel_demo::command,
        run: |words| cloudkeel_demo::main(words.get(1..).unwrap_or_default(), run),
    },
    #[cfg(feature = "emulators")]
    ExtraCommand {
        name: "emulate",
        command: emulate::command,
        run: emulate::run,
    },
    #[cfg(feature = "local-cloud")]
    ExtraCommand {
        name: "local-cloud",
        command: cloudkeel_local_cloud::command,
        run: |words| cloudkeel_local_cloud::main(words.get(1..).unwrap_or_default()),
    },
];

fn main() -> ExitCode {
    run(std::env::args_os().collect())
}

/// Runs the program with these arguments, the first of which is its own name.
fn run(arguments: Vec<OsString>) -> ExitCode {
    match providers::registry() {
        Ok(registry) => cloudkeel_manager::run::main(arguments, &registry, EXTRA),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
