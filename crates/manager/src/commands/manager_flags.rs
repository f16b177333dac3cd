//! Commands that take the manager's flags beside their own.

use std::sync::Arc;

use clap::Args;
use cloudkeel_api::{Registry, SystemClock};
use cloudkeel_diagnose::Snapshot;

use super::{CommandError, OutputArgs};
use crate::diagnose::{Request, Scope, collect};
use crate::run::Environment;

/// What these commands have in common.
#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Print no progress.
    #[arg(long, short)]
    quiet: bool,
    /// The flags of the manager, such as --kubeconfig, --cloud-provider and --cloud-config; see `cloudkeel --help`.
    #[arg(
        value_name = "MANAGER FLAGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    flags: Vec<String>,
}

/// The words of a command line with the command's own flags before those of the manager, among which they would be
/// taken for the manager's.
pub(crate) fn own_flags_first(words: &[String]) -> Vec<String> {
    const COMMANDS: [&str; 2] = ["doctor", "explain"];
    let mut words = words.iter();
    let Some(command) = words.next() else {
        return Vec::new();
    };
    if !COMMANDS.contains(&command.as_str()) {
        return std::iter::once(command).chain(words).cloned().collect();
    }
    let (mut own, mut others) = (vec![command.clone()], Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" | "--output" => {
                own.extend([Some(word), words.next()].into_iter().flatten().cloned());
            }
            "-q" | "--quiet" | "-h" | "--help" => own.push(word.clone()),
            text if text.starts_with("--output=") || text.starts_with("-o") => {
                own.push(word.clone());
            }
            _ => others.push(word.clone()),
        }
    }
    own.extend(others);
    own
}

impl ReadArgs {
    /// Reads the cluster and its clouds.
    pub(super) fn collect(
        &self,
        registry: &Registry,
        scope: Scope,
    ) -> Result<Snapshot, CommandError> {
        let program = std::env::args().next().unwrap_or_default();
        let progress = |text: &str| {
            if !self.quiet {
                eprintln!("{text} …");
            }
        };
        let request = Request {
            flags: &self.flags,
            program: &program,
            registry,
            environment: Environment::current(),
            clock: Arc::new(SystemClock),
            scope,
            progress: &progress,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let snapshot = runtime.block_on(collect(&request));
        runtime.shutdown_background();
        snapshot.map_err(CommandError::Usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_flags_may_stand_anywhere() {
        for (case, given, expected) in [
            (
                "after",
                "doctor --kubeconfig k -o json",
                "doctor -o json --kubeconfig k",
            ),
            (
                "between",
                "doctor --a --output=json --b c",
                "doctor --output=json --a --b c",
            ),
            (
                "short",
                "explain node n -ojson --a",
                "explain -ojson node n --a",
            ),
            ("another command", "providers -o json", "providers -o json"),
            ("help", "doctor --a -h", "doctor -h --a"),
        ] {
            let words: Vec<_> = given.split(' ').map(str::to_owned).collect();
            assert_eq!(own_flags_first(&words).join(" "), expected, "{case}");
        }
    }
}
