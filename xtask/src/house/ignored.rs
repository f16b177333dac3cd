//! Tests that do not run by themselves: each names the tier that runs it.

use std::fs;

use anyhow::{Context as _, Result};

use super::code::code_only;
use super::rust_files;
use crate::test_log::{NO_TEST, TIER_FLAG};
use crate::workspace::Workspace;

/// A test with an `#[ignore = "…"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredTest {
    pub(crate) path: String,
    pub(crate) line: usize,
    /// The name of its function.
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl IgnoredTest {
    /// The tier that its reason names.
    pub(crate) fn tier(&self) -> Option<&str> {
        let (_, rest) = self.reason.split_once(TIER_FLAG)?;
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-');
        Some(rest.split_at(end.unwrap_or(rest.len())).0)
    }

    /// What is wrong with its reason, given the names of all tiers.
    pub(super) fn complaint(&self, tiers: &[&str]) -> Option<String> {
        if self.reason.starts_with(NO_TEST) {
            return None;
        }
        match self.tier() {
            Some(tier) if tiers.contains(&tier) => None,
            Some(tier) => Some(format!(
                "there is no tier `{tier}` that could run `{}`",
                self.name
            )),
            None => Some(format!(
                "no tier runs `{}`: write #[ignore = \"needs …: {TIER_FLAG}NAME\"], or delete it",
                self.name
            )),
        }
    }
}

/// The ignored tests of the workspace that a tier runs.
pub(crate) fn tests_of(workspace: &Workspace, tier: &str) -> Result<Vec<IgnoredTest>> {
    let mut all = Vec::new();
    for path in rust_files(workspace)? {
        let file = workspace.root().join(&path);
        let source = fs::read_to_string(file).with_context(|| format!("cannot read {path}"))?;
        all.extend(ignored_tests(&path, &source));
    }
    all.retain(|test| test.tier() == Some(tier));
    Ok(all)
}

/// The ignored tests of a file. Those without a reason are another rule's.
pub(super) fn ignored_tests(path: &str, source: &str) -> Vec<IgnoredTest> {
    let code = code_only(source);
    let lines = || code.lines().zip(source.lines()).enumerate();
    let ignored = lines().filter(|(_, (code, _))| code.contains("#[ignore = "));
    ignored
        .map(|(index, (_, text))| IgnoredTest {
            path: path.to_owned(),
            line: index + 1,
            name: code
                .lines()
                .skip(index)
                .find_map(function_name)
                .unwrap_or_default(),
            reason: text.split('"').nth(1).unwrap_or_default().to_owned(),
        })
        .collect()
}

/// The name in `async fn name() {`.
fn function_name(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("fn ")?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(rest.split_at(end).0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(reason: &str) -> IgnoredTest {
        let source =
            format!("#[tokio::test]\n#[ignore = \"{reason}\"]\nasync fn it_clicks() {{}}\n");
        let mut found = ignored_tests("crates/a/tests/a.rs", &source);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn an_ignored_test_is_found_with_its_name_and_tier() {
        let test = one("needs Chromium: cargo xtask test --tier page");
        assert_eq!(
            (&*test.name, test.line, test.tier()),
            ("it_clicks", 2, Some("page"))
        );
        assert!(ignored_tests("a.rs", "// #[ignore = \"a\"]\nlet a = \"#[ignore = \";").is_empty());
    }

    #[test]
    fn a_test_that_no_tier_runs_is_a_finding() {
        for (case, reason, complains) in [
            ("a tier", "slow: cargo xtask test --tier page", false),
            (
                "a tier in the middle",
                "run `cargo xtask test --tier page`",
                false,
            ),
            ("no such tier", "slow: cargo xtask test --tier paeg", true),
            ("no tier", "takes minutes", true),
            (
                "a process of a test",
                "not a test: the process that tests start",
                false,
            ),
        ] {
            let complaint = one(reason).complaint(&["page"]);
            assert_eq!(complaint.is_some(), complains, "{case}: {complaint:?}");
        }
    }
}
