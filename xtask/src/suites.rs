//! The tiers that are cargo commands.
//!
//! None of them is `--quiet`: a cargo that builds for minutes without output looks as if it hangs.

use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::bench;
use crate::build::{self, Built, EVERYTHING};
use crate::count::{Count, Tally, Unit};
use crate::metadata::{Metadata, Package};
use crate::outcome::Outcome;
use crate::screen::Palette;
use crate::workspace::{Workspace, output_of};

pub(crate) fn fmt(workspace: &Workspace) -> Result<Outcome> {
    let mut fmt = workspace.cargo(&["fmt", "--all", "--check"]);
    // Left alone, rustfmt paints its differences even into a file.
    if workspace.screen().palette() == Palette::Plain {
        fmt.args(["--", "--color", "never"]);
    }
    workspace.check(fmt)
}

pub(crate) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let mut clippy = workspace.cargo_building("clippy");
    clippy.args(EVERYTHING).arg("--all-targets");
    clippy.args(["--", "-D", "warnings"]);
    check_build(workspace, clippy)
}

/// A build that counts as one check.
fn check_build(workspace: &Workspace, command: Command) -> Result<Outcome> {
    let start = Instant::now();
    let (problem, _) = workspace.build(command)?;
    let outcome = problem.map_or_else(Outcome::passed, Outcome::failed);
    Ok(outcome.built_in(start.elapsed()))
}

/// `--workspace` unites the features of all crates, so a crate that forgot to ask for one still
/// builds there. Alone it does not.
pub(crate) fn features(workspace: &Workspace) -> Result<Outcome> {
    let metadata = Metadata::read(workspace)?;
    let changed = workspace.session().changed.as_ref();
    let checks: Vec<Vec<&str>> = metadata
        .members()
        .filter(|member| changed.is_none_or(|it| it.reaches_place(metadata.place(member))))
        .flat_map(feature_checks)
        .collect();
    if checks.is_empty() {
        workspace.screen().line("no crate declares features");
        return Ok(Outcome::passed());
    }
    checks
        .into_iter()
        .try_fold(Outcome::default(), |all, arguments| {
            let mut check = workspace.cargo_building("check");
            check.args(arguments);
            Ok(all.and(check_build(workspace, check)?))
        })
}

/// The arguments of each `cargo check` that shows that a crate builds with no feature, and with each one alone.
fn feature_checks(package: &Package) -> Vec<Vec<&str>> {
    if package.features.is_empty() {
        return Vec::new();
    }
    let bare = vec!["--package", package.name.as_str(), "--no-default-features"];
    let is_another = |feature: &&String| !(*feature == "default" && is_every_feature(package));
    let each = package.features.keys().filter(is_another).map(|feature| {
        let mut one = bare.clone();
        one.extend(["--features", feature.as_str()]);
        one
    });
    std::iter::once(bare.clone()).chain(each).collect()
}

/// Whether the default features are all there are, which every other tier builds.
fn is_every_feature(package: &Package) -> bool {
    let mut reached = vec!["default"];
    let mut index = 0;
    while let Some(feature) = reached.get(index).copied() {
        let enabled = package.features.get(feature).into_iter().flatten();
        for name in enabled {
            if package.features.contains_key(name) && !reached.contains(&name.as_str()) {
                reached.push(name);
            }
        }
        index += 1;
    }
    reached.len() == package.features.len()
}

/// Prints the reference pages and the tables of the benchmarks anew. Not a tier: tests compare them with what they
/// are printed from.
pub(crate) fn write_reference(workspace: &Workspace) -> Result<Outcome> {
    bench::print_page(workspace)?;
    let mut print = workspace.cargo(&["run", "--package", "cloudkeel", "--all-features", "--"]);
    print.args(["docs", "--write", "docs/reference"]);
    workspace.check(print)
}

/// The end-to-end checks, on the cluster that the arguments name.
pub(crate) fn end_to_end(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    let mut run = workspace.cargo(&["run", "--package", "cloudkeel-e2e", "--all-features", "--"]);
    run.args(arguments);
    workspace.check(run)
}

/// Cargo for the simulation, optimised: thousands of runs are worth a build of their own.
fn cargo_for_simulation(workspace: &Workspace, subcommand: &str) -> Command {
    let mut cargo = workspace.cargo_building(subcommand);
    cargo.args(["--profile", "simulation", "--package", SIMULATION]);
    cargo
}

/// Builds the program that plays seeds, as the tier does.
pub(crate) fn build_simulation(workspace: &Workspace) -> Result<Built> {
    let mut cargo = cargo_for_simulation(workspace, "build");
    cargo.args(["--bin", SIMULATION]);
    build::run(workspace, cargo)
}

/// The tests of the simulation, which play many runs.
pub(crate) fn simulation(workspace: &Workspace) -> Result<Outcome> {
    let cargo = || {
        let mut cargo = cargo_for_simulation(workspace, "test");
        cargo.args(["--lib", "--test", "simulation"]);
        cargo
    };
    let mut build = cargo();
    build.arg("--no-run");
    let built = check_build(workspace, build)?;
    if built.problem.is_some() {
        return Ok(built);
    }
    let mut tests = cargo();
    // The output of tests that pass says how many seeds they played.
    tests.args(["--", "--include-ignored", "--show-output"]);
    Ok(workspace.tests(Unit::Test, tests)?.built_in(built.build))
}

pub(crate) const SIMULATION: &str = "cloudkeel-simulation";
pub(crate) const FUZZER: &str = "cloudkeel-fuzz";

/// Builds the program that feeds broken input to readers.
pub(crate) fn build_fuzzer(workspace: &Workspace) -> Result<Built> {
    build::program(workspace, FUZZER)
}

/// Runs a program that was built, as one check.
pub(crate) fn run_built(
    workspace: &Workspace,
    built: &Built,
    name: &str,
    arguments: &[String],
) -> Result<Outcome> {
    if let Some(problem) = &built.problem {
        return Ok(Outcome::failed(problem.clone()).built_in(built.time));
    }
    let mut run = workspace.command(built.program(name)?);
    run.args(arguments);
    Ok(workspace.check(run)?.built_in(built.time))
}

/// So many inputs for each target take about half a minute.
pub(crate) fn fuzz_a_little(workspace: &Workspace) -> Result<Outcome> {
    let built = build_fuzzer(workspace)?;
    let arguments = ["--rounds=700", "--seed=1"].map(str::to_owned);
    let outcome = run_built(workspace, &built, FUZZER, &arguments)?;
    if outcome.problem.is_some() {
        return Ok(outcome);
    }
    let mut list = workspace.command(built.program(FUZZER)?);
    list.arg("--list");
    let targets = String::from_utf8_lossy(&output_of(list)?).lines().count() as u64;
    let count = Count {
        passed: targets,
        ..Count::default()
    };
    let tally = Tally::of(Unit::Target, count);
    Ok(Outcome { tally, ..outcome })
}

pub(crate) fn doc(workspace: &Workspace) -> Result<Outcome> {
    let mut examples = workspace.cargo_building("test");
    examples.args(EVERYTHING).args(["--doc", "--no-fail-fast"]);
    let examples = workspace.tests(Unit::DocTest, examples)?;

    let mut pages = workspace.cargo_building("doc");
    pages.args(EVERYTHING).arg("--no-deps");
    pages.env("RUSTDOCFLAGS", "-D warnings");
    Ok(examples.and(check_build(workspace, pages)?))
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
        clouds.features = [
            ("default", vec!["a".to_owned()]),
            ("a", vec![]),
            ("b", vec![]),
        ]
        .map(|(k, v)| (k.to_owned(), v))
        .into();
        let lines: Vec<String> = feature_checks(&clouds)
            .iter()
            .map(|arguments| arguments.join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "--package clouds --no-default-features",
                "--package clouds --no-default-features --features a",
                "--package clouds --no-default-features --features b",
                "--package clouds --no-default-features --features default",
            ],
        );
    }

    #[test]
    fn default_features_are_checked_unless_they_are_all_that_there_are() {
        for (case, features, expected) in [
            (
                "all",
                vec![("default", vec!["a", "b"]), ("a", vec![]), ("b", vec![])],
                true,
            ),
            (
                "all, one by another",
                vec![
                    ("default", vec!["a"]),
                    ("a", vec!["b", "dep:x"]),
                    ("b", vec!["a"]),
                ],
                true,
            ),
            (
                "some",
                vec![("default", vec!["a"]), ("a", vec![]), ("b", vec![])],
                false,
            ),
        ] {
            let mut clouds = package("clouds", "crates/clouds");
            clouds.features = features
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v.into_iter().map(str::to_owned).collect()))
                .collect();
            assert_eq!(is_every_feature(&clouds), expected, "{case}");
        }
    }
}
