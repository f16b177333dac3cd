//! The command line, as a user sees it.

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
fn all_mistakes_are_reported_at_once() {
    let output = cloudkeel(&["--concurrent-node-syncs=0", "--v=x", "--cluster-cidr=1"]);
    let text = stderr(&output);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("--cloud-provider cannot be empty"), "{text}");
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
    for command in ["providers", "docs", "version", "completion"] {
        let line = help
            .lines()
            .find(|line| line.trim_start().starts_with(command));
        let about = line.and_then(|line| line.trim_start().strip_prefix(command));
        assert!(
            about.is_some_and(|about| about.trim().len() > 10),
            "{command}: {help}"
        );
    }
}

#[test]
fn version_is_printed_as_text_and_json() {
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    let text = stdout(&cloudkeel(&["version"]));
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(
        first.split_whitespace().collect::<Vec<_>>(),
        ["cloudkeel", version.as_str()]
    );
    let json = stdout(&cloudkeel(&["version", "--output", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["version"], version.as_str());
    assert_eq!(json["kubernetesVersion"], "v1.37");
    let clouds = json["clouds"].as_array().expect("clouds");
    assert!(clouds.contains(&serde_json::json!("local")), "{json}");
    assert!(
        json["commit"].is_null() || json["commit"].is_string(),
        "{json}"
    );
}

/// The completions that bash offers for a command line, after it has sourced the script.
fn completed_by_bash(words: &[&str]) -> Vec<String> {
    const SCRIPT: &str = r#"
        set -u
        source <("$1" completion bash)
        shift
        COMP_WORDS=(cloudkeel "$@")
        COMP_CWORD=$#
        COMPREPLY=()
        previous=${COMP_WORDS[COMP_CWORD - 1]}
        _cloudkeel cloudkeel "${COMP_WORDS[COMP_CWORD]}" "$previous"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .args(["--norc", "-c", SCRIPT, "bash"])
        .arg(env!("CARGO_BIN_EXE_cloudkeel"))
        .args(words)
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    for (words, expected) in [
        (&["ver"][..], &["version"][..]),
        (&["prov"], &["providers"]),
        (&["--leader-elect-ren"], &["--leader-elect-renew-deadline"]),
        (&["completion", ""], &["bash", "zsh", "fish"]),
        (&["--cloud-provider", "loc"], &["local"]),
        (&["version", "--outp"], &["--output"]),
        #[cfg(feature = "demo")]
        (&["demo", "--control-p"], &["--control-plane"]),
    ] {
        let found = completed_by_bash(words);
        for one in expected {
            assert!(found.contains(&(*one).to_owned()), "{words:?}: {found:?}");
        }
    }
}

#[test]
fn scripts_for_the_other_shells_have_all_commands_and_flags() {
    for (shell, start) in [
        ("zsh", "#compdef cloudkeel"),
        ("fish", "# Print an optspec"),
    ] {
        let script = stdout(&cloudkeel(&["completion", shell]));
        assert!(script.starts_with(start), "{shell}: {script}");
        for word in ["providers", "completion", "leader-elect-lease-duration"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("load-balancer-sweep-period"), "{shell}");
    }
}

#[cfg(all(feature = "demo", feature = "emulators", feature = "local-cloud"))]
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
fn providers_are_listed_as_text_and_json() {
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
        let extension = if name.starts_with("schema-") {
            "json"
        } else {
            "md"
        };
        let file = format!("{name}.{extension}");
        let kept = std::fs::read_to_string(folder.join(&file)).unwrap_or_default();
        assert_eq!(
            kept, printed,
            "docs/reference/{file} is out of date: run `cargo xtask docs`"
        );
    }
}
