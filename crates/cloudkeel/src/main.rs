//! The `cloudkeel` binary: the manager with the clouds that were compiled in.

#[cfg(feature = "emulators")]
mod emulate;
mod providers;

use std::ffi::OsString;
use std::process::ExitCode;

use cloudkeel_manager::run::ExtraCommand;

/// What the binary can do that the manager must not know.
const EXTRA: &[ExtraCommand] = &[
    #[cfg(feature = "demo")]
    ExtraCommand {
        name: "demo",
        run: |words| cloudkeel_demo::main(words.get(1..).unwrap_or_default(), run),
    },
    #[cfg(feature = "emulators")]
    ExtraCommand {
        name: "emulate",
        run: emulate::run,
    },
    #[cfg(feature = "local")]
    ExtraCommand {
        name: "local-cloud",
        run: |words| cloudkeel_local_cloud::main(words.get(1..).unwrap_or_default()),
    },
];

fn main() -> ExitCode {
    run(std::env::args_os().collect())
}

/// Does what these arguments ask for, the first of which is the program's own name.
fn run(arguments: Vec<OsString>) -> ExitCode {
    match providers::registry() {
        Ok(registry) => cloudkeel_manager::run::main(arguments, &registry, EXTRA),
        Err(mistake) => {
            eprintln!("error: {mistake}");
            ExitCode::FAILURE
        }
    }
}
