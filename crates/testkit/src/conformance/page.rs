//! The page that shows how providers did. Each test compares its own section with what it found.

use std::fs;
use std::path::Path;

use super::report::Report;

/// Set to rewrite sections in place of comparing them.
const UPDATE: &str = "UPDATE_CONFORMANCE";

/// Compares the section between `<!-- begin PROVIDER -->` and `<!-- end PROVIDER -->` with the report, or
/// rewrites it if `UPDATE_CONFORMANCE` is set. An error says what differs and what to do.
pub fn compare_with_page(report: &Report, page: &Path) -> Result<(), String> {
    let (name, path) = (&report.provider, page.display());
    let text = fs::read_to_string(page).map_err(|error| format!("{path}: {error}"))?;
    let begin = format!("<!-- begin {name} -->\n");
    let end = format!("<!-- end {name} -->");
    let section = text.split_once(&begin).and_then(|(before, rest)| {
        rest.split_once(&end)
            .map(|(old, after)| (before, old, after))
    });
    let Some((before, kept, after)) = section else {
        return Err(format!(
            "{path} has no section between {begin:?} and {end:?}"
        ));
    };
    let found = format!("\n{}\n", report.to_markdown());
    if kept == found {
        return Ok(());
    }
    if std::env::var_os(UPDATE).is_some() {
        let text = format!("{before}{begin}{found}{end}{after}");
        return fs::write(page, text).map_err(|error| format!("{path}: {error}"));
    }
    let stale = kept.lines().filter(|line| !found.contains(line));
    let fresh = found.lines().filter(|line| !kept.contains(line));
    let lines: Vec<_> = stale
        .map(|line| format!("- {line}"))
        .chain(fresh.map(|line| format!("+ {line}")))
        .collect();
    Err(format!(
        "{path} is out of date for {name}: run the test again with {UPDATE}=1\n{}",
        lines.join("\n")
    ))
}
