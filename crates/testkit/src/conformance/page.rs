//! The page that shows which checks each provider passes, and which mutants each check catches. Every test compares its own
//! part with what it found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::report::Report;
use super::run::questions;

/// Set to rewrite the page in place of comparing it.
const UPDATE: &str = "UPDATE_CONFORMANCE";

/// The column that shows which faulty providers fail a check.
const MUTANTS: &str = "mutants that fail it";

/// Compares what the page says of the report's provider: its column of the table of checks, and the section between
/// `<!-- begin PROVIDER -->` and `<!-- end PROVIDER -->`. Rewrites both if `UPDATE_CONFORMANCE` is set. An error says what
/// differs and what to do.
pub fn compare_with_page(report: &Report, page: &Path) -> Result<(), String> {
    compare(page, |kept| {
        let mut cells = BTreeMap::new();
        for result in &report.results {
            let text = match result.verdict.word() {
                "passed" => "yes",
                word => word,
            };
            cells.insert(result.name, text.to_owned());
        }
        let page = with_column(kept, &report.provider, &cells)?;
        with_section(&page, &report.provider, &report.to_markdown())
    })
}

/// That no check of a report failed, and that `docs/conformance.md` two folders above the provider's manifest says the same.
/// An error is for people.
pub fn verify(report: &Report, manifest_dir: &str) -> Result<(), String> {
    if !report.is_clean() {
        return Err(report.to_string());
    }
    let page = Path::new(manifest_dir).join("../../docs/conformance.md");
    compare_with_page(report, &page)
}

/// Compares the last column of the table of checks with the mutants that each check catches: `(mutant, checks)`.
pub fn compare_mutants_with_page(
    caught: &[(String, Vec<&'static str>)],
    page: &Path,
) -> Result<(), String> {
    let mut cells: BTreeMap<&str, String> = BTreeMap::new();
    for (mutant, checks) in caught {
        for check in checks {
            let cell = cells.entry(check).or_default();
            let comma = if cell.is_empty() { "" } else { ", " };
            let _ = write!(cell, "{comma}`{mutant}`");
        }
    }
    compare(page, |kept| with_column(kept, MUTANTS, &cells))
}

fn compare(
    page: &Path,
    rewrite: impl FnOnce(&str) -> Result<String, String>,
) -> Result<(), String> {
    let path = page.display();
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let kept = fs::read_to_string(page).map_err(failed)?;
    let found = rewrite(&kept).map_err(|why| format!("{path}: {why}"))?;
    if kept == found {
        return Ok(());
    }
    if std::env::var_os(UPDATE).is_some() {
        return fs::write(page, found).map_err(failed);
    }
    let difference = difference(&kept, &found);
    Err(format!(
        "{path} is out of date: run the test again with {UPDATE}=1\n{difference}"
    ))
}

/// The page with another text between `<!-- begin NAME -->` and `<!-- end NAME -->`.
fn with_section(page: &str, name: &str, text: &str) -> Result<String, String> {
    let (before, _, after) = section(page, name)?;
    Ok(format!("{before}\n{text}\n{after}"))
}

/// What stands before, in and after a section. Its begin and end lines stay outside.
fn section<'a>(page: &'a str, name: &str) -> Result<(&'a str, &'a str, &'a str), String> {
    let begin = format!("<!-- begin {name} -->\n");
    let end = format!("<!-- end {name} -->");
    let missing = || format!("there is no section between {begin:?} and {end:?}");
    let start = page.find(&begin).ok_or_else(missing)? + begin.len();
    let (before, rest) = page.split_at(start);
    let length = rest.find(&end).ok_or_else(missing)?;
    let (inside, after) = rest.split_at(length);
    Ok((before, inside, after))
}

/// The page with this column of the table of checks as it should be, and all others as they are.
fn with_column(page: &str, column: &str, cells: &BTreeMap<&str, String>) -> Result<String, String> {
    let (_, table, _) = section(page, "checks")?;
    let mut rows = table
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(split);
    let mut columns: Vec<_> = rows.next().unwrap_or_default();
    columns.drain(..columns.len().min(2));
    let kept: BTreeMap<_, _> = rows
        .map(|row| (row.first().copied().unwrap_or(""), row))
        .collect();
    if !columns.contains(&column) {
        // The mutants stay last.
        let end = columns.len() - usize::from(columns.last() == Some(&MUTANTS));
        columns.insert(
            if column == MUTANTS {
                columns.len()
            } else {
                end
            },
            column,
        );
    }
    let mut text = format!("| check | what it asks | {} |\n", columns.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(columns.len()));
    let old: Vec<_> = split(
        table
            .lines()
            .find(|line| line.starts_with('|'))
            .unwrap_or(""),
    );
    for (name, about) in questions() {
        let name_cell = format!("`{name}`");
        let old_row = kept.get(name_cell.as_str());
        let cell = |of: &&str| -> String {
            if **of == *column {
                return cells.get(name).cloned().unwrap_or_else(|| "–".to_owned());
            }
            let place = old.iter().position(|known| known == of);
            let found = place.and_then(|place| old_row?.get(place));
            found.map_or_else(|| "–".to_owned(), ToString::to_string)
        };
        let row: Vec<_> = columns.iter().map(cell).collect();
        let _ = writeln!(text, "| {name_cell} | {about} | {} |", row.join(" | "));
    }
    with_section(page, "checks", &text)
}

/// The cells of a row.
fn split(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.split('|').map(str::trim).collect()
}

/// Lines of one and not of the other.
fn difference(kept: &str, found: &str) -> String {
    let only = |these: &str, those: &str, sign: char| -> Vec<String> {
        let is_new = |line: &&str| those.lines().all(|other| other != *line);
        let lines = these.lines().filter(is_new);
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    let stale = only(kept, found, '-');
    let fresh = only(found, kept, '+');
    [stale, fresh].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "top\n<!-- begin checks -->\n<!-- end checks -->\n\
        <!-- begin toy -->\nold\n<!-- end toy -->\n<!-- begin b -->\n<!-- end b -->\n";

    #[test]
    fn only_the_section_of_the_provider_is_rewritten() {
        let found = with_section(PAGE, "toy", "new").unwrap();
        assert!(found.starts_with("top\n"), "{found}");
        assert!(found.contains("<!-- begin toy -->\n\nnew\n<!-- end toy -->\n<!-- begin b -->"));
        assert_eq!(with_section(&found, "toy", "new").unwrap(), found);
        let difference = difference(PAGE, &found);
        assert!(difference.starts_with("- old\n+ "), "{difference}");
    }

    #[test]
    fn a_page_without_the_section_is_an_error() {
        let error = section("<!-- begin toy -->\n", "toy").unwrap_err();
        assert!(error.contains("<!-- end toy -->"), "{error}");
    }

    #[test]
    fn a_column_is_added_before_the_mutants_and_rewritten_alone() {
        let (first, about) = questions().next().unwrap();
        let cells = |text: &str| BTreeMap::from([(first, text.to_owned())]);
        let page = with_column(PAGE, MUTANTS, &cells("`Sleeps`")).unwrap();
        let page = with_column(&page, "toy", &cells("yes")).unwrap();
        let page = with_column(&page, "other", &cells("gap")).unwrap();
        let page = with_column(&page, "toy", &cells("FAILED")).unwrap();
        let row = format!("| `{first}` | {about} | FAILED | gap | `Sleeps` |");
        assert!(page.contains("| check | what it asks | toy | other | mutants that fail it |"));
        assert!(page.contains(&row), "{page}");
        assert_eq!(page.matches("\n| `").count(), questions().count());
        assert_eq!(with_column(&page, "toy", &cells("FAILED")).unwrap(), page);
    }
}
