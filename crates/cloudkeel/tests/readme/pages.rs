//! Every command of the program that any page shows is one that this build understands.

use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::commands::commands;
use crate::shell::{shell, workspace};

/// Commands that take the flags of the manager, which only a real start reads.
const OF_A_CLUSTER: [&str; 3] = ["doctor", "explain", "plan"];

/// Commands that need nothing and end by themselves, so that they can run as they are.
const RUN_AS_THEY_ARE: [&str; 4] = ["completion", "docs", "providers", "version"];

/// What the program says of a word that it does not know.
const REFUSALS: [&str; 6] = [
    "is not a command",
    "is not a known flag",
    "invalid value",
    "no page",
    "unexpected argument",
    "unrecognized subcommand",
];

/// Names for what a reader puts in.
const PLACEHOLDERS: [(&str, &str); 3] = [
    ("NAMESPACE/NAME", "default/web"),
    ("providers NAME", "providers hcloud"),
    ("NAME", "node-1"),
];

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of pages") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|it| it == "md") {
            found.push(path);
        }
    }
}

/// A page of log messages, which begin like commands.
const OF_MESSAGES: &str = "logs.md";

/// The commands of all pages, without what a shell does with their output.
fn all_commands() -> Vec<(PathBuf, String)> {
    let root = workspace();
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    pages(&root.join("docs"), &mut found);
    found.retain(|page| !page.ends_with(OF_MESSAGES));
    let of_page = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("the page");
        let text = text.replace("\\\n", " ");
        let commands = commands(&text).into_iter();
        commands.map(move |command| (path.clone(), command))
    };
    let all = found.into_iter().flat_map(of_page);
    let ours = all.filter(|(_, command)| command.starts_with("cloudkeel "));
    let whole = ours.filter(|(_, command)| !command.contains('…'));
    whole
        .map(|(page, command)| match command.split_once(" > ") {
            Some((command, _)) => (page, command.to_owned()),
            None => (page, command),
        })
        .collect()
}

/// Runs a command as far as its words matter: it starts nothing and reaches no cluster.
fn understood(command: &str, home: &Path) -> Output {
    let mut line = command.to_owned();
    for (placeholder, name) in PLACEHOLDERS {
        line = line.replace(placeholder, name);
    }
    let verb = line.split(' ').nth(1).unwrap_or_default();
    if OF_A_CLUSTER.contains(&verb) {
        line.push_str(" --kubeconfig=/nonexistent/kubeconfig");
    } else if !RUN_AS_THEY_ARE.contains(&verb) {
        line.push_str(" --help");
    }
    shell(&line, home).output().expect("it runs")
}

/// What is wrong with a command.
fn refusal(command: &str, home: &Path) -> Option<String> {
    let output = understood(command, home);
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let is_refused = REFUSALS.iter().any(|it| said.contains(it));
    let verb = command.split(' ').nth(1).unwrap_or_default();
    let may_fail = OF_A_CLUSTER.contains(&verb);
    (is_refused || !(may_fail || output.status.success())).then_some(said)
}

#[test]
fn every_command_of_every_page_is_understood() {
    let home = TempDir::new().expect("a folder");
    let all = all_commands();
    let refused: Vec<_> = all
        .iter()
        .filter_map(|(page, command)| Some((page, command, refusal(command, home.path())?)))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(all.len() > 30, "only {} were found", all.len());
}

#[test]
fn a_command_with_a_mistake_is_noticed() {
    let home = TempDir::new().expect("a folder");
    for wrong in [
        "cloudkeel --no-such-flag",
        "cloudkeel docs no-such-page",
        "cloudkeel doctor --no-such-flag --cloud-provider=local",
        "cloudkeel emulate hetzner --no-such-flag",
        "cloudkeel explain pod NAME",
        "cloudkeel no-such-command",
        "cloudkeel plan --orphan",
    ] {
        let refused = refusal(wrong, home.path());
        assert!(refused.is_some(), "{wrong} was understood");
    }
}
