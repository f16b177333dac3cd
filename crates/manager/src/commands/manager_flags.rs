//! Commands that take the manager's flags beside their own.

use std::sync::Arc;

use clap::{Arg, Args, Command, CommandFactory as _};
use cloudkeel_api::{Registry, SystemClock};
use cloudkeel_diagnose::Snapshot;

use super::{CommandArgs, CommandError, OutputArgs};
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
    let Some((first, rest)) = words.split_first() else {
        return Vec::new();
    };
    let commands = CommandArgs::command();
    let takes_manager_flags = |command: &&Command| {
        let mut arguments = command.get_arguments();
        command.get_name() == first && arguments.any(Arg::is_trailing_var_arg_set)
    };
    let Some(command) = commands.get_subcommands().find(takes_manager_flags) else {
        return words.to_vec();
    };
    let (own, others) = split(command, rest);
    let first = std::iter::once(first.clone());
    first.chain(own).chain(others).collect()
}

/// The arguments of this command, and all others, which are the manager's.
pub(crate) fn split(command: &Command, arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(takes_value) = is_own(command, argument) else {
            others.push(argument.clone());
            continue;
        };
        own.push(argument.clone());
        if takes_value {
            own.extend(arguments.next().cloned());
        }
    }
    (own, others)
}

/// Whether an argument is the command's, and the next one its value.
fn is_own(command: &Command, argument: &str) -> Option<bool> {
    if matches!(argument, "-h" | "--help") {
        return Some(false);
    }
    let (name, has_value) = match argument.split_once('=') {
        Some((name, _)) => (name, true),
        None => (argument, false),
    };
    let mut known = command.get_arguments();
    let known = known.find(|known| match name.strip_prefix("--") {
        Some(long) => known.get_long() == Some(long),
        None => known
            .get_short()
            .is_some_and(|short| name.starts_with(&format!("-{short}"))),
    });
    // The value of `-ojson` is there already.
    let has_value = has_value || (!name.starts_with("--") && name.len() > 2);
    known.map(|known| known.get_action().takes_values() && !has_value)
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
    use crate::commands::plan::PlanArgs;

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

    #[test]
    fn the_flags_of_the_manager_are_left_to_it_wherever_they_stand() {
        let arguments = [
            "--cloud-provider=hcloud",
            "--orphans",
            "--timeout",
            "5s",
            "--kubeconfig",
            "k",
            "-o",
            "json",
            "-v=2",
            "--output=text",
            "--help",
        ];
        let (own, others) = split(&PlanArgs::command(), &arguments.map(str::to_owned));
        assert_eq!(
            own,
            [
                "--orphans",
                "--timeout",
                "5s",
                "-o",
                "json",
                "--output=text",
                "--help"
            ]
        );
        assert_eq!(
            others,
            ["--cloud-provider=hcloud", "--kubeconfig", "k", "-v=2"]
        );
    }

    #[test]
    fn no_flag_of_the_manager_has_the_name_of_one_of_this_command() {
        let table = crate::flags::FlagTable::new(&[]);
        for argument in PlanArgs::command().get_arguments() {
            let long = argument.get_long().unwrap_or_default();
            assert!(table.get(long).is_none() || long == "help", "--{long}");
        }
    }
}
