//! The commands besides the manager itself.

mod completion;
mod docs;
mod output;
pub(crate) mod plan;
mod providers;
mod version;

use std::io::{self, Write};

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use cloudkeel_api::Registry;

use crate::run::ExtraCommand;
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
    /// List the supported clouds, with their capabilities and settings.
    Providers(providers::ProvidersArgs),
    /// Print the reference pages: flags, configuration, annotations, metrics, log messages.
    Docs(docs::DocsArgs),
    /// Print the version, the commit, the Kubernetes version and the supported clouds.
    Version(version::VersionArgs),
    /// Print a shell completion script.
    Completion(completion::CompletionArgs),
}

impl Command {
    /// All commands as clap describes them, those of the binary included.
    pub fn all(extra: &[ExtraCommand]) -> Vec<clap::Command> {
        let command = CommandArgs::command();
        let own = command.get_subcommands().cloned();
        own.chain([plan::PlanArgs::command()])
            .chain(extra.iter().map(|extra| (extra.command)().name(extra.name)))
            .collect()
    }

    /// Runs the command; what it prints goes to `out`.
    pub fn run(
        &self,
        registry: &Registry,
        extra: &[ExtraCommand],
        out: &mut dyn Write,
    ) -> Result<(), CommandError> {
        match self {
            Self::Providers(args) => providers::run(args, registry, out),
            Self::Docs(args) => docs::run(args, registry, out),
            Self::Version(args) => version::run(args, registry, out),
            Self::Completion(args) => completion::run(args, registry, extra, out),
        }
    }
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
