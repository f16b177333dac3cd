//! `cloudkeel plan`: its arguments, and how its result is printed. What it does is in `run::plan`.

mod removals;
mod render;

use std::time::Duration;

use clap::Parser;
use cloudkeel_api::KeyValue as _;

use super::OutputFormat;
pub(crate) use removals::{removals_text, result_text};
pub(crate) use render::{plan_text, progress_text};

/// Exit code with `--exit-code` if there is something to do.
pub(crate) const SOMETHING_TO_DO: u8 = 2;

/// Show what the manager would do now, and change nothing.
///
/// Takes the flags of the manager as well: give it those that your manager runs with, and credentials that may read.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "plan",
    after_help = "Exit codes: 0 if the plan is complete; with --exit-code, 2 if there is something to do; 1 if \
                  something could not be read, was refused or failed.",
    disable_version_flag = true
)]
pub struct PlanArgs {
    /// Show the cloud resources of this cluster that nothing in the cluster asks for.
    #[arg(long, conflicts_with = "teardown")]
    pub orphans: bool,
    /// Show all cloud resources of this cluster, to remove them before the cluster itself goes away.
    #[arg(long)]
    pub teardown: bool,
    /// Remove what --orphans or --teardown shows, after a confirmation.
    #[arg(long)]
    pub apply: bool,
    /// Do not ask for confirmation. With --teardown it needs --cluster-uid as well.
    #[arg(long, requires = "apply")]
    pub yes: bool,
    /// The UID of the cluster that --teardown is meant for: that of its namespace kube-system.
    #[arg(long, value_name = "UID")]
    pub cluster_uid: Option<String>,
    /// Tear down although a manager holds the lease, or the clouds show no instance of this cluster.
    #[arg(long)]
    pub force: bool,
    /// Exit with 2 if there is something to do.
    #[arg(long)]
    pub exit_code: bool,
    /// Give up after this long.
    #[arg(long, default_value = "2m", value_parser = duration)]
    pub timeout: Duration,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value_t)]
    pub output: OutputFormat,
}

impl PlanArgs {
    /// What does not fit together. clap does not enforce a requirement that conflicts with another argument.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.apply && !self.orphans && !self.teardown {
            return Some("--apply: expected --orphans or --teardown with it");
        }
        if (self.force || self.cluster_uid.is_some()) && !self.teardown {
            return Some("--force and --cluster-uid: expected --teardown with them");
        }
        None
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    Duration::parse(text).map_err(|expected| format!("expected {expected}"))
}
