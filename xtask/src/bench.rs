//! Benchmarks: run on the release build, kept raw beside the page that shows them, and printed into it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::metadata::Metadata;
use crate::outcome::Outcome;
use crate::workspace::{Workspace, output_of};

const PAGE: &str = "docs/benchmarks.md";
const RESULTS: &str = "docs/benchmarks";

/// A table of the page: which results it shows, and how.
struct Table {
    /// As it stands in the comment before the table: the name of the benchmark, and the part of its results.
    name: &'static str,
    /// Titles, and the fields of a result.
    columns: &'static [(&'static str, &'static str)],
}

const TABLES: &[Table] = &[
    Table {
        name: "nodes",
        columns: &[
            ("nodes", "nodes"),
            ("who", "contestant"),
            ("s to the last taint", "seconds"),
            ("s to the last Event", "secondsToLastEvent"),
            ("cloud calls", "cloudCalls"),
            ("writes per node", "nodeWritesPerNode"),
            ("Events per node", "eventWritesPerNode"),
            ("its CPU s", "cpuSeconds"),
            ("servers' CPU s", "serverCpuSeconds"),
            ("peak MiB", "peakMiB"),
        ],
    },
    Table {
        name: "lifecycle/stopped",
        columns: &[
            ("who", "contestant"),
            ("stopped", "stopped"),
            ("of nodes", "nodes"),
            ("cloud calls a minute", "callsPerMinute"),
        ],
    },
    Table {
        name: "lifecycle/replaced",
        columns: &[
            ("who", "contestant"),
            ("removed", "removed"),
            ("median s after NotReady", "medianSeconds"),
            ("longest s after NotReady", "longestSeconds"),
            ("left", "left"),
        ],
    },
    Table {
        name: "services",
        columns: &[
            ("who", "contestant"),
            ("phase", "phase"),
            ("seconds", "seconds"),
            ("cloud calls", "cloudCalls"),
            ("of them mutating", "mutatingCalls"),
        ],
    },
    Table {
        name: "faults",
        columns: &[
            ("trouble", "trouble"),
            ("who", "contestant"),
            ("Nodes deleted", "nodesDeleted"),
            ("cloud calls", "cloudCalls"),
            ("seconds", "seconds"),
        ],
    },
];

/// Builds the release binary, if none is given, then runs a benchmark of it. Not a tier: it prints numbers and
/// cannot fail by them. Results that are saved are those that the page shows.
pub(crate) fn run(
    workspace: &Workspace,
    name: &str,
    save: bool,
    binary: Option<&Path>,
    rest: &[String],
) -> Result<Outcome> {
    let binary = if let Some(given) = binary {
        std::path::absolute(given)?
    } else {
        let build = workspace.cargo(&["build", "--release", "--package", "cloudkeel"]);
        let built = workspace.check(build)?;
        if built.problem.is_some() {
            return Ok(built);
        }
        let folder = Metadata::read(workspace)?.target_directory;
        folder.join("release/cloudkeel")
    };
    let package = format!("cloudkeel-bench-{name}");
    let mut run = workspace.cargo(&["run", "--release", "--package", &package, "--"]);
    run.arg("--binary").arg(binary);
    if !save {
        return workspace.check({
            run.args(rest);
            run
        });
    }
    run.arg("--json").args(rest);
    let results: Value = serde_json::from_slice(&output_of(run)?)
        .context("the benchmark did not print its results as JSON")?;
    let commit = output_of({
        let mut git = workspace.command("git");
        git.args(["describe", "--always", "--dirty", "--abbrev=12"]);
        git
    })?;
    let kept = json!({
        "command": format!("cargo xtask bench {name} -- {}", rest.join(" ")).trim_end_matches([' ', '-']),
        "commit": String::from_utf8_lossy(&commit).trim(),
        "cpu": cpu(),
        "results": results,
    });
    let path = results_of(workspace.root(), name);
    let text = format!("{}\n", serde_json::to_string_pretty(&kept)?);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    print_page(workspace)?;
    workspace
        .screen()
        .line(&format!("kept in {}", path.display()));
    Ok(Outcome::passed())
}

/// Puts the kept results into the page.
pub(crate) fn print_page(workspace: &Workspace) -> Result<()> {
    let path = workspace.root().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let printed = printed(&page, |name| kept(workspace.root(), name))?;
    if printed != page {
        fs::write(&path, printed).with_context(|| format!("cannot write {PAGE}"))?;
    }
    Ok(())
}

/// What is wrong with the page: tables that are not what the kept results say.
pub(crate) fn check_page(workspace: &Workspace) -> Result<Option<String>> {
    let page = fs::read_to_string(workspace.root().join(PAGE))?;
    let printed = printed(&page, |name| kept(workspace.root(), name))?;
    Ok((printed != page).then(|| {
        format!("{PAGE}: its tables are not those of {RESULTS}/*.json: `cargo xtask docs` prints them anew")
    }))
}

fn results_of(root: &Path, name: &str) -> PathBuf {
    root.join(RESULTS).join(format!("{name}.json"))
}

fn kept(root: &Path, name: &str) -> Result<Value> {
    let path = results_of(root, name);
    let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
}

/// The processor, as Linux names it, and how many of it there are.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or("unknown", |(_, name)| name.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} x {name}")
}

/// The page with every table after a comment `<!-- bench NAME -->` printed anew, up to `<!-- end -->`.
fn printed(page: &str, kept: impl Fn(&str) -> Result<Value>) -> Result<String> {
    let mut text = String::new();
    let mut is_old_table = false;
    for line in page.lines() {
        let name = line
            .strip_prefix("<!-- bench ")
            .and_then(|rest| rest.strip_suffix(" -->"));
        if line == "<!-- end -->" {
            is_old_table = false;
        }
        if !is_old_table {
            text.push_str(line);
            text.push('\n');
        }
        if let Some(name) = name {
            is_old_table = true;
            text.push_str(&table(name, &kept)?);
        }
    }
    Ok(text)
}

fn table(name: &str, kept: impl Fn(&str) -> Result<Value>) -> Result<String> {
    let table = TABLES.iter().find(|table| table.name == name);
    let table = table.with_context(|| format!("{PAGE}: there is no table {name:?}"))?;
    let (bench, part) = name.split_once('/').unwrap_or((name, ""));
    let kept = kept(bench)?;
    let results = kept.get("results");
    let results = results.and_then(|all| {
        if part.is_empty() {
            Some(all)
        } else {
            all.get(part)
        }
    });
    let rows = results.and_then(Value::as_array);
    let rows = rows.with_context(|| format!("{bench}.json has no results for {name:?}"))?;
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = table.columns.iter().map(|(title, _)| (*title).to_owned());
    let mut text = row(titles.collect());
    let _ = writeln!(text, "{}|", "|---".repeat(table.columns.len()));
    for result in rows {
        let cells = table.columns.iter();
        let cells = cells.map(|(_, field)| result.get(field).map_or_else(String::new, cell));
        text.push_str(&row(cells.collect()));
    }
    let field = |name: &str| kept.get(name).and_then(Value::as_str).unwrap_or("unknown");
    let (command, commit, cpu) = (field("command"), field("commit"), field("cpu"));
    let _ = writeln!(
        text,
        "\n`{command}`, at {commit} on {cpu}. [Raw](benchmarks/{bench}.json)."
    );
    Ok(text)
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => with_commas(whole),
            (None, Some(float)) => format!("{float:.2}"),
            (None, None) => number.to_string(),
        },
        other => other.to_string(),
    }
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> Value {
        json!({
            "command": "cargo xtask bench faults", "commit": "abc", "cpu": "2 x Fast",
            "results": [{
                "trouble": "401", "contestant": "go", "nodesDeleted": 0, "cloudCalls": 12345, "seconds": 30.128,
            }],
        })
    }

    #[test]
    fn a_table_is_printed_from_what_was_kept_and_printing_it_again_changes_nothing() {
        let page = "# Costs\n<!-- bench faults -->\nold\n<!-- end -->\nrest\n";
        let once = printed(page, |_| Ok(faults())).unwrap();
        assert!(
            once.contains("| 401 | go | 0 | 12,345 | 30.13 |\n"),
            "{once}"
        );
        assert!(
            once.contains("at abc on 2 x Fast") && !once.contains("old"),
            "{once}"
        );
        assert!(once.ends_with("<!-- end -->\nrest\n"), "{once}");
        assert_eq!(printed(&once, |_| Ok(faults())).unwrap(), once);
    }

    #[test]
    fn a_table_without_a_row_and_results_without_a_table_are_errors() {
        let unknown = printed("<!-- bench luck -->\n", |_| Ok(faults()));
        assert!(unknown.unwrap_err().to_string().contains("luck"));
        assert!(printed("<!-- bench faults -->\n", |_| Ok(json!({}))).is_err());
    }
}
