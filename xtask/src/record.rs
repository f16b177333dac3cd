//! The numbers of the last whole run, kept in the cache and written into docs/testing.md by a command.

use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::count::thousands;
use crate::outcome::Outcome;
use crate::report::in_words;
use crate::workspace::{Workspace, output_of};

const PAGE: &str = "docs/testing.md";

/// So many test programs have a row; the others are short.
const PROGRAMS: usize = 12;

/// What a run began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Start {
    /// Everything was built before, in another clone or this one.
    Warm,
    /// Nothing was there.
    Cold,
}

impl Start {
    fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// A run, as it is kept.
#[derive(Debug, Deserialize)]
struct Run {
    commit: String,
    cores: usize,
    report: Report,
}

#[derive(Debug, Deserialize)]
struct Report {
    passed: u64,
    skipped: u64,
    tiers: Vec<Tier>,
    programs: Vec<Program>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tier {
    name: String,
    result: String,
    counts: String,
    seconds: f64,
    build_seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Program {
    name: String,
    tests: u64,
    seconds: f64,
}

fn path(workspace: &Workspace) -> PathBuf {
    workspace.cache().join("last-run.json")
}

/// Keeps a whole run that passed.
pub(crate) fn keep(workspace: &Workspace, report: &Value) -> Result<()> {
    let mut git = workspace.command("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12"]);
    let commit = output_of(git)?;
    let run = json!({
        "commit": String::from_utf8_lossy(&commit).trim(),
        "cores": thread::available_parallelism().map_or(1, NonZero::get),
        "report": report,
    });
    let path = path(workspace);
    fs::create_dir_all(workspace.cache())
        .and_then(|()| fs::write(&path, format!("{run:#}\n")))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the kept run into the page, in place of the one before.
pub(crate) fn write(workspace: &Workspace, start: Start) -> Result<Outcome> {
    let kept = path(workspace);
    let text = fs::read_to_string(&kept).with_context(|| {
        format!(
            "no whole run has passed yet: there is no {}",
            kept.display()
        )
    })?;
    let run: Run =
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", kept.display()))?;
    let page = workspace.root().join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("cannot read {PAGE}"))?;
    let text = replace(&text, start, &run.tables(start))?;
    fs::write(&page, text).with_context(|| format!("cannot write {PAGE}"))?;
    workspace.screen().line(&format!(
        "{PAGE} has the numbers of the run of {}",
        run.commit
    ));
    Ok(Outcome::passed())
}

/// The page with another text between the two comments.
fn replace(page: &str, start: Start, text: &str) -> Result<String> {
    let (begin, end) = (
        format!("<!-- run: {} -->\n", start.name()),
        "<!-- end of run -->",
    );
    let parts = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        bail!(
            "{PAGE} has no part between `{}` and `{end}`",
            begin.trim_end()
        );
    };
    Ok(format!("{before}{begin}{text}{end}{after}"))
}

impl Run {
    fn tables(&self, start: Start) -> String {
        let report = &self.report;
        let time = |seconds: f64| in_words(Duration::from_secs_f64(seconds));
        let total: f64 = report.tiers.iter().map(|tier| tier.seconds).sum();
        let mut text = format!(
            "{} passed and {} skipped in {} on {} cores, {}, at `{}`.\n\n\
             | tier | passed | time | of it building |\n|---|---|---|---|\n",
            thousands(report.passed),
            thousands(report.skipped),
            time(total),
            self.cores,
            start.name(),
            self.commit,
        );
        for tier in report.tiers.iter().filter(|tier| tier.result == "passed") {
            let (spent, build) = (time(tier.seconds), time(tier.build_seconds));
            // Writing into a String cannot fail.
            let _ = writeln!(
                text,
                "| `{}` | {} | {spent} | {build} |",
                tier.name, tier.counts
            );
        }
        text.push_str("\n| test program | tests | time |\n|---|---|---|\n");
        for program in report.programs.iter().take(PROGRAMS) {
            let (name, tests, spent) = (&program.name, program.tests, time(program.seconds));
            let _ = writeln!(text, "| `{name}` | {tests} | {spent} |");
        }
        let rest = report.programs.iter().skip(PROGRAMS);
        let (count, tests, seconds) = rest.fold((0, 0, 0.0), |(count, tests, seconds), program| {
            (count + 1, tests + program.tests, seconds + program.seconds)
        });
        let _ = writeln!(text, "| {count} others | {tests} | {} |", time(seconds));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        serde_json::from_value(json!({
            "commit": "abc", "cores": 2, "report": {"command": "test", "passed": 1130, "failed": 0, "skipped": 0,
            "tiers": [
                {"name": "fmt", "result": "passed", "counts": "1 check", "seconds": 0.5, "buildSeconds": 0.0},
                {"name": "unit", "result": "passed", "counts": "1,129 tests", "seconds": 90.0, "buildSeconds": 61.0},
            ],
            "programs": (0..14).map(|number| json!({"name": format!("crates/a {number}"), "tests": 3, "seconds": 1.5})).collect::<Vec<_>>(),
        }}))
        .unwrap()
    }

    #[test]
    fn the_page_gets_what_the_run_printed_and_keeps_the_rest() {
        let page = "# Tests\n<!-- run: warm -->\nold\n<!-- end of run -->\nmore\n<!-- run: cold -->\n<!-- end of run -->\n";
        let text = replace(page, Start::Cold, "new\n").unwrap();
        assert_eq!(
            text,
            "# Tests\n<!-- run: warm -->\nold\n<!-- end of run -->\nmore\n<!-- run: cold -->\nnew\n<!-- end of run -->\n"
        );
        assert_eq!(
            replace(&text, Start::Warm, "new\n").unwrap(),
            text.replace("\nold\n", "\nnew\n")
        );
        assert!(replace("# Tests\n", Start::Warm, "new\n").is_err());
    }

    #[test]
    fn a_run_is_shown_by_tier_and_by_its_longest_programs() {
        let tables = run().tables(Start::Warm);
        for expected in [
            "1,130 passed and 0 skipped in 1m30s on 2 cores, warm, at `abc`.\n",
            "| `unit` | 1,129 tests | 1m30s | 1m01s |\n",
            "| `crates/a 11` | 3 | 1.5s |\n",
            "| 2 others | 6 | 3.0s |\n",
        ] {
            assert!(tables.contains(expected), "{expected} in {tables}");
        }
        assert!(!tables.contains("crates/a 12"), "{tables}");
    }
}
