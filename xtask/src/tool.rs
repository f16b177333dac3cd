//! Tools that the checks need and that xtask builds for itself, pinned, into the cache.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::outcome::Outcome;
use crate::workspace::Workspace;

pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    /// What it is asked for its version.
    ask: &'static [&'static str],
    /// What a first build costs, so that it does not look as if it hangs.
    cost: &'static str,
}

const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    ask: &["--version"],
    cost: "a minute or two",
};

pub(crate) const CARGO_LLVM_COV: Tool = Tool {
    name: "cargo-llvm-cov",
    version: "0.9.1",
    // Like any subcommand of cargo it expects its own name first.
    ask: &["llvm-cov", "--version"],
    cost: "about a minute",
};

/// Advisories need a database beyond the crate registry, so they are checked in public CI only.
pub(crate) fn deny(workspace: &Workspace) -> Result<Outcome> {
    let program = CARGO_DENY.install(workspace)?;
    let mut deny = workspace.command(program);
    deny.args([
        "--manifest-path",
        "Cargo.toml",
        "check",
        "--hide-inclusion-graph",
    ]);
    deny.args(["bans", "licenses", "sources"]);
    let outcome = workspace.check(deny)?;
    if outcome.problem.is_some() {
        workspace
            .screen()
            .line("`cargo tree --workspace --invert CRATE` shows which crate depends on it");
    }
    Ok(outcome)
}

impl Tool {
    /// The path of the tool in the right version, built if it is not there yet.
    pub(crate) fn install(&self, workspace: &Workspace) -> Result<PathBuf> {
        let tools = workspace.cache().join("tools");
        let program = tools.join("bin").join(self.name);
        let _alone = lock(&tools.join(format!("{}.lock", self.name)), || {
            let wait = format!("waiting for another process that builds {}", self.name);
            workspace.screen().line(&wait);
        })?;
        if !self.is_current(&program) {
            let wait = format!(
                "building {} {} once: {}",
                self.name, self.version, self.cost
            );
            workspace.screen().line(&wait);
            self.build(workspace, &tools)?;
            // What it was built from is of no use any more.
            let _ = fs::remove_dir_all(tools.join("target"));
        }
        Ok(program)
    }

    fn is_current(&self, program: &Path) -> bool {
        let output = Command::new(program)
            .args(self.ask)
            .stderr(Stdio::null())
            .output();
        output.is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).trim()
                == format!("{} {}", self.name, self.version)
        })
    }

    fn build(&self, workspace: &Workspace, tools: &Path) -> Result<()> {
        let mut install = workspace.cargo(&["install", self.name, "--locked", "--force"]);
        install
            .args(["--version", self.version, "--root"])
            .arg(tools);
        // It runs for a second or two: optimising it would cost more than it ever saves.
        install.args(["--debug", "--config", "profile.dev.debug=false"]);
        // Kept until it is installed, so that a build that was broken off goes on where it was.
        install.env("CARGO_TARGET_DIR", tools.join("target"));
        if let Some(problem) = workspace.check(install)?.problem {
            bail!("cannot install {} {}: {problem}", self.name, self.version);
        }
        Ok(())
    }
}

/// Waits until no other process holds the lock, and says so if it has to. It is given back when the file
/// is closed, so a process that dies never leaves it behind.
pub(crate) fn lock(path: &Path, say_so: impl FnOnce()) -> Result<File> {
    let folder = path.parent().context("a lock file stands in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        say_so();
    }
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_is_current() {
        // `cargo --version` is a program that surely answers, though with more than its version.
        let cargo = Path::new(env!("CARGO"));
        let answer = Command::new(cargo)
            .arg("--version")
            .output()
            .unwrap()
            .stdout;
        let answer = String::from_utf8(answer).unwrap();
        let version: &'static str = answer
            .trim()
            .strip_prefix("cargo ")
            .unwrap()
            .to_owned()
            .leak();
        let tool = |version| Tool {
            name: "cargo",
            version,
            ask: &["--version"],
            cost: "",
        };

        assert!(tool(version).is_current(cargo));
        assert!(!tool("0.0.1").is_current(cargo));
        assert!(!tool(version).is_current(Path::new("/no/such/program")));
    }

    #[test]
    fn a_lock_keeps_others_out_until_it_is_dropped() {
        let folder = std::env::temp_dir().join(format!("xtask-lock-{}", std::process::id()));
        let path = folder.join("deep").join("tool.lock");
        let held = lock(&path, || panic!("no other process has the lock")).unwrap();
        let other = File::open(&path).unwrap();
        assert!(
            other.try_lock().is_err(),
            "two processes would build the same tool"
        );

        // A process that has to wait says so first, and gets the lock when it is free.
        let mut held = Some(held);
        let again = lock(&path, || drop(held.take())).unwrap();
        assert!(
            held.is_none(),
            "it was said that there is something to wait for"
        );
        drop(again);
        assert!(other.try_lock().is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
