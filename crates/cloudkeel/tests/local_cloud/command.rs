//! The command, as a user runs it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::home::{Home, Process};

/// A cloud in the foreground, and what it said when it started.
fn start(home: &Home, more: &[&str]) -> (Process, Value) {
    let words = [
        &["local-cloud", "--output", "json", "--routes", "table"],
        more,
    ]
    .concat();
    let mut child = home
        .cloudkeel(&words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the cloud starts");
    let out = child.stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("a line");
    let greeting = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    (Process(child), greeting)
}

#[tokio::test]
async fn a_cloud_is_started_found_and_stopped_and_comes_back_where_it_was() {
    let home = Home::new();
    let machines = home.path("machines.yaml");
    std::fs::write(&machines, "machines: [{name: a, addresses: [10.0.0.1]}]").expect("written");
    let machines = machines.to_str().expect("a path");
    let (mut first, greeting) = start(&home, &["--machines", machines]);
    assert_eq!(greeting["machines"], 1);
    let found = home.running().await;
    assert_eq!(found["contact"]["url"], greeting["url"]);
    assert_eq!(found["contact"]["pid"], first.0.id());
    let stopped = home.run(&["local-cloud", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(first.ended().await, Some(0));
    assert!(home.status().iter().all(|cloud| cloud["is"] == "stopped"));

    let (mut second, again) = start(&home, &[]);
    assert_eq!(again["url"], greeting["url"]);
    assert_eq!(again["machines"], 1, "it remembers");
    second.signal("TERM");
    assert_eq!(second.ended().await, Some(0), "SIGTERM is a good end");
    let nothing = home.run(&["local-cloud", "stop"]);
    assert!(nothing.status.success(), "nothing to stop is no failure");
}

#[tokio::test]
async fn mistakes_end_with_failure_and_say_what_would_be_right() {
    let home = Home::new();
    let broken = home.path("broken.json");
    std::fs::write(&broken, "{").expect("written");
    let broken = broken.to_str().expect("a path");
    let (_running, _) = start(&home, &[]);
    for (case, words, expected) in [
        ("broken state", &["--state", broken][..], "move it away"),
        ("in use", &[], "cloudkeel local-cloud stop"),
        (
            "no such file",
            &["--machines", "/no/such"],
            "--machines: \"/no/such\"",
        ),
        (
            "bad network",
            &["--addresses", "10.0.0.1/24"],
            "such as 10.0.0.0/24",
        ),
        ("unknown flag", &["--listne", "x"], "--listen"),
    ] {
        let state = home.path("other.json");
        let state = state.to_str().expect("a path");
        let mut all = vec!["local-cloud"];
        if !words.contains(&"--state") && case != "in use" {
            all.extend(["--state", state]);
        }
        all.extend(words);
        let output = home.run(&all);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{case}: {stderr}");
        assert!(stderr.contains(expected), "{case}: {stderr}");
    }
}
