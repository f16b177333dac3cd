//! The tier that builds the binary of the image, as the Dockerfile does.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::outcome::Outcome;
use crate::programs;
use crate::workspace::{Workspace, output_of};

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if !is_installed(workspace, &target)? {
        let mut add = workspace.command("rustup");
        add.args(["target", "add", &target]);
        let added = workspace.check(add);
        let added = added.unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
        if let Some(problem) = added.problem {
            let reason = format!("needs the target {target}, which is not installed: {problem}");
            return Ok(Outcome::skipped(reason));
        }
    }
    programs::ignored(workspace, "image")
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
