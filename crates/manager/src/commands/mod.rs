//! The commands besides the manager itself.

mod completion;
mod docs;
mod doctor;
mod explain;
mod manager_flags;
mod output;
pub(crate) mod plan;
mod providers;
mod version;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use cloudkeel_api::Registry;

use crate::run::ExtraCommand;
pub(crate) use manager_flags::{own_flags_first, split};
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
    /// Find out what is wrong with a cluster and its clouds, and what to do about it. Reads only.
    Doctor(doctor::DoctorArgs),
    /// Tell the story of one Node or Service: whose it is, what the cloud has, what happens next. Reads only.
    Explain(explain::ExplainArgs),
    /// Print the reference pages: flags, configuration, annotations, metrics, log messages, findings.
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

    /// Runs the command; what it prints goes to `out`. Returns the exit code.
    pub fn run(
        &self,
        registry: &Registry,
        extra: &[ExtraCommand],
        out: &mut dyn Write,
    ) -> Result<ExitCode, CommandError> {
        match self {
            Self::Providers(args) => providers::run(args, registry, out)?,
            Self::Doctor(args) => return doctor::run(args, registry, out),
            Self::Explain(args) => explain::run(args, registry, out)?,
            Self::Docs(args) => docs::run(args, registry, out)?,
            Self::Version(args) => version::run(args, registry, out)?,
            Self::Completion(args) => completion::run(args, registry, extra, out)?,
        }
        Ok(ExitCode::SUCCESS)
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
    /// The command line cannot be understood.
    #[error("{0}")]
    Usage(String),
    /// The output could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// The output could not be put into JSON.
    #[error("cannot print as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
