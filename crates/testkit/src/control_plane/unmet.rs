//! Reports what a test needs and this machine lacks, in the form that xtask parses.

use super::{ControlPlaneError, ToolError};

/// A test that prints such a line before it fails is counted as skipped by `cargo xtask test`, and a skipped test
/// is a failure on CI.
const PREFIX: &str = "unmet requirement: ";

/// Prints the requirement if the error is that a program is missing and cannot be built.
pub(super) fn print_if_missing(error: &ControlPlaneError) {
    if let ControlPlaneError::Tool(error) = error {
        print_if_missing_tool(error);
    }
}

/// The same for a single program.
pub(super) fn print_if_missing_tool(error: &ToolError) {
    if let ToolError::Missing { tool, .. } = error {
        // Through the test harness, which shows it with the test that fails.
        println!("{PREFIX}{} on this machine, or Go to build it", tool.name());
    }
}
