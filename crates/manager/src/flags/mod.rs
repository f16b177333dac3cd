//! The command line of the manager: every flag of upstream, cloudkeel's own, and those of the providers.
//!
//! Flags are read in the grammar of Go's `pflag`, because existing command lines were written for it: `--x=1`, `--x
//! 1`, `--switch`, `--switch=false`, underscores for dashes, `-v=2`. A general argument parser stops at the first
//! mistake; here all of them are reported at once.

mod auth;
mod choices;
mod controllers;
mod generic;
mod grammar;
mod help;
mod logging;
mod own;
mod serving;
mod table;

pub use auth::*;
pub use choices::HealthCheckFlag;
pub use controllers::*;
pub use generic::*;
pub use grammar::{CommandLine, parse, parse_all};
pub use help::render_help;
pub use logging::*;
pub use own::*;
pub use serving::*;
pub use table::{Effect, FlagRow, FlagTable, Group};
