//! Builds every test program of the workspace at once, so that all tiers run what one build made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::metadata::{Metadata, Package};
use crate::workspace::Workspace;

/// Every cargo command of every tier selects the features of dependencies by these, so that none of them
/// builds a dependency again in another flavour.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// What cargo has built.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) tests: Vec<TestProgram>,
    /// Programs by name, such as `cloudkeel`.
    pub(crate) programs: BTreeMap<String, PathBuf>,
    pub(crate) time: Duration,
    /// Why it failed; `None` if it did not.
    pub(crate) problem: Option<String>,
}

impl Built {
    /// The path of a program.
    pub(crate) fn program(&self, name: &str) -> Result<&Path> {
        let path = self.programs.get(name);
        let path = path.with_context(|| format!("cargo did not build {name}"))?;
        Ok(path)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// The folder of its crate, relative to the root: `crates/api`.
    pub(crate) place: String,
    /// `lib`, or the name of the program or of the integration test.
    pub(crate) target: String,
    pub(crate) kind: Kind,
    path: PathBuf,
    package: Package,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unit,
    Integration,
}

/// Builds the unit and integration tests, and with them the programs of the crates that have some.
pub(crate) fn tests(workspace: &Workspace) -> Result<Built> {
    let mut cargo = workspace.cargo_building("test");
    cargo.args(EVERYTHING).args(["--tests", "--no-run"]);
    run(workspace, cargo)
}

/// Builds one program.
pub(crate) fn program(workspace: &Workspace, name: &str) -> Result<Built> {
    let mut cargo = workspace.cargo_building("build");
    cargo.args(EVERYTHING).args(["--bin", name]);
    run(workspace, cargo)
}

/// Runs a command of [`Workspace::cargo_building`].
pub(crate) fn run(workspace: &Workspace, cargo: Command) -> Result<Built> {
    let metadata = Metadata::read(workspace)?;
    let start = Instant::now();
    let (problem, artifacts) = workspace.build(cargo)?;
    let mut built = collect(&artifacts, &metadata)?;
    built.time = start.elapsed();
    built.problem = problem;
    Ok(built)
}

/// A message of cargo about something that it built, or found built.
#[derive(Debug, Deserialize)]
pub(crate) struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    #[serde(default)]
    pub(crate) filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

fn collect(artifacts: &[Artifact], metadata: &Metadata) -> Result<Built> {
    let mut built = Built::default();
    for artifact in artifacts {
        let Some(path) = &artifact.executable else {
            continue;
        };
        let is = |kind: &str| artifact.target.kind.iter().any(|name| name == kind);
        if !artifact.profile.test {
            if is("bin") {
                let name = artifact.target.name.clone();
                built.programs.insert(name, path.clone());
            }
            continue;
        }
        let package = metadata
            .members()
            .find(|member| member.manifest_path == artifact.manifest_path)
            .with_context(|| format!("{} is no member", artifact.manifest_path.display()))?;
        built.tests.push(TestProgram {
            place: metadata.place(package).to_owned(),
            target: if is("lib") {
                "lib".to_owned()
            } else {
                artifact.target.name.clone()
            },
            kind: if is("test") {
                Kind::Integration
            } else {
                Kind::Unit
            },
            path: path.clone(),
            package: package.clone(),
        });
    }
    Ok(built)
}

impl TestProgram {
    /// `crates/api lib`
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.place, self.target)
    }

    /// Runs as `cargo test` runs it: in the folder of its crate, with what cargo says about that crate.
    pub(crate) fn command(&self, workspace: &Workspace) -> Command {
        let mut command = workspace.command(&self.path);
        let manifest = &self.package.manifest_path;
        let folder = manifest.parent().unwrap_or(Path::new("."));
        let version = &self.package.version;
        let mut numbers = version.split('.');
        command
            .current_dir(folder)
            .env("CARGO", workspace.cargo_program())
            .env("CARGO_MANIFEST_DIR", folder)
            .env("CARGO_MANIFEST_PATH", manifest)
            .env("CARGO_PKG_NAME", &self.package.name)
            .env("CARGO_PKG_VERSION", version)
            .env(
                "CARGO_PKG_VERSION_MAJOR",
                numbers.next().unwrap_or_default(),
            )
            .env(
                "CARGO_PKG_VERSION_MINOR",
                numbers.next().unwrap_or_default(),
            );
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Resolve, package};

    fn metadata() -> Metadata {
        let packages = vec![package("cloudkeel-api", "crates/api")];
        Metadata {
            workspace_members: packages.iter().map(|package| package.id.clone()).collect(),
            packages,
            workspace_root: "/repo".into(),
            target_directory: "/repo/target".into(),
            resolve: Resolve { nodes: Vec::new() },
        }
    }

    fn artifact(kind: &str, name: &str, test: bool, executable: Option<&str>) -> Artifact {
        serde_json::from_value(serde_json::json!({
            "reason": "compiler-artifact", "package_id": "any",
            "manifest_path": "/repo/crates/api/Cargo.toml",
            "target": {"kind": [kind], "name": name, "test": true},
            "profile": {"test": test, "opt_level": "0"},
            "filenames": [], "executable": executable, "fresh": true,
        }))
        .unwrap()
    }

    #[test]
    fn test_programs_and_programs_are_kept_apart() {
        let artifacts = [
            artifact("lib", "cloudkeel_api", false, None),
            artifact("lib", "cloudkeel_api", true, Some("/t/api-1")),
            artifact("bin", "cloudkeel", true, Some("/t/bin-1")),
            artifact("test", "wire", true, Some("/t/wire-1")),
            artifact("bin", "cloudkeel", false, Some("/t/cloudkeel")),
        ];
        let built = collect(&artifacts, &metadata()).unwrap();
        let names: Vec<_> = built
            .tests
            .iter()
            .map(|test| (test.name(), test.kind))
            .collect();
        assert_eq!(
            names,
            [
                ("crates/api lib".to_owned(), Kind::Unit),
                ("crates/api cloudkeel".to_owned(), Kind::Unit),
                ("crates/api wire".to_owned(), Kind::Integration),
            ]
        );
        assert_eq!(built.programs["cloudkeel"], Path::new("/t/cloudkeel"));
    }

    #[test]
    fn a_test_program_runs_in_the_folder_of_its_crate_and_knows_it() {
        let artifacts = [artifact("test", "wire", true, Some("/t/wire-1"))];
        let built = collect(&artifacts, &metadata()).unwrap();
        let command = built.tests[0].command(&Workspace::made_up());
        assert_eq!(
            command.get_current_dir(),
            Some(Path::new("/repo/crates/api"))
        );
        let value = |name: &str| {
            command
                .get_envs()
                .find(|(variable, _)| *variable == name)
                .and_then(|(_, value)| value?.to_str())
        };
        assert_eq!(value("CARGO_MANIFEST_DIR"), Some("/repo/crates/api"));
        assert_eq!(value("CARGO_PKG_NAME"), Some("cloudkeel-api"));
        assert_eq!(value("CARGO_PKG_VERSION_MAJOR"), Some("0"));
    }
}
