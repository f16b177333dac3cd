//! Building a program with Go, once for all processes of a user.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::cache::Module;
use super::lookup::is_executable;
use super::{KUBERNETES_VERSION, Located, Origin, Tool, ToolError, cache};
use crate::control_plane::tail::last_lines;

/// How often progress is reported during a build.
const PROGRESS: Duration = Duration::from_secs(30);

/// How many of Go's last lines an error repeats.
const LINES_OF_OUTPUT: usize = 20;

/// A program to be built.
pub(super) struct Build<'a> {
    pub(super) tool: Tool,
    /// The `go` command.
    pub(super) go: &'a Path,
    /// The directory of the cache that gets the program.
    pub(super) into: &'a Path,
    /// Where progress is reported.
    pub(super) say: &'a (dyn Fn(&str) + Sync),
}

impl Build<'_> {
    /// Builds the program unless another process has done so meanwhile.
    pub(super) async fn run(&self) -> Result<Located, ToolError> {
        fs::create_dir_all(self.into).map_err(ToolError::io("create", self.into))?;
        let _lock = self.lock(self.into.join("build.lock")).await?;

        let path = self.into.join(self.tool.name());
        if !is_executable(&path) {
            self.compile(&path).await?;
        }
        let origin = Origin::Built;
        Ok(Located { path, origin })
    }

    /// Takes the lock of the cache directory. The system releases it when its owner ends, however it ends.
    async fn lock(&self, path: PathBuf) -> Result<File, ToolError> {
        let file = File::create(&path).map_err(ToolError::io("create", &path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(ToolError::io("lock", &path)(source)),
        }
        (self.say)(&format!(
            "waiting for another process that builds {} ({})",
            self.tool.name(),
            path.display()
        ));
        tokio::task::spawn_blocking(move || file.lock().map(|()| file))
            .await
            .unwrap_or_else(|ended| Err(ended.into()))
            .map_err(ToolError::io("lock", &path))
    }

    /// Compiles under another name and renames, so that a killed build leaves nothing that looks like a program.
    async fn compile(&self, path: &Path) -> Result<(), ToolError> {
        let name = self.tool.name();
        let source = self.into.join("source");
        write_module(self.tool.module(), &source)?;
        remove_partial_builds(self.into)?;
        let partial = self
            .into
            .join(format!(".{name}.{}.partial", std::process::id()));

        let began = Instant::now();
        (self.say)(&format!(
            "building {name} for Kubernetes {KUBERNETES_VERSION} with Go into {} (once; etcd and kube-apiserver \
             together take about 6 minutes on 2 cores)",
            self.into.display()
        ));
        let output = self
            .with_progress(began, self.command(&source, &partial))
            .await
            .map_err(ToolError::io("run", self.go))?;
        if !output.status.success() {
            return Err(ToolError::Build {
                command: format!("go build {}", self.tool.package()),
                status: output.status,
                output: last_lines(&String::from_utf8_lossy(&output.stderr), LINES_OF_OUTPUT),
            });
        }
        fs::rename(&partial, path).map_err(ToolError::io("rename to its final name", &partial))?;
        (self.say)(&format!("built {name} in {} s", began.elapsed().as_secs()));
        Ok(())
    }

    fn command(&self, source: &Path, partial: &Path) -> Command {
        let mut command = Command::new(self.go);
        command
            .arg("build")
            .args(cache::build_flags())
            .arg("-o")
            .arg(partial)
            .arg(self.tool.package())
            .current_dir(source)
            // The same static program on every machine, with or without a C compiler or a surrounding workspace.
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env_remove("GOFLAGS")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    async fn with_progress(&self, began: Instant, mut command: Command) -> std::io::Result<Output> {
        let output = command.output();
        tokio::pin!(output);
        loop {
            tokio::select! {
                output = &mut output => return output,
                () = tokio::time::sleep(PROGRESS) => {
                    let seconds = began.elapsed().as_secs();
                    (self.say)(&format!("still building {}: {seconds} s", self.tool.name()));
                }
            }
        }
    }
}

fn write_module(module: &Module, dir: &Path) -> Result<(), ToolError> {
    fs::create_dir_all(dir).map_err(ToolError::io("create", dir))?;
    for (name, text) in module.files {
        let path = dir.join(name);
        fs::write(&path, text).map_err(ToolError::io("write", &path))?;
    }
    Ok(())
}

/// Removes what killed builds have left; the lock keeps live ones away.
fn remove_partial_builds(dir: &Path) -> Result<(), ToolError> {
    for entry in fs::read_dir(dir)
        .map_err(ToolError::io("list", dir))?
        .flatten()
    {
        let path = entry.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "partial")
        {
            fs::remove_file(&path).map_err(ToolError::io("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
