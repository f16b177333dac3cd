//! What the program was called for.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use cloudkeel_api::{Registry, nearest};

use super::check::{Surroundings, wrong_with_controllers};
use super::extra::ExtraCommand;
use crate::commands::{Command, CommandArgs};
use crate::config::{ConfigError, Setup, load, load_named};
use crate::flags::{self, CommandLine, FlagTable, parse_all, render_help};
use crate::options::{Options, provider_flags};

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
    read_in(arguments, registry, extra, None)
}

/// The same, and what is wrong with the clouds' settings and the way to the API server is reported as well, all
/// of it at once.
pub fn read_and_check(
    arguments: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
    surroundings: &Surroundings,
) -> Result<Invocation, String> {
    read_in(arguments, registry, extra, Some(surroundings))
}

fn read_in(
    arguments: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
    surroundings: Option<&Surroundings>,
) -> Result<Invocation, String> {
    let manager =
        |program: &str, rest: &[String]| read_manager(program, rest, registry, extra, surroundings);
    let (program, rest) = match arguments {
        [] => ("cloudkeel", &[][..]),
        [program, rest @ ..] => (program.as_str(), rest),
    };
    match rest {
        // The manifests of some Go CCMs have no command, and name the program in the arguments; an image
        // with an entrypoint of its own then gets both.
        [named, rest @ ..] if implied_by(named, registry).is_some() => manager(named, rest),
        [first, ..] if first == "help" => manager(program, &["--help".to_owned()]),
        [first, ..] if !first.starts_with('-') => read_command(first, rest, extra),
        _ => manager(program, rest),
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
    surroundings: Option<&Surroundings>,
) -> Result<Invocation, String> {
    const HELP_WIDTH: usize = 100;
    let descriptors = registry.descriptors();
    let table = FlagTable::new(&descriptors);
    let (line, unread) = parse_all(&table, rest.iter().cloned());
    if unread.is_empty() && is_set(&line, flags::HELP.name()) {
        return Ok(Invocation::Print(render_help(
            &table,
            &command_names(extra),
            HELP_WIDTH,
        )));
    }
    if let Some(version) = version(&line).filter(|_| unread.is_empty()) {
        return Ok(Invocation::Print(version));
    }
    let mut wrong: Vec<String> = unread.iter().map(ToString::to_string).collect();
    let options = Options::read(&line, &descriptors);
    let options = options.map_err(|problems| wrong.push(problems.to_string()));
    let implied = implied_by(program, registry);
    let setup = load_as_told(&line, implied, registry);
    let setup = setup.map_err(|error| wrong.push(error.to_string()));
    if let (Ok(options), Ok(setup)) = (&options, &setup) {
        wrong.extend(wrong_with_controllers(options, setup, registry));
    }
    if let (Some(surroundings), Ok(setup)) = (surroundings, &setup) {
        let flags = provider_flags(&line, &descriptors);
        wrong.extend(surroundings.wrong_with_clouds(setup, &flags, registry));
    }
    if let (Some(surroundings), Ok(options)) = (surroundings, &options) {
        wrong.extend(surroundings.wrong_with_api_server(options));
    }
    let (Ok(options), Ok(setup), true) = (options, setup, wrong.is_empty()) else {
        return Err(wrong.join("\n"));
    };
    let notes = [line.notes, options.notes.clone()].concat();
    Ok(Invocation::Manager(Box::new(Start {
        options,
        setup,
        implied,
        notes,
    })))
}

/// Reads the configuration that the flags name, whatever else is wrong with them.
fn load_as_told(
    line: &CommandLine,
    implied: Option<&str>,
    registry: &Registry,
) -> Result<Setup, ConfigError> {
    let value = |name: &str| {
        let given = line.values.get(name)?.last()?;
        (!given.is_empty()).then(|| given.clone())
    };
    let provider = value(flags::CLOUD_PROVIDER.name());
    let path = value(flags::CLOUD_CONFIG.name()).map(PathBuf::from);
    load_named(provider.as_deref(), path.as_ref(), implied, registry)
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
        "raw" => {
            let info = crate::metrics::BuildInfo::of_version(version);
            serde_json::to_string_pretty(&info).ok()
        }
        _ => Some(format!("cloudkeel v{version}")),
    }
}

#[cfg(test)]
mod tests;
