//! The guided scenario, as a program reads its output.

use std::path::Path;

use serde_json::Value;

use crate::process::{Demo, control_plane_assets};

const ALL: [&str; 8] = [
    "join",
    "balance",
    "power-off",
    "destroy",
    "outage",
    "wrong-token",
    "fail-over",
    "roll",
];

/// Reads to the end: the names of the steps, and the summary. Every step has passed.
fn steps(demo: &mut Demo) -> (Vec<String>, Value) {
    let mut names = Vec::new();
    while let Some(line) = demo.line() {
        if line["ended"].is_object() {
            return (names, line["ended"].clone());
        }
        let step = &line["step"];
        assert_eq!(step["passed"], true, "{step}");
        names.push(step["name"].as_str().expect("a name").to_owned());
    }
    panic!("the demo ended without a summary after {names:?}");
}

/// Plays everything on a cloud, to the end.
async fn every_step_passes_on(cloud: &str) {
    let words = [
        "--cloud",
        cloud,
        "--scenario",
        "all",
        "--exit",
        "--page",
        "off",
    ];
    let mut demo = Demo::start(&words);
    let (names, summary) = steps(&mut demo);
    assert_eq!(names, ALL);
    assert_eq!(summary["failed"], 0, "{summary}");
    assert_eq!(summary["lost"], 0, "{summary}");
    assert!(summary["requests"].as_u64() > Some(100), "{summary}");
    eprintln!("{summary}");
    assert_eq!(demo.ended().await, Some(0));
    assert!(!demo.folder().exists(), "the folder is gone");
}

#[tokio::test]
async fn every_step_passes_and_no_request_is_lost_while_nodes_roll_and_leaders_die() {
    every_step_passes_on("local").await;
}

#[tokio::test]
async fn every_step_passes_on_the_emulated_hetzner_cloud_too() {
    every_step_passes_on("hetzner").await;
}

#[tokio::test]
async fn the_same_is_shown_with_a_real_control_plane() {
    let folder = control_plane_assets().await;
    let words = [
        "--control-plane",
        "real",
        "--scenario",
        "destroy,fail-over",
        "--exit",
    ];
    let mut demo = Demo::start_with(&words, |command| {
        command.env("KUBEBUILDER_ASSETS", &folder);
    });
    let (names, summary) = steps(&mut demo);
    assert_eq!(names, ["join", "balance", "destroy", "fail-over"]);
    assert_eq!(summary["lost"], 0, "{summary}");
    assert_eq!(demo.ended().await, Some(0));
}

#[test]
fn mistakes_are_reported_with_what_would_be_right() {
    for (words, expected) in [
        (
            vec!["--scenario", "flood"],
            "expected all, none, or some of join, balance",
        ),
        (vec!["--nodes", "1"], "1 is not in 2..=50"),
        (vec!["--cloud", "mars"], "[possible values: local, hetzner]"),
        (
            vec!["--page", "0.0.0.0:80"],
            "0.0.0.0 is not an address of loopback",
        ),
        (
            vec!["--control-plane", "real"],
            "set KUBEBUILDER_ASSETS to a folder with etcd",
        ),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cloudkeel"))
            .arg("demo")
            .args(&words)
            .env("KUBEBUILDER_ASSETS", Path::new("/nowhere"))
            .output()
            .expect("the demo runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
}
