//! The image: `cargo xtask image` writes it without a container engine, and a tier checks it.

mod build;
mod layout;
mod tar;

use std::path::Path;

use anyhow::{Context as _, Result};

pub(crate) use build::{ImageArgs, write};

use crate::outcome::Outcome;
use crate::programs;
use crate::workspace::{Workspace, output_of};

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = missing_target(workspace)? {
        return Ok(Outcome::skipped(reason));
    }
    let written = write(workspace, &ImageArgs::default())?;
    if written.problem.is_some() {
        return Ok(written);
    }
    programs::ignored(workspace, "image")
}

/// What the binary of the image is built for: no C library, on this architecture.
fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Installs the target if need be; why that is not possible, if it is not.
fn missing_target(workspace: &Workspace) -> Result<Option<String>> {
    let target = target();
    if is_installed(workspace, &target)? {
        return Ok(None);
    }
    let mut add = workspace.command("rustup");
    add.args(["target", "add", &target]);
    let added = workspace.check(add);
    let added = added.unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
    let problem = added.problem;
    Ok(problem.map(|it| format!("needs the target {target}, which is not installed: {it}")))
}

/// Whether the toolchain of this workspace has the standard library for a target.
fn is_installed(workspace: &Workspace, target: &str) -> Result<bool> {
    let mut ask = workspace.command("rustc");
    ask.args(["--print", "sysroot"]);
    let sysroot = String::from_utf8(output_of(ask)?).context("the path of the toolchain")?;
    let library = Path::new(sysroot.trim_end())
        .join("lib/rustlib")
        .join(target);
    Ok(library.join("lib").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_this_machine_is_installed_and_a_made_up_one_is_not() {
        let workspace = Workspace::made_up();
        let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        assert!(is_installed(&workspace, &here).unwrap());
        assert!(!is_installed(&workspace, "made-up-target").unwrap());
    }
}
