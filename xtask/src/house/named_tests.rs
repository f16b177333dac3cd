//! Every test is there that the pages of wants and of security name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{markdown, rust_files};
use crate::workspace::Workspace;

/// A page whose claims are only as good as the tests behind them.
struct Page {
    path: &'static str,
    /// What makes a row of a table a claim.
    claims: &'static [&'static str],
}

const PAGES: [Page; 2] = [
    Page {
        path: "docs/wants.md",
        claims: &["| met |", "| partly |"],
    },
    Page {
        path: "docs/security.md",
        claims: &["| refused", "| bounded", "| possible"],
    },
];

/// A name with fewer underscores may be something else than a test.
const LEAST_UNDERSCORES: usize = 3;

/// Every test that is named and does not exist, and every claim without a test.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>> {
    let read = |path: &str| fs::read_to_string(workspace.root().join(path)).ok();
    let mut all = BTreeSet::new();
    for path in rust_files(workspace)? {
        let source = read(&path).unwrap_or_default();
        all.extend(functions(&source).map(str::to_owned));
    }
    let mut found = Vec::new();
    for page in &PAGES {
        let path = page.path;
        let text = read(path).with_context(|| format!("cannot read {path}"))?;
        found.extend(missing(page, &text, read, |name| all.contains(name)));
    }
    Ok(found)
}

fn missing(
    Page { path: page, claims }: &Page,
    text: &str,
    read: impl Fn(&str) -> Option<String>,
    is_function: impl Fn(&str) -> bool,
) -> Vec<String> {
    let code = markdown::code_in(text);
    let mut found = Vec::new();
    for (index, (text, code)) in text.lines().zip(code.lines()).enumerate() {
        let mut finding = |what: String| found.push(format!("{page}:{}: {what}", index + 1));
        let named: Vec<_> = named(code).collect();
        if claims.iter().any(|state| text.contains(state)) && named.is_empty() {
            finding("this claim names no test".to_owned());
        }
        for name in code.split_whitespace().filter(|word| is_bare_name(word)) {
            if !is_function(name) {
                finding(format!("there is no test {name}"));
            }
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

/// Whether a word of code is the name of a test, without its file.
fn is_bare_name(word: &str) -> bool {
    let is_snake = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_metric = word.starts_with("cloudkeel_");
    !is_metric && word.bytes().all(is_snake) && word.matches('_').count() >= LEAST_UNDERSCORES
}

/// The names of all functions of a source.
fn functions(source: &str) -> impl Iterator<Item = &str> {
    let after_fn = source.lines().filter_map(|line| line.split_once("fn "));
    after_fn.filter_map(|(_, rest)| rest.split(['(', '<']).next())
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
| 7 | want | met | `a/b.rs::listed` |
By `it_is_done_in_time` and `it_is_never_done`.";

    #[test]
    fn tests_that_are_not_there_and_claims_without_one_are_found() {
        let source = "on_both_apis![\n    listed,\n];\nasync fn listed() {}\nfn helper() {}\n\n\n\n\
                      #[tokio::test(start_paused = true)]\nasync fn it_works() {}\n";
        let read = |path: &str| (path == "a/b.rs").then(|| source.to_owned());
        let expected = [
            "docs/wants.md:2: a/b.rs has no test it_is_gone",
            "docs/wants.md:3: this claim names no test",
            "docs/wants.md:5: there is no a/c.rs",
            "docs/wants.md:6: a/b.rs has no test helper",
            "docs/wants.md:8: there is no test it_is_never_done",
        ];
        let all: Vec<_> = functions("async fn it_is_done_in_time() {\n fn x<T>() {").collect();
        assert_eq!(all, ["it_is_done_in_time", "x"]);
        let is_function = |name: &str| all.contains(&name);
        assert_eq!(missing(&PAGES[0], PAGE_TEXT, read, is_function), expected);
    }
}
