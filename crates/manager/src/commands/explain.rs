//! `cloudkeel explain`

use std::io::Write;

use clap::{Args, Subcommand};
use cloudkeel_api::Registry;

use super::CommandError;

/// Arguments of `cloudkeel explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {}

pub(super) fn run(_: &ExplainArgs, _: &Registry, _: &mut dyn Write) -> Result<(), CommandError> {
    Ok(())
}
