//! Every test that the page of wants names is there.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::markdown;
use crate::workspace::Workspace;

/// The page, whose claims are only as good as the tests behind them.
const PAGE: &str = "docs/wants.md";

/// Every test that is named and does not exist, and every row without a test.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>> {
    let page = workspace.root().join(PAGE);
    let page = fs::read_to_string(page).with_context(|| format!("cannot read {PAGE}"))?;
    let read = |path: &str| fs::read_to_string(workspace.root().join(path)).ok();
    Ok(missing(&page, read))
}

fn missing(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let code = markdown::code_in(page);
    let mut found = Vec::new();
    for (index, (text, code)) in page.lines().zip(code.lines()).enumerate() {
        let mut finding = |what: String| found.push(format!("{PAGE}:{}: {what}", index + 1));
        let named: Vec<_> = named(code).collect();
        let claims = ["| met |", "| partly |"];
        if claims.iter().any(|state| text.contains(state)) && named.is_empty() {
            finding("this want names no test".to_owned());
        }
        for (path, test) in named {
            match read(path) {
                None => finding(format!("there is no {path}")),
                Some(source) if !has_test(&source, test) => {
                    finding(format!("{path} has no test {test}"));
                }
                Some(_) => {}
            }
        }
    }
    found
}

/// `path::name` of each test in the code of a line.
fn named(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = code.split_whitespace();
    words.filter_map(|word| {
        word.split_once("::")
            .filter(|(path, _)| Path::new(path).extension().is_some_and(|it| it == "rs"))
    })
}

/// Whether a source has a function of this name that is a test, or one that a list of tests runs.
fn has_test(source: &str, name: &str) -> bool {
    let declared = [format!("fn {name}("), format!("fn {name}<")];
    let mut above: Vec<&str> = Vec::new();
    for line in source.lines() {
        if declared.iter().any(|it| line.contains(it.as_str())) {
            let is_marked = above.iter().rev().take(3).any(|line| line.contains("test"));
            return is_marked || source.contains(&format!("    {name},\n"));
        }
        above.push(line);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_TEXT: &str = "\
| 1 | want | met | `a/b.rs::it_works`, [a page](x.md) |
| 2 | want | partly | `a/b.rs::it_is_gone`. Something |
| 3 | want | met | nothing |
| 4 | want | not | nothing |
| 5 | want | met | `a/c.rs::it_works` |
| 6 | want | met | `a/b.rs::helper` |
| 7 | want | met | `a/b.rs::listed` |";

    #[test]
    fn tests_that_are_not_there_and_claims_without_one_are_found() {
        let source = "on_both_apis![\n    listed,\n];\nasync fn listed() {}\nfn helper() {}\n\n\n\n\
                      #[tokio::test(start_paused = true)]\nasync fn it_works() {}\n";
        let read = |path: &str| (path == "a/b.rs").then(|| source.to_owned());
        let expected = [
            "docs/wants.md:2: a/b.rs has no test it_is_gone",
            "docs/wants.md:3: this want names no test",
            "docs/wants.md:5: there is no a/c.rs",
            "docs/wants.md:6: a/b.rs has no test helper",
        ];
        assert_eq!(missing(PAGE_TEXT, read), expected);
    }
}
