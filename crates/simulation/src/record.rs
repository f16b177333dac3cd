//! The table of results in the documentation.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use cloudkeel_api::{Clock as _, SystemClock};

use crate::campaign::Found;

/// Where the table is, seen from the root of the repository.
pub(crate) const FILE: &str = "docs/simulation.md";

/// The rule between the head and the rows of the table.
const TABLE: &str = "| date | commit | seeds | from | failed | by invariant | seeds per minute |\n|---|---|---|---|---|---|---|\n";

/// A table that a result will be added to.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    file: &'a Path,
    /// What is played: the checkout may have another commit by the end.
    commit: String,
}

impl<'a> Record<'a> {
    /// Refuses a file without the table, before hours are spent.
    pub(crate) fn open(file: &'a Path) -> Result<Self> {
        if !read(file)?.contains(TABLE) {
            bail!(
                "{}: expected a table with the head\n{TABLE}",
                file.display()
            );
        }
        let commit = commit()?;
        Ok(Self { file, commit })
    }

    /// Adds a row for a result, above the older ones.
    pub(crate) fn add(&self, found: &Found) -> Result<()> {
        let row = row(found, &self.commit);
        let with_row = read(self.file)?.replacen(TABLE, &format!("{TABLE}{row}"), 1);
        std::fs::write(self.file, with_row).with_context(|| self.file.display().to_string())
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| file.display().to_string())
}

fn row(found: &Found, commit: &str) -> String {
    let date = SystemClock.now().strftime("%Y-%m-%d");
    let by_invariant: Vec<_> = found
        .failures_by_invariant()
        .into_iter()
        .map(|(invariant, seeds)| format!("{invariant}: {seeds}"))
        .collect();
    format!(
        "| {date} | {commit} | {} | {} | {} | {} | {:.0} |\n",
        found.played,
        found.from,
        found.failed.len(),
        by_invariant.join(", "),
        found.seeds_per_minute(),
    )
}

/// The commit that was played, with a sign if the checkout differs from it.
fn commit() -> Result<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=9"])
        .output()
        .context("git describe")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_added_above_the_older_ones() {
        let file = std::env::temp_dir().join(format!("simulation-{}.md", std::process::id()));
        std::fs::write(&file, format!("# Results\n\n{TABLE}| old |\n")).unwrap();
        let record = Record::open(&file).unwrap();
        let found = Found {
            played: 10,
            from: 7_000_000,
            ..Found::default()
        };
        record.add(&found).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[4].contains("| 10 | 7000000 | 0 |"), "{text}");
        assert_eq!(lines[5], "| old |");
    }

    #[test]
    fn a_file_without_the_table_is_refused() {
        let refused = Record::open(Path::new("Cargo.toml")).unwrap_err();
        assert!(
            refused.to_string().contains("expected a table"),
            "{refused}"
        );
    }
}
