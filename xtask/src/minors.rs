//! The tier that runs the suites of the control plane on the newest minors of Kubernetes.
//!
//! Every other tier has the one that `crates/testkit/control-plane-build` pins. Here each minor has a module that is made
//! from its own `go.mod`, and its programs are built once into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::machine::Requirement;
use crate::outcome::Outcome;
use crate::programs;
use crate::tool::lock;
use crate::workspace::{Workspace, output_of};

pub(crate) const REQUIRES: &[Requirement] = &[Requirement::Program("go")];

pub(crate) const COST: &str =
    "about 6 minutes for each minor, to build its etcd, kube-apiserver and kubectl";

/// The newest patch of the newest three, as the module proxy has them.
const VERSIONS: [&str; 3] = ["v1.34.4", "v1.35.4", "v1.36.3"];

/// The programs, and their packages.
const PROGRAMS: [(&str, &str); 3] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

/// What depends on the API server's behaviour.
const SUITES: &[&str] = &[
    "crates/cloudkeel deploy",
    "crates/cloudkeel manager",
    "crates/manager election",
    "crates/manager serving",
];

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    VERSIONS
        .iter()
        .try_fold(Outcome::default(), |all, version| {
            let folder = provide(workspace, version)?;
            let screen = workspace.screen();
            screen.line(&format!(
                "the suites of the control plane on Kubernetes {version}"
            ));
            let assets = [("KUBEBUILDER_ASSETS", folder.into_os_string())];
            Ok(all.and(programs::named(workspace, SUITES, &assets)?))
        })
}

/// A folder with the programs of this version.
fn provide(workspace: &Workspace, version: &str) -> Result<PathBuf> {
    let folder = workspace.cache().join("kubernetes").join(version);
    let _alone = lock(&folder.join("lock"), || {
        let wait = format!("waiting for another process that builds Kubernetes {version}");
        workspace.screen().line(&wait);
    })?;
    for (program, package) in PROGRAMS {
        let path = folder.join(program);
        if !path.is_file() {
            let source = module(workspace, version, &folder)?;
            let wait = format!("building {program} of Kubernetes {version} with Go (once)");
            workspace.screen().line(&wait);
            build(workspace, version, (&source, package), &path)?;
        }
    }
    Ok(folder)
}

/// The module that requires this version, with everything pinned by its own.
fn module(workspace: &Workspace, version: &str, folder: &Path) -> Result<PathBuf> {
    let source = folder.join("source");
    if source.join("go.sum").is_file() {
        return Ok(source);
    }
    fs::create_dir_all(&source).with_context(|| format!("cannot create {}", source.display()))?;
    let mut ask = go(workspace, &source);
    ask.args(["mod", "download", "-json"])
        .arg(format!("k8s.io/kubernetes@{version}"));
    let answer: serde_json::Value = serde_json::from_slice(&output_of(ask)?)?;
    let own = answer.get("GoMod").and_then(serde_json::Value::as_str);
    let own = own.with_context(|| format!("Go has no go.mod of Kubernetes {version}"))?;
    let own = fs::read_to_string(own).with_context(|| format!("cannot read {own}"))?;
    let write = |name: &str, text: &str| {
        fs::write(source.join(name), text).with_context(|| format!("cannot write {name}"))
    };
    write("go.mod", &go_mod(version, &own)?)?;
    let imports = PROGRAMS
        .map(|(_, package)| format!("import _ \"{package}\"\n"))
        .concat();
    write(
        "tools.go",
        &format!("//go:build tools\n\npackage kubernetes\n\n{imports}"),
    )?;
    let mut tidy = go(workspace, &source);
    tidy.args(["mod", "tidy"]);
    if let Some(problem) = workspace.check(tidy)?.problem {
        bail!("cannot make a module of Kubernetes {version}: {problem}");
    }
    Ok(source)
}

/// A module that requires this version. The modules of Kubernetes' own repository have the version `v0.MINOR.PATCH`
/// outside of it; its own `go.mod` says which they are.
fn go_mod(version: &str, own: &str) -> Result<String> {
    let staged = version.strip_prefix("v1.");
    let staged = staged.with_context(|| format!("{version}: a version looks like v1.36.3"))?;
    let line_with = |start: &str| {
        own.lines()
            .map(str::trim)
            .find(|line| line.starts_with(start))
    };
    let language = line_with("go ").context("its go.mod has no line `go`")?;
    let etcd = line_with("go.etcd.io/etcd/client/v3 ").and_then(|line| line.split(' ').nth(1));
    let etcd = etcd.context("its go.mod requires no etcd client")?;
    let replaced = own.lines().filter_map(|line| {
        let (name, place) = line.trim().split_once(" => ")?;
        place
            .starts_with("./staging")
            .then_some(name.trim_start_matches("replace "))
    });
    let replaced: Vec<_> = replaced
        .map(|name| format!("replace {name} => {name} v0.{staged}\n"))
        .collect();
    let replaced = replaced.concat();
    Ok(format!(
        "module cloudkeel.dev/kubernetes\n\n{language}\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 {etcd}\n\t\
         k8s.io/kubernetes {version}\n)\n\n{replaced}"
    ))
}

fn build(
    workspace: &Workspace,
    version: &str,
    (source, package): (&Path, &str),
    path: &Path,
) -> Result<()> {
    // Under another name until it is whole.
    let partial = path.with_extension("partial");
    let minor = version.split('.').nth(1).unwrap_or_default();
    let names = [
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ];
    let stamps = names.map(|name| {
        format!(" -X {name}.gitVersion={version} -X {name}.gitMajor=1 -X {name}.gitMinor={minor}")
    });
    let mut build = go(workspace, source);
    build.args([
        "build",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags",
    ]);
    build
        .arg(format!("-s -w{}", stamps.concat()))
        .arg("-o")
        .arg(&partial)
        .arg(package);
    if let Some(problem) = workspace.check(build)?.problem {
        bail!("cannot build {package} of Kubernetes {version}: {problem}");
    }
    fs::rename(&partial, path).with_context(|| format!("cannot write {}", path.display()))
}

fn go(workspace: &Workspace, source: &Path) -> Command {
    let mut go = workspace.command("go");
    go.current_dir(source)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GOFLAGS", "");
    go
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire (\n\tgo.etcd.io/etcd/client/v3 v3.6.8\n)\n\n\
                       replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\texample.com/a => example.com/b v1.0.0\n)\n";

    #[test]
    fn the_modules_of_its_repository_have_its_version() {
        let text = go_mod("v1.36.3", OWN).unwrap();
        for part in [
            "go 1.26.0\n",
            "\tk8s.io/kubernetes v1.36.3\n",
            "\tgo.etcd.io/etcd/server/v3 v3.6.8\n",
            "replace k8s.io/api => k8s.io/api v0.36.3\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("example.com"), "{text}");
    }

    #[test]
    fn what_is_no_version_or_no_module_of_kubernetes_is_an_error() {
        assert!(go_mod("1.36", OWN).is_err());
        assert!(go_mod("v1.36.3", "module a\n").is_err());
    }

    #[test]
    fn the_minor_that_every_run_has_is_among_them() {
        let pinned = crate::workspace::here().join("../crates/testkit/control-plane-build/go.mod");
        let pinned = fs::read_to_string(pinned).unwrap();
        assert!(
            VERSIONS
                .iter()
                .any(|it| pinned.contains(&format!("k8s.io/kubernetes {it}")))
        );
    }
}
