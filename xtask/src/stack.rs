//! Real software of a cloud, on this machine, for the tests of its provider: moto, vcsim, OpenStack.
//!
//! To add one, write a module with a [`Stack`], and a row in [`crate::tier::TIERS`] that runs it:
//!
//! ```text
//! Tier { name: "openstack", requires: openstack::STACK.requires, first_run: Some(openstack::STACK.cost),
//!        run: |workspace| stack::run(workspace, &openstack::STACK), … }
//! ```
//!
//! The tier runs the tests with `#[ignore = "needs OpenStack: cargo xtask test --tier openstack"]`, which find the
//! stack by the environment variables that it printed. Everything is kept in the cache, outside of the checkout:
//! the software is installed once, its first state is made once, and every run begins with a copy of that.

pub(crate) mod aws;
mod install;
pub(crate) mod openstack;
mod serve;
pub(crate) mod vsphere;

use anyhow::{Context as _, Result};

use crate::outcome::Outcome;
use crate::programs;
use crate::tool::lock;
use crate::workspace::Workspace;
pub(crate) use install::Site;
use serve::Running;

/// Software that stands in for a cloud.
pub(crate) struct Stack {
    /// Also the name of its first tier.
    pub(crate) name: &'static str,
    /// Files of the repository that say what is installed: lock files, patches, seeds. If one changes,
    /// everything is installed again.
    pub(crate) inputs: &'static [&'static str],
    /// What the first run costs: `about 4 minutes and 700 MB`.
    pub(crate) cost: &'static str,
    /// Installs the software into [`Site::software`].
    pub(crate) install: fn(&Site<'_>) -> Result<()>,
    /// Makes the state that every run begins with, in [`Site::state`]. `None` if it keeps none.
    pub(crate) prepare: Option<fn(&Site<'_>) -> Result<()>>,
    /// The program that runs it: it prints a line `NAME=value` for each variable that tests need, then an
    /// empty line once it is ready, and ends when its standard input does. What it writes to standard error
    /// is its log.
    pub(crate) serve: fn(&Site<'_>) -> std::process::Command,
}

/// Installs what is missing, starts the stack, runs the tests of its tier, and stops it.
pub(crate) fn run(workspace: &Workspace, stack: &Stack) -> Result<Outcome> {
    run_tier(workspace, stack, stack.name)
}

/// The same with the tests of another tier.
pub(crate) fn run_tier(workspace: &Workspace, stack: &Stack, tier: &str) -> Result<Outcome> {
    let folder = workspace.cache().join("stacks");
    // One run at a time: a stack is too large to run twice, and has one state.
    let _alone = lock(&folder.join(format!("{}.lock", stack.name)), || {
        let wait = format!("waiting for another run that uses the stack {}", stack.name);
        workspace.screen().line(&wait);
    })?;
    let site = Site::of(workspace, stack, &folder)?;
    site.ensure(stack)?;
    let running = Running::start(&site, (stack.serve)(&site))
        .with_context(|| format!("the stack {} did not start", stack.name))?;
    let outcome = programs::ignored_with(workspace, tier, running.variables());
    running.stop();
    outcome
}

#[cfg(test)]
mod tests;
