//! The `cloudkeel` binary: the manager with the clouds that were compiled in.

#[cfg(feature = "emulators")]
mod emulate;
mod providers;

use std::process::ExitCode;

use cloudkeel_manager::run::ExtraCommand;

/// What the binary can do that the manager must not know.
const EXTRA: &[ExtraCommand] = &[
    #[cfg(feature = "emulators")]
    ExtraCommand {
        name: "emulate",
        run: emulate::run,
    },
];

fn main() -> ExitCode {
    match providers::registry() {
        Ok(registry) => cloudkeel_manager::run::main(std::env::args_os(), &registry, EXTRA),
        Err(mistake) => {
            eprintln!("error: {mistake}");
            ExitCode::FAILURE
        }
    }
}
