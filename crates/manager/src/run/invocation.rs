//! What the command line asks for: the manager, a command, or help.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use cloudkeel_api::{Registry, nearest};

use super::preflight::{Environment, controller_problems};
use crate::commands::plan::PlanArgs;
use crate::commands::{Command, CommandArgs, own_flags_first, split};
use crate::config::{ConfigError, Setup, load, load_named};
use crate::flags::{self, CommandLine, FlagTable, parse_all, render_help};
use crate::options::{Options, provider_flags};

/// What to do.
pub enum Invocation {
    /// Print this and exit.
    Print(String),
    /// Run a command and exit.
    Command(Box<Command>),
    /// Run `cloudkeel plan`, with what the manager starts with.
    Plan(Box<PlanArgs>, Box<Start>),
    /// Run the manager.
    Manager(Box<Start>),
}

/// Everything the manager starts with.
pub struct Start {
    /// The parsed command line.
    pub options: Options,
    /// The clouds.
    pub setup: Setup,
    /// The provider that the program's name selects.
    pub implied: Option<&'static str>,
    /// Warnings about the command line.
    pub notes: Vec<String>,
}

impl Start {
    /// Reads the configuration again.
    pub(super) fn load(&self, registry: &Registry) -> Result<Setup, String> {
        let loaded = load(&self.options.generic, self.implied, registry);
        loaded.map_err(|error| error.to_string())
    }
}

/// A command that the binary adds, because it needs crates that the manager must not depend on.
#[derive(Debug, Clone, Copy)]
pub struct ExtraCommand {
    /// The first argument that selects it.
    pub name: &'static str,
    /// Its arguments, for `--help` and completion.
    pub command: fn() -> clap::Command,
    /// Runs it with all arguments, the first of which is the program's own name.
    pub run: fn(&[String]) -> ExitCode,
}

/// The extra command that the arguments select, if any.
pub(super) fn extra_command(
    arguments: &[String],
    extra: &[ExtraCommand],
) -> Option<fn(&[String]) -> ExitCode> {
    let first = arguments.get(1)?;
    let command = extra.iter().find(|command| command.name == first)?;
    Some(command.run)
}

/// Reads the arguments, the first of which is the program's own name. On failure: what to print.
///
/// Started under the name of a Go CCM, the program is the manager for that cloud. Otherwise the first argument may
/// be a command; without one it is the manager. Extra commands are known only by name here.
pub fn read_invocation(
    arguments: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
) -> Result<Invocation, String> {
    read_in(arguments, registry, extra, None)
}

/// The same, and also checks the clouds' settings and the access to the API server. All problems are reported at
/// once.
pub fn read_and_check(
    arguments: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
    environment: &Environment,
) -> Result<Invocation, String> {
    read_in(arguments, registry, extra, Some(environment))
}

fn read_in(
    arguments: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
    environment: Option<&Environment>,
) -> Result<Invocation, String> {
    let manager =
        |program: &str, rest: &[String]| read_manager(program, rest, registry, extra, environment);
    let (program, rest) = match arguments {
        [] => ("cloudkeel", &[][..]),
        [program, rest @ ..] => (program.as_str(), rest),
    };
    match rest {
        // The manifests of some Go CCMs have no command and name the program in the arguments; an image with its own
        // entrypoint then gets both.
        [named, rest @ ..] if implied_by(named, registry).is_some() => manager(named, rest),
        [first, ..] if first == "help" => manager(program, &["--help".to_owned()]),
        [first, rest @ ..] if first == "plan" => read_plan(rest, |flags| manager(program, flags)),
        [first, ..] if !first.starts_with('-') => read_command(first, rest, extra),
        _ => manager(program, rest),
    }
}

fn read_command(
    first: &str,
    rest: &[String],
    extra: &[ExtraCommand],
) -> Result<Invocation, String> {
    let is_own = |command: &clap::Command| command.get_name() == first;
    if !Command::all(&[]).iter().any(is_own) {
        let commands = Command::all(extra);
        let names: Vec<_> = commands.iter().map(clap::Command::get_name).collect();
        let near = nearest(first, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(": did you mean {near:?}?"));
        return Err(format!(
            "{first:?} is not a command{hint}\ncommands: {}; without one, cloudkeel is the manager",
            names.join(", ")
        ));
    }
    let words = std::iter::once("cloudkeel".to_owned()).chain(own_flags_first(rest));
    match CommandArgs::try_parse_from(words) {
        Ok(arguments) => Ok(Invocation::Command(Box::new(arguments.command))),
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            Err(text.trim_start_matches("error: ").to_owned())
        }
        Err(help) => Ok(Invocation::Print(help.to_string())),
    }
}

/// `cloudkeel plan` takes the manager's flags besides its own.
fn read_plan(
    arguments: &[String],
    manager: impl Fn(&[String]) -> Result<Invocation, String>,
) -> Result<Invocation, String> {
    let (own, flags) = split(&PlanArgs::command(), arguments);
    let words = std::iter::once("plan").chain(own.iter().map(String::as_str));
    let args = match PlanArgs::try_parse_from(words) {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            return Err(text.trim_start_matches("error: ").to_owned());
        }
        Err(help) => return Ok(Invocation::Print(help.to_string())),
    };
    if let Some(problem) = args.problem() {
        return Err(problem.to_owned());
    }
    Ok(match manager(&flags)? {
        Invocation::Manager(start) => Invocation::Plan(Box::new(args), start),
        other => other,
    })
}

fn read_manager(
    program: &str,
    rest: &[String],
    registry: &Registry,
    extra: &[ExtraCommand],
    environment: Option<&Environment>,
) -> Result<Invocation, String> {
    const HELP_WIDTH: usize = 100;
    let descriptors = registry.descriptors();
    let table = FlagTable::new(&descriptors);
    let implied = implied_by(program, registry);
    // Before the arguments, which win.
    let presets = implied.map_or(&[][..], |name| registry.preset_flags(name));
    let presets = presets.iter().map(|flag| (*flag).to_owned());
    let (line, unread) = parse_all(&table, presets.chain(rest.iter().cloned()));
    if unread.is_empty() && is_set(&line, flags::HELP.name()) {
        return Ok(Invocation::Print(render_help(
            &table,
            &Command::all(extra),
            HELP_WIDTH,
        )));
    }
    if let Some(version) = version(&line).filter(|_| unread.is_empty()) {
        return Ok(Invocation::Print(version));
    }
    let mut wrong: Vec<String> = unread.iter().map(ToString::to_string).collect();
    let options = Options::read(&line, &descriptors);
    let options = options.map_err(|problems| wrong.push(problems.to_string()));
    let setup = load_from_flags(&line, implied, registry);
    let setup = setup.map_err(|error| wrong.push(error.to_string()));
    if let (Ok(options), Ok(setup)) = (&options, &setup) {
        wrong.extend(controller_problems(options, setup, registry));
    }
    if let (Some(environment), Ok(setup)) = (environment, &setup) {
        let flags = provider_flags(&line, &descriptors);
        wrong.extend(environment.cloud_problems(setup, &flags, registry));
    }
    if let (Some(environment), Ok(options)) = (environment, &options) {
        wrong.extend(environment.api_server_problem(options));
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

/// The configuration as far as it can be read: commands that look for problems report those in it and go on.
pub(crate) struct Configuration {
    /// The command line.
    pub(crate) options: Options,
    /// The clouds, if they are known.
    pub(crate) setup: Option<Setup>,
    /// What the manager would refuse to start with.
    pub(crate) errors: Vec<String>,
    /// What it would warn about.
    pub(crate) notes: Vec<String>,
    /// Whether the API server is reached as a Pod does.
    pub(crate) is_in_cluster: bool,
}

/// Reads the manager's flags and the files that they name. Fails only if a flag has a value that makes no sense.
pub(crate) fn read_configuration(
    program: &str,
    flags: &[String],
    registry: &Registry,
    environment: &Environment,
) -> Result<Configuration, String> {
    let descriptors = registry.descriptors();
    let table = FlagTable::new(&descriptors);
    let implied = implied_by(program, registry);
    let presets = implied.map_or(&[][..], |name| registry.preset_flags(name));
    let presets = presets.iter().map(|flag| (*flag).to_owned());
    let (line, unread) = parse_all(&table, presets.chain(flags.iter().cloned()));
    let options = Options::read(&line, &descriptors).map_err(|problems| problems.to_string())?;
    let mut errors: Vec<String> = unread.iter().map(ToString::to_string).collect();
    let setup = load_from_flags(&line, implied, registry);
    let setup = setup.map_err(|error| errors.push(error.to_string())).ok();
    if let Some(setup) = &setup {
        errors.extend(controller_problems(&options, setup, registry));
        let flags = provider_flags(&line, &descriptors);
        errors.extend(environment.cloud_problems(setup, &flags, registry));
    }
    let notes = [line.notes, options.notes.clone()].concat();
    let server = &options.api_server;
    let is_remote = server.kubeconfig.is_some() || server.master.is_some();
    Ok(Configuration {
        is_in_cluster: !is_remote && environment.kubeconfig.is_none(),
        options,
        setup,
        errors,
        notes,
    })
}

/// Loads the configuration that the flags name, whatever else is wrong with them.
fn load_from_flags(
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

/// The provider that a program of this name replaces.
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
