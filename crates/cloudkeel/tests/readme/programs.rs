//! The commands that need no cluster.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::shell::{Running, curl, printed, shell, workspace};

pub(crate) const DEMO: &str = "cargo run --release -- demo";
pub(crate) const WHOLE_DEMO: &str = "cargo run --release -- demo --scenario all --exit";
pub(crate) const HETZNER_DEMO: &str = "cargo run --release -- demo --cloud hetzner";
pub(crate) const PROVIDERS: &str = "cargo run --release -- providers";
pub(crate) const PROVIDER: &str = "cargo run --release -- providers local";
pub(crate) const TEST: &str = "cargo xtask test";
pub(crate) const CHECK: &str = "cargo xtask check";
pub(crate) const EMULATE: &str = "cloudkeel emulate hetzner";

fn home() -> TempDir {
    TempDir::new().expect("a folder")
}

/// The first of these lines that has this text, from there on.
fn after<'a>(lines: &'a [String], text: &str) -> &'a str {
    let found = lines.iter().find_map(|line| line.split_once(text));
    found.map_or_else(|| panic!("no {text:?} in {lines:#?}"), |(_, rest)| rest)
}

/// Starts a demo, reads its page and its Service, and ends it.
async fn demo_answers(command: &str, provider: &str) {
    let home = home();
    let mut demo = Running::start(shell(command, home.path()));
    let lines = demo.lines_until(|line| line.contains(" answers: "));
    let page = after(&lines, "  page ").trim();
    assert!(curl(&[page]).contains("<title>cloudkeel</title>"));
    let picture = curl(&[&format!("{page}picture")]);
    let picture: Value = serde_json::from_str(&picture).expect("a picture");
    assert_eq!(picture["nodes"].as_array().map(Vec::len), Some(3));
    assert_eq!(picture["clouds"][0]["provider"], provider);
    let service = after(&lines, "$ curl ");
    let answer = curl(&[service]);
    assert!(answer.starts_with("default/hello on node-"), "{answer}");
    assert_eq!(demo.end("INT").await, Some(0));
}

#[tokio::test]
async fn the_demo_says_where_it_is_answers_there_and_ends_by_ctrl_c() {
    demo_answers(DEMO, "local").await;
}

#[tokio::test]
async fn the_demo_does_the_same_on_the_emulated_hetzner_cloud() {
    demo_answers(HETZNER_DEMO, "hcloud").await;
}

#[test]
fn providers_are_listed_and_one_is_shown_with_its_keys() {
    let home = home();
    let all = printed(shell(PROVIDERS, home.path()));
    for name in ["hcloud ", "local ", "openstack "] {
        assert!(all.lines().any(|line| line.starts_with(name)), "{all}");
    }
    let one = printed(shell(PROVIDER, home.path()));
    assert!(one.contains("endpoint"), "{one}");
}

#[test]
fn an_emulator_says_how_to_reach_it_and_answers() {
    let home = home();
    let mut emulator = Running::start(shell(EMULATE, home.path()));
    let lines = emulator.lines_until(|line| line.starts_with("HCLOUD_TOKEN="));
    let token = after(&lines, "HCLOUD_TOKEN=");
    let servers = format!("{}/servers", after(&lines, "HCLOUD_ENDPOINT="));
    let header = format!("Authorization: Bearer {token}");
    assert!(curl(&["--header", &header, &servers]).contains("\"node-1\""));
}

/// What `cargo` prints in the repository.
fn cargo(words: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).current_dir(workspace());
    printed(cargo)
}

/// The real run includes all tiers, and this test is part of one of them.
#[test]
fn the_checks_of_the_repository_run_by_one_command() {
    for line in [TEST, CHECK] {
        let words = line.split(' ').skip(1);
        let words: Vec<_> = words.chain(["--tier", "edges"]).collect();
        let summary = cargo(&words);
        assert!(summary.contains("1 passed, 0 failed"), "{line}: {summary}");
    }
}

/// `cargo run` needs no package and no binary to be named.
#[test]
fn cargo_runs_the_program_from_the_folder_of_the_repository() {
    let metadata = cargo(&["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let defaults = metadata["workspace_default_members"].as_array();
    let [default] = defaults.expect("a list").as_slice() else {
        panic!("one crate is the default: {defaults:?}")
    };
    let mut packages = metadata["packages"].as_array().expect("a list").iter();
    let package = packages.find(|package| &package["id"] == default);
    let targets = package.and_then(|package| package["targets"].as_array());
    let binaries = targets.expect("its targets").iter();
    let binaries = binaries.filter(|target| target["kind"][0] == "bin");
    let names: Vec<_> = binaries.map(|binary| &binary["name"]).collect();
    assert_eq!(names, ["cloudkeel"]);
}
