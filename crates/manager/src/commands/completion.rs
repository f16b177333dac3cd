//! `cloudkeel completion`

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Args, ValueEnum, ValueHint};
use clap_complete::Shell;
use cloudkeel_api::Registry;

use super::{Command, CommandError};
use crate::flags::{self, Effect, FlagRow, FlagTable};
use crate::run::ExtraCommand;

/// Arguments of `cloudkeel completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell that the script is for. In bash: `source <(cloudkeel completion bash)`.
    shell: SupportedShell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SupportedShell {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(
    args: &CompletionArgs,
    registry: &Registry,
    extra: &[ExtraCommand],
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let shell = match args.shell {
        SupportedShell::Bash => Shell::Bash,
        SupportedShell::Zsh => Shell::Zsh,
        SupportedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut program(registry, extra),
        "cloudkeel",
        &mut script,
    );
    Ok(out.write_all(&script)?)
}

/// The whole command line: the manager's flags, and all commands.
fn program(registry: &Registry, extra: &[ExtraCommand]) -> clap::Command {
    let descriptors = registry.descriptors();
    let table = FlagTable::new(&descriptors);
    let clouds: Vec<_> = descriptors.iter().map(|cloud| cloud.name).collect();
    let useful = table
        .rows()
        .iter()
        .filter(|row| row.effect == Effect::Works);
    clap::Command::new("cloudkeel")
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args(useful.map(|row| argument(row, &clouds)))
        .subcommands(Command::all(extra))
}

fn argument(row: &FlagRow, clouds: &[&'static str]) -> Arg {
    let name = row.doc.name;
    let argument = Arg::new(name).long(name).help(row.doc.help);
    let argument = match name {
        "help" => argument.short('h'),
        "v" => argument.short('v'),
        _ => argument,
    };
    if row.is_switch() {
        return argument.action(ArgAction::SetTrue);
    }
    if name == flags::CLOUD_PROVIDER.name() {
        return argument.value_parser(PossibleValuesParser::new(clouds));
    }
    let hint = match name {
        _ if name.ends_with("-dir") => ValueHint::DirPath,
        _ if name.ends_with("-file") || name.ends_with("config") => ValueHint::FilePath,
        _ => ValueHint::Other,
    };
    argument.value_hint(hint)
}
