//! Which lines the tests reach, by crate. Not a tier: it builds everything once more, and a number is no proof
//! of quality.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::count::Unit;
use crate::metadata::Metadata;
use crate::outcome::Outcome;
use crate::screen::{Colour, Palette};
use crate::tool::CARGO_LLVM_COV;
use crate::workspace::Workspace;

/// The lines of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    count: u64,
    covered: u64,
}

/// What the tests reached, and what came of them.
pub(crate) struct Coverage {
    crates: BTreeMap<String, Lines>,
    pub(crate) tests: Outcome,
}

/// Runs the unit and integration tests, instrumented, with `rest` handed on to `cargo test`.
pub(crate) fn measure(workspace: &Workspace, rest: &[String]) -> Result<Coverage> {
    add_llvm_tools(workspace)?;
    let program = CARGO_LLVM_COV.install(workspace)?;
    let metadata = Metadata::read(workspace)?;
    let file = metadata.target_directory.join("coverage.json");
    let mut run = workspace.command(program);
    run.args(["llvm-cov", "--workspace", "--all-features", "--lib"]);
    run.args(["--bins", "--tests", "--ignore-run-fail"]);
    run.args(["--json", "--summary-only", "--output-path"]);
    run.arg(&file).args(rest);
    workspace
        .screen()
        .line("building everything once more, for many minutes and without output");
    let tests = workspace.tests(Unit::Test, run)?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("there is no result in {}", file.display()))?;
    Ok(Coverage {
        crates: by_crate(&text, &metadata)?,
        tests,
    })
}

/// The part of the toolchain that reads what instrumented programs leave behind.
fn add_llvm_tools(workspace: &Workspace) -> Result<()> {
    let mut add = workspace.command("rustup");
    add.args(["component", "add", "llvm-tools"]);
    if let Some(problem) = workspace.check(add)?.problem {
        bail!("the component llvm-tools of the toolchain is needed: {problem}");
    }
    Ok(())
}

/// What is read of LLVM's summary.
#[derive(Deserialize)]
struct Export {
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    lines: Numbers,
}

#[derive(Deserialize)]
struct Numbers {
    count: u64,
    covered: u64,
}

/// Sums up the files of each crate, without those that hold nothing but tests.
fn by_crate(export: &str, metadata: &Metadata) -> Result<BTreeMap<String, Lines>> {
    let export: Export =
        serde_json::from_str(export).context("cannot read what LLVM says of the coverage")?;
    let places: Vec<&str> = metadata
        .members()
        .map(|member| metadata.place(member))
        .collect();
    let mut crates = BTreeMap::<String, Lines>::new();
    for file in export.data.iter().flat_map(|data| &data.files) {
        let Ok(path) = Path::new(&file.filename).strip_prefix(&metadata.workspace_root) else {
            continue;
        };
        let place = places.iter().find(|place| path.starts_with(place));
        let Some(place) = place.filter(|_| !is_a_test(path)) else {
            continue;
        };
        let lines = crates.entry((*place).to_owned()).or_default();
        lines.count += file.summary.lines.count;
        lines.covered += file.summary.lines.covered;
    }
    Ok(crates)
}

fn is_a_test(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
}

impl Lines {
    /// In tenths of a percent, rounded down: what is not whole is not shown as whole.
    const fn permille(self) -> u64 {
        match self.covered.saturating_mul(1000).checked_div(self.count) {
            Some(permille) => permille,
            None => 1000,
        }
    }

    fn percent(self) -> String {
        format!("{}.{}", self.permille() / 10, self.permille() % 10)
    }
}

impl Coverage {
    fn total(&self) -> Lines {
        let add = |sum: Lines, lines: &Lines| Lines {
            count: sum.count + lines.count,
            covered: sum.covered + lines.covered,
        };
        self.crates.values().fold(Lines::default(), add)
    }

    pub(crate) fn table(&self, palette: Palette) -> String {
        let total = ("all of them".to_owned(), self.total());
        let crates = self
            .crates
            .iter()
            .map(|(place, lines)| (place.clone(), *lines));
        let rows: Vec<(String, Lines)> = crates.chain([total]).collect();
        let widest = rows.iter().map(|(place, _)| place.len()).max();
        let width = widest.unwrap_or_default();
        let head = format!("{:width$}    lines  reached      %", "crate");
        let mut table = vec![palette.paint(Colour::Bold, &head)];
        table.extend(rows.iter().map(|(place, lines)| {
            let Lines { count, covered } = lines;
            format!(
                "{place:width$}  {count:>7}  {covered:>7}  {:>5}",
                lines.percent()
            )
        }));
        table.join("\n") + "\n"
    }

    pub(crate) fn json(&self) -> Value {
        let crates: Vec<Value> = self
            .crates
            .iter()
            .map(|(place, lines)| {
                json!({"crate": place, "lines": lines.count, "reached": lines.covered})
            })
            .collect();
        let Lines { count, covered } = self.total();
        json!({"crates": crates, "lines": count, "reached": covered})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Resolve, package};

    fn metadata() -> Metadata {
        let packages = vec![
            package("cloudkeel-api", "crates/api"),
            package("cloudkeel-local", "providers/local"),
        ];
        Metadata {
            workspace_members: packages.iter().map(|package| package.id.clone()).collect(),
            packages,
            workspace_root: "/repo".into(),
            target_directory: "/repo/target".into(),
            resolve: Resolve { nodes: Vec::new() },
        }
    }

    fn export(files: &[(&str, u64, u64)]) -> String {
        let file = |(name, count, covered): &(&str, u64, u64)| json!({"filename": name, "summary": {"lines": {"count": count, "covered": covered, "percent": 1.5}}});
        let files: Vec<Value> = files.iter().map(file).collect();
        json!({"type": "llvm.coverage.json.export", "data": [{"files": files, "totals": {}}]})
            .to_string()
    }

    fn coverage(files: &[(&str, u64, u64)]) -> Coverage {
        Coverage {
            crates: by_crate(&export(files), &metadata()).unwrap(),
            tests: Outcome::passed(),
        }
    }

    #[test]
    fn files_are_summed_by_crate_without_tests_and_dependencies() {
        let coverage = coverage(&[
            ("/repo/crates/api/src/lib.rs", 10, 7),
            ("/repo/crates/api/src/deep/more.rs", 10, 8),
            ("/repo/crates/api/src/deep/tests.rs", 100, 100),
            ("/repo/crates/api/tests/all.rs", 100, 100),
            ("/repo/providers/local/src/lib.rs", 3, 2),
            ("/registry/serde/src/lib.rs", 1000, 1),
        ]);
        let lines = |count, covered| Lines { count, covered };
        let expected = [
            ("crates/api", lines(20, 15)),
            ("providers/local", lines(3, 2)),
        ];
        assert_eq!(
            coverage.crates,
            expected
                .map(|(place, lines)| (place.to_owned(), lines))
                .into()
        );
        assert_eq!(coverage.total(), lines(23, 17));
        assert_eq!(coverage.json()["crates"][0]["reached"], 15);
        assert_eq!(
            coverage.table(Palette::Plain),
            "crate              lines  reached      %\n\
             crates/api            20       15   75.0\n\
             providers/local        3        2   66.6\n\
             all of them           23       17   73.9\n"
        );
    }

    #[test]
    fn nothing_short_of_everything_is_everything() {
        let percent = |count, covered| Lines { count, covered }.percent();
        assert_eq!(percent(10_000, 9_999), "99.9");
        assert_eq!(percent(3, 3), "100.0");
        assert_eq!(percent(0, 0), "100.0");
    }

    #[test]
    fn what_is_no_export_is_an_error() {
        assert!(by_crate("{}", &metadata()).is_err());
    }
}
