//! House rules that are cheap to check by reading the files of the repository.

pub(crate) mod code;
mod commands;
pub(crate) mod ignored;
pub(crate) mod lines;
mod links;
mod markdown;
mod named_tests;
mod rules;
pub(crate) mod words;

use std::fs;

use anyhow::{Context as _, Result};

use crate::bench;
use crate::outcome::Outcome;
use crate::tier;
use crate::workspace::{Workspace, output_of};

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let paths = rust_files(workspace)?;
    let mut broken = Vec::new();
    for path in &paths {
        broken.extend(broken_rules(workspace, path)?);
    }
    broken.extend(bench::check_page(workspace)?);
    broken.extend(lines::count(workspace)?.findings());
    broken.extend(words::findings(workspace)?);
    broken.extend(commands::findings(workspace)?);
    broken.extend(links::findings(workspace)?);
    broken.extend(named_tests::findings(workspace)?);
    let screen = workspace.screen();
    for finding in &broken {
        screen.line(finding);
    }
    screen.line(&format!("{} Rust files read", paths.len()));
    Ok(match (paths.len(), broken.len()) {
        (0, _) => Outcome::failed("git lists no Rust file".to_owned()),
        (_, 0) => Outcome::passed(),
        (_, 1) => Outcome::failed("1 house rule is broken".to_owned()),
        (_, several) => Outcome::failed(format!("{several} house rules are broken")),
    })
}

/// The rules that a Rust file breaks.
fn broken_rules(workspace: &Workspace, path: &str) -> Result<Vec<String>> {
    let bytes =
        fs::read(workspace.root().join(path)).with_context(|| format!("cannot read {path}"))?;
    let source = String::from_utf8_lossy(&bytes);
    let tiers = tier::names();
    let rules = rules::findings(path, &source);
    let rules = rules
        .iter()
        .map(|it| format!("{path}:{}: {}", it.line, it.what));
    let ignored = ignored::ignored_tests(path, &source);
    let ignored = ignored.iter().filter_map(|test| {
        let complaint = test.complaint(&tiers)?;
        Some(format!("{path}:{}: {complaint}", test.line))
    });
    Ok(rules.chain(ignored).collect())
}

fn rust_files(workspace: &Workspace) -> Result<Vec<String>> {
    tracked_files(workspace, &["*.rs"])
}

/// What git tracks, or would track: new files count before they are added.
fn tracked_files(workspace: &Workspace, patterns: &[&str]) -> Result<Vec<String>> {
    let mut list = workspace.command("git");
    list.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
    ]);
    list.args(patterns);
    let output = output_of(list)?;
    let mut paths: Vec<String> = output
        .split(|&byte| byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| String::from_utf8_lossy(path).into_owned())
        // A file that was deleted but not yet committed is still in the index.
        .filter(|path| workspace.root().join(path).is_file())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}
