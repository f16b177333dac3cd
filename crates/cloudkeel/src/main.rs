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
    #[cfg(feature = "local")]
    ExtraCommand {
        name: "local-cloud",
        run: |words| cloudkeel_local_cloud::main(words.get(1..).unwrap_or_default()),
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
