//! Where a stack is installed, and what makes it complete.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use super::Stack;
use crate::report::in_words;
use crate::workspace::Workspace;

/// The place of a stack in the cache. Its name has a hash of the inputs, so that another version of the
/// repository does not take it for its own.
pub(crate) struct Site<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
    /// Begins the name of every version of this stack.
    prefix: String,
}

impl<'a> Site<'a> {
    pub(super) fn of(workspace: &'a Workspace, stack: &Stack, stacks: &Path) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        for input in stack.inputs {
            let path = workspace.root().join(input);
            let content = fs::read(&path);
            let content = content.with_context(|| format!("cannot read {}", path.display()))?;
            (input, content).hash(&mut hasher);
        }
        let prefix = format!("{}-", stack.name);
        Ok(Self {
            workspace,
            folder: stacks.join(format!("{prefix}{:016x}", hasher.finish())),
            prefix,
        })
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        self.workspace
    }

    /// Where the software is. It does not move: programs may keep this path.
    pub(crate) fn software(&self) -> PathBuf {
        self.folder.join("software")
    }

    /// Where the state of the run is. It does not move either.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn snapshot(&self) -> PathBuf {
        self.folder.join("snapshot")
    }

    /// Runs a step of an installation in full view; fails if it fails.
    pub(crate) fn step(&self, what: &str, command: Command) -> Result<()> {
        self.workspace.screen().line(what);
        match self.workspace.check(command)?.problem {
            None => Ok(()),
            Some(problem) => bail!("{what}: {problem}"),
        }
    }

    /// Installs the software and makes the first state if that was not done before, and begins a run with a
    /// copy of that state.
    pub(super) fn ensure(&self, stack: &Stack) -> Result<()> {
        let screen = self.workspace.screen();
        if !is_complete(&self.software()) {
            let start = Instant::now();
            screen.line(&format!("installing {} once: {}", stack.name, stack.cost));
            self.remove_other_versions()?;
            clear(&self.folder)?;
            fs::create_dir_all(self.software()).context("cannot create the folder of a stack")?;
            (stack.install)(self)?;
            complete(&self.software())?;
            screen.line(&format!("installed in {}", in_words(start.elapsed())));
        }
        clear(&self.state())?;
        if let Some(prepare) = stack.prepare {
            if !is_complete(&self.snapshot()) {
                let start = Instant::now();
                screen.line("making the state that every run begins with");
                clear(&self.snapshot())?;
                fs::create_dir_all(self.state()).context("cannot create the state of a stack")?;
                prepare(self)?;
                copy(&self.state(), &self.snapshot())?;
                complete(&self.snapshot())?;
                screen.line(&format!("made in {}", in_words(start.elapsed())));
                clear(&self.state())?;
            }
            copy(&self.snapshot(), &self.state())
        } else {
            fs::create_dir_all(self.state()).context("cannot create the state of a stack")
        }
    }

    fn remove_other_versions(&self) -> Result<()> {
        let stacks = self.folder.parent().unwrap_or(&self.folder);
        for entry in fs::read_dir(stacks).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_version = name.to_string_lossy().starts_with(&self.prefix);
            if is_version && entry.path() != self.folder {
                clear(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Beside a folder, so that it is no part of it: says that the folder has all that belongs into it.
fn marker(folder: &Path) -> PathBuf {
    folder.with_extension("complete")
}

fn is_complete(folder: &Path) -> bool {
    marker(folder).is_file() && folder.is_dir()
}

fn complete(folder: &Path) -> Result<()> {
    fs::write(marker(folder), "").with_context(|| format!("cannot mark {}", folder.display()))
}

fn clear(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// With modes, times and links, which databases and virtual environments need.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("cannot copy {} to {}", from.display(), to.display()),
    }
}
