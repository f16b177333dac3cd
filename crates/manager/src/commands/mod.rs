//! What can be done besides running the manager.

mod docs;
mod output;
mod providers;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use cloudkeel_api::Registry;

pub use output::{OutputFormat, Screen};

/// Commands besides the manager itself.
#[derive(Debug, Parser)]
#[command(name = "cloudkeel", disable_help_subcommand = true)]
pub struct CommandArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the clouds that are compiled in, with what they can do and how they are set up.
    Providers(providers::ProvidersArgs),
    /// Print the reference pages, from the code itself.
    Docs(docs::DocsArgs),
}

impl Command {
    /// The names of all commands, so that the first argument can be told from a flag.
    pub fn names() -> Vec<String> {
        use clap::CommandFactory as _;
        let command = CommandArgs::command();
        command
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect()
    }

    /// Runs the command; what it prints goes to `out`.
    pub fn run(&self, registry: &Registry, out: &mut dyn Write) -> Result<(), CommandError> {
        match self {
            Self::Providers(args) => providers::run(args, registry, out),
            Self::Docs(args) => docs::run(args, registry, out),
        }
    }
}

/// A command that the binary brings along, because it needs more than the manager has.
#[derive(Debug, Clone, Copy)]
pub struct AddedCommand {
    /// The word by which it is called.
    pub name: &'static str,
    /// Runs it; the first word is its own name.
    pub run: fn(&[String]) -> ExitCode,
}

/// How results are printed.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Nothing of that name.
    #[error("{0}")]
    NotFound(String),
    /// The output could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// The output could not be put into JSON.
    #[error("cannot print as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
