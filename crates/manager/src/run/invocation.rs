//! What the program was called for.

use std::path::Path;

use clap::Parser as _;
use cloudkeel_api::{Registry, nearest};

use super::extra::ExtraCommand;
use crate::commands::{Command, CommandArgs};
use crate::config::{Setup, load};
use crate::flags::{self, CommandLine, FlagTable, parse, render_help};
use crate::options::Options;

/// What to do.
pub enum Invocation {
    /// Print this and leave.
    Print(String),
    /// Run a command and leave.
    Command(Box<Command>),
    /// Be the manager.
    Manager(Box<Start>),
}

/// Everything the manager starts with.
pub struct Start {
    /// The command line, understood.
    pub options: Options,
    /// The clouds.
    pub setup: Setup,
    /// The provider that the program's own name stands for.
    pub implied: Option<&'static str>,
    /// What should be said about the command line.
    pub notes: Vec<String>,
}

impl Start {
    /// Reads the configuration again.
    pub(super) fn load(&self, registry: &Registry) -> Result<Setup, String> {
        let loaded = load(&self.options.generic, self.implied, registry);
        loaded.map_err(|error| error.to_string())
    }
}

/// Reads the arguments, the first of which is the program's own name. On failure: what to print.
///
/// Called by the name of a Go CCM, it is the manager for that cloud. Otherwise the first argument
/// may be a command; without one it is the manager. Extra commands are only known by name here.
pub fn read_invocation(
    arguments: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
) -> Result<Invocation, String> {
    let (program, rest) = match arguments {
        [] => ("cloudkeel", &[][..]),
        [program, rest @ ..] => (program.as_str(), rest),
    };
    match rest {
        // The manifests of some Go CCMs have no command, and name the program in the arguments; an image
        // with an entrypoint of its own then gets both.
        [named, rest @ ..] if implied_by(named, registry).is_some() => {
            read_manager(named, rest, registry, extra)
        }
        [first, ..] if first == "help" => {
            read_manager(program, &["--help".to_owned()], registry, extra)
        }
        [first, ..] if !first.starts_with('-') => read_command(first, rest, extra),
        _ => read_manager(program, rest, registry, extra),
    }
}

/// Every command, whoever brings it.
fn command_names(extra: &[ExtraCommand]) -> Vec<String> {
    let extra = extra.iter().map(|command| command.name.to_owned());
    Command::names().into_iter().chain(extra).collect()
}

fn read_command(
    first: &str,
    rest: &[String],
    extra: &[ExtraCommand],
) -> Result<Invocation, String> {
    if !Command::names().iter().any(|name| name == first) {
        let names = command_names(extra);
        let near = nearest(first, names.iter().map(String::as_str));
        let hint = near.map_or_else(String::new, |near| format!(": did you mean {near:?}?"));
        return Err(format!(
            "{first:?} is not a command{hint}\ncommands: {}; without one, cloudkeel is the manager",
            names.join(", ")
        ));
    }
    let words = std::iter::once("cloudkeel").chain(rest.iter().map(String::as_str));
    match CommandArgs::try_parse_from(words) {
        Ok(arguments) => Ok(Invocation::Command(Box::new(arguments.command))),
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            Err(text.trim_start_matches("error: ").to_owned())
        }
        Err(help) => Ok(Invocation::Print(help.to_string())),
    }
}

fn read_manager(
    program: &str,
    rest: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
) -> Result<Invocation, String> {
    const HELP_WIDTH: usize = 100;
    let descriptors = registry.descriptors();
    let table = FlagTable::new(&descriptors);
    let line = parse(&table, rest.iter().cloned()).map_err(|problems| problems.to_string())?;
    if is_set(&line, flags::HELP.name()) {
        return Ok(Invocation::Print(render_help(
            &table,
            &command_names(extra),
            HELP_WIDTH,
        )));
    }
    if let Some(version) = version(&line) {
        return Ok(Invocation::Print(version));
    }
    let options = Options::read(&line, &descriptors).map_err(|problems| problems.to_string())?;
    let implied = implied_by(program, registry);
    let setup = load(&options.generic, implied, registry).map_err(|error| error.to_string())?;
    Ok(Invocation::Manager(Box::new(Start {
        options,
        setup,
        implied,
        notes: line.notes,
    })))
}

/// The provider that a program of this name stands for.
fn implied_by(program: &str, registry: &Registry) -> Option<&'static str> {
    let name = Path::new(program).file_name()?.to_str()?;
    registry.replacing(name)
}

fn is_set(line: &CommandLine, name: &str) -> bool {
    line.values
        .get(name)
        .and_then(|texts| texts.last())
        .is_some_and(|text| text == "true")
}

fn version(line: &CommandLine) -> Option<String> {
    let asked = line.values.get(flags::VERSION.name())?.last()?;
    let version = env!("CARGO_PKG_VERSION");
    match asked.as_str() {
        "false" => None,
        "raw" => Some(format!(
            "{:#?}",
            crate::metrics::BuildInfo::of_version(version)
        )),
        _ => Some(format!("cloudkeel v{version}")),
    }
}

#[cfg(test)]
mod tests;
