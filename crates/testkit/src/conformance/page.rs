//! The page that shows how providers did. Each test compares its own section with what it found.

use std::fs;
use std::path::Path;

use super::report::Report;

/// Set to rewrite sections in place of comparing them.
const UPDATE: &str = "UPDATE_CONFORMANCE";

/// Compares the section between `<!-- begin PROVIDER -->` and `<!-- end PROVIDER -->` with the report, or
/// rewrites it if `UPDATE_CONFORMANCE` is set. An error says what differs and what to do.
pub fn compare_with_page(report: &Report, page: &Path) -> Result<(), String> {
    let path = page.display();
    let told = |error: std::io::Error| format!("{path}: {error}");
    let kept = fs::read_to_string(page).map_err(told)?;
    let found = rewritten(&kept, report).map_err(|why| format!("{path}: {why}"))?;
    if kept == found {
        return Ok(());
    }
    if std::env::var_os(UPDATE).is_some() {
        return fs::write(page, found).map_err(told);
    }
    let (name, difference) = (&report.provider, difference(&kept, &found));
    Err(format!(
        "{path} is out of date for {name}: run the test again with {UPDATE}=1\n{difference}"
    ))
}

/// The page with the section of the report's provider as it should be.
fn rewritten(page: &str, report: &Report) -> Result<String, String> {
    let begin = format!("<!-- begin {} -->\n", report.provider);
    let end = format!("<!-- end {} -->", report.provider);
    let missing = || format!("there is no section between {begin:?} and {end:?}");
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    let table = report.to_markdown();
    Ok(format!("{before}{begin}\n{table}\n{end}{after}"))
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
    use super::super::report::{CheckResult, Verdict};
    use super::*;

    fn report() -> Report {
        Report {
            provider: "toy".into(),
            results: vec![CheckResult {
                name: "a/b",
                about: "it does",
                verdict: Verdict::Passed,
            }],
        }
    }

    #[test]
    fn only_the_section_of_the_provider_is_rewritten() {
        let page =
            "top\n<!-- begin toy -->\nold\n<!-- end toy -->\n<!-- begin b -->\n<!-- end b -->\n";
        let found = rewritten(page, &report()).unwrap();
        assert!(found.starts_with("top\n<!-- begin toy -->\n\n1 checks: 1 passed"));
        assert!(found.ends_with("<!-- end toy -->\n<!-- begin b -->\n<!-- end b -->\n"));
        assert!(!found.contains("old"));
        assert_eq!(rewritten(&found, &report()).unwrap(), found);
        let difference = difference(page, &found);
        assert!(difference.starts_with("- old\n+ "), "{difference}");
    }

    #[test]
    fn a_page_without_the_section_is_an_error() {
        let error = rewritten("<!-- begin toy -->\n", &report()).unwrap_err();
        assert!(error.contains("<!-- end toy -->"), "{error}");
    }
}
