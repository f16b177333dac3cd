//! The tiers that are cargo commands.
//!
//! None of them is `--quiet`: a cargo that builds for minutes without a word looks like one that hangs.

use anyhow::Result;

use crate::bench;
use crate::metadata::{Metadata, Package};
use crate::screen::Palette;
use crate::workspace::{Outcome, Workspace};

pub(crate) fn fmt(workspace: &Workspace) -> Result<Outcome> {
    let mut fmt = workspace.cargo(&["fmt", "--all", "--check"]);
    // Left alone, rustfmt paints its differences even into a file.
    if workspace.screen().palette() == Palette::Plain {
        fmt.args(["--", "--color", "never"]);
    }
    workspace.check(fmt)
}

pub(crate) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let mut clippy = workspace.cargo(&["clippy", "--workspace", "--all-targets", "--all-features"]);
    clippy.args(["--", "-D", "warnings"]);
    workspace.check(clippy)
}

/// `--workspace` unites the features of all crates, so a crate that forgot to ask for one still
/// builds there. Alone it does not.
pub(crate) fn features(workspace: &Workspace) -> Result<Outcome> {
    let metadata = Metadata::read(workspace)?;
    let checks: Vec<Vec<&str>> = metadata.members().flat_map(feature_checks).collect();
    if checks.is_empty() {
        workspace.screen().line("no crate declares features");
    }
    checks
        .into_iter()
        .try_fold(Outcome::default(), |all, arguments| {
            Ok(all.and(workspace.check(workspace.cargo(&arguments))?))
        })
}

/// The `cargo check`s that show a crate builds with no feature, and with each one alone.
fn feature_checks(package: &Package) -> Vec<Vec<&str>> {
    if package.features.is_empty() {
        return Vec::new();
    }
    let bare = vec![
        "check",
        "--package",
        package.name.as_str(),
        "--no-default-features",
    ];
    let each = package.features.keys().map(|feature| {
        let mut one = bare.clone();
        one.extend(["--features", feature.as_str()]);
        one
    });
    std::iter::once(bare.clone()).chain(each).collect()
}

/// Prints the reference pages and the tables of the benchmarks anew. Not a tier: tests compare them with what they
/// are printed from.
pub(crate) fn write_reference(workspace: &Workspace) -> Result<Outcome> {
    bench::print_page(workspace)?;
    let mut print = workspace.cargo(&["run", "--package", "cloudkeel", "--all-features", "--"]);
    print.args(["docs", "--write", "docs/reference"]);
    workspace.check(print)
}

/// Plays seeds of the simulation. Thousands of runs are worth a build of their own.
pub(crate) fn simulate(workspace: &Workspace, rest: &[String]) -> Result<Outcome> {
    let mut run = workspace.cargo(&["run", "--profile", "simulation"]);
    run.args(["--package", "cloudkeel-simulation", "--"]);
    run.args(rest);
    workspace.check(run)
}

/// The tests of the simulation, which play many runs.
pub(crate) fn simulation(workspace: &Workspace) -> Result<Outcome> {
    let tests = [
        "test",
        "--profile",
        "simulation",
        "--package",
        "cloudkeel-simulation",
        "--test",
        "simulation",
        "--",
        "--include-ignored",
    ];
    workspace.tests(workspace.cargo(&tests))
}

/// Feeds broken input to readers.
pub(crate) fn fuzz(workspace: &Workspace, rest: &[String]) -> Result<Outcome> {
    let mut run = workspace.cargo(&["run", "--package", "cloudkeel-fuzz", "--"]);
    run.args(rest);
    workspace.check(run)
}

/// So many inputs for each target take about half a minute.
pub(crate) fn fuzz_a_little(workspace: &Workspace) -> Result<Outcome> {
    fuzz(
        workspace,
        &["--rounds=700".to_owned(), "--seed=1".to_owned()],
    )
}

pub(crate) fn unit(workspace: &Workspace) -> Result<Outcome> {
    let tests = workspace.cargo(&test_with(&["--all-features", "--lib", "--bins"]));
    workspace.tests(tests)
}

pub(crate) fn integration(workspace: &Workspace) -> Result<Outcome> {
    let tests = workspace.cargo(&test_with(&["--all-features", "--test", "*"]));
    workspace.tests(tests)
}

pub(crate) fn doc(workspace: &Workspace) -> Result<Outcome> {
    let examples = workspace.cargo(&test_with(&["--all-features", "--doc"]));
    let examples = workspace.tests(examples)?;

    let mut pages = workspace.cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    pages.env("RUSTDOCFLAGS", "-D warnings");
    Ok(examples.and(workspace.check(pages)?))
}

/// One failing test binary must not hide what the others would say.
fn test_with<'a>(which: &[&'a str]) -> Vec<&'a str> {
    [&["test", "--workspace", "--no-fail-fast"], which].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::package;

    #[test]
    fn a_crate_without_features_needs_no_extra_build() {
        assert!(feature_checks(&package("plain", "crates/plain")).is_empty());
    }

    #[test]
    fn a_crate_with_features_builds_without_them_and_with_each() {
        let mut clouds = package("clouds", "crates/clouds");
        clouds.features = [("default", vec!["a".to_owned()]), ("a", vec![])]
            .map(|(k, v)| (k.to_owned(), v))
            .into();
        let lines: Vec<String> = feature_checks(&clouds)
            .iter()
            .map(|arguments| arguments.join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "check --package clouds --no-default-features",
                "check --package clouds --no-default-features --features a",
                "check --package clouds --no-default-features --features default",
            ],
        );
    }
}
