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
    /// What should be said about the command line.
    pub notes: Vec<String>,
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
    match rest.first() {
        Some(first) if !first.starts_with('-') => read_command(first, rest, extra),
        _ => read_manager(program, rest, registry),
    }
}

fn read_command(
    first: &str,
    rest: &[String],
    extra: &[ExtraCommand],
) -> Result<Invocation, String> {
    let mut names = Command::names();
    if !names.iter().any(|name| name == first) {
        names.extend(extra.iter().map(|command| command.name.to_owned()));
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

fn read_manager(program: &str, rest: &[String], registry: &Registry) -> Result<Invocation, String> {
    const HELP_WIDTH: usize = 100;
    let descriptors = registry.descriptors();
    let table = FlagTable::new(&descriptors);
    let line = parse(&table, rest.iter().cloned()).map_err(|problems| problems.to_string())?;
    if is_set(&line, flags::HELP.name()) {
        return Ok(Invocation::Print(render_help(&table, HELP_WIDTH)));
    }
    if let Some(version) = version(&line) {
        return Ok(Invocation::Print(version));
    }
    let options = Options::read(&line, &descriptors).map_err(|problems| problems.to_string())?;
    let implied = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    let implied = implied.and_then(|name| registry.replacing(name));
    let setup = load(&options.generic, implied, registry).map_err(|error| error.to_string())?;
    Ok(Invocation::Manager(Box::new(Start {
        options,
        setup,
        notes: line.notes,
    })))
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
