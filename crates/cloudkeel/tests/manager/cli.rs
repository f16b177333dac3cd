//! The command line, as a person meets it.

use std::process::{Command, Output};

fn cloudkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cloudkeel"))
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn mistakes_end_with_failure_and_say_what_would_be_right() {
    for (case, arguments, expected) in [
        (
            "no cloud",
            &[][..],
            "--cloud-provider cannot be empty: name one of ",
        ),
        (
            "unknown cloud",
            &["--cloud-provider=lokal"],
            "did you mean \"local\"?",
        ),
        (
            "unknown flag",
            &["--cloud-provdier=local"],
            "did you mean --cloud-provider?",
        ),
        (
            "unknown command",
            &["provider"],
            "did you mean \"providers\"?",
        ),
        (
            "command of the binary",
            &["emulat", "hetzner"],
            "did you mean \"emulate\"?",
        ),
        (
            "bad value",
            &["--cloud-provider=local", "--secure-port=x"],
            "--secure-port: \"x\": expected",
        ),
        (
            "no file",
            &["--cloud-config=/does/not/exist"],
            "expected a readable file",
        ),
        ("unknown page", &["docs", "flag"], "did you mean \"flags\"?"),
    ] {
        let output = cloudkeel(arguments);
        assert_eq!(output.status.code(), Some(1), "{case}");
        assert!(
            stderr(&output).contains(expected),
            "{case}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let output = cloudkeel(&["--concurrent-node-syncs=0", "--v=x", "--cluster-cidr=1"]);
    let told = stderr(&output);
    assert_eq!(told.lines().count(), 4, "{told}");
    assert!(told.contains("--cloud-provider cannot be empty"), "{told}");
}

#[test]
fn version_and_help_are_printed() {
    let version = cloudkeel(&["--version"]);
    assert!(version.status.success());
    assert_eq!(
        stdout(&version),
        format!("cloudkeel v{}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = stdout(&cloudkeel(&["-h"]));
    assert!(
        help.contains("Generic flags:") && help.contains("--leader-elect"),
        "{help}"
    );
}

#[cfg(all(feature = "demo", feature = "emulators", feature = "local"))]
#[test]
fn help_of_a_command_names_the_whole_command() {
    for words in [
        &["demo"][..],
        &["local-cloud"],
        &["emulate"],
        &["emulate", "hetzner"],
    ] {
        let help = stdout(&cloudkeel(&[words, &["--help"]].concat()));
        let usage = format!("Usage: cloudkeel {} ", words.join(" "));
        assert!(help.contains(&usage), "{help}");
    }
}

#[test]
fn providers_are_listed_for_people_and_machines() {
    let table = stdout(&cloudkeel(&["providers"]));
    assert!(
        table.lines().any(|line| line.starts_with("local ")),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
    let json = stdout(&cloudkeel(&["providers", "local", "--output", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["name"], "local");
    let keys = json[0]["keys"].as_array().expect("keys");
    assert!(keys.iter().any(|key| key["name"] == "endpoint"), "{keys:?}");
}

/// The reference pages in `docs/reference` are what the program prints.
#[test]
fn the_reference_pages_are_up_to_date() {
    let folder = crate::harness::package().join("../../docs/reference");
    let list = stdout(&cloudkeel(&["docs"]));
    let names: Vec<_> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"flags"), "{list}");
    for name in names {
        let printed = stdout(&cloudkeel(&["docs", name]));
        let kept = std::fs::read_to_string(folder.join(format!("{name}.md"))).unwrap_or_default();
        assert_eq!(
            kept, printed,
            "docs/reference/{name}.md is out of date: run `cargo xtask docs`"
        );
    }
}
