//! Finds words that the dictionary in CONTRIBUTING.md has retired.
//!
//! The dictionary is the table with the head `| retired | instead |`. In its first column, `code` stands for an
//! identifier (with `*` for any part of one), or for the name of a file or folder if it has a dot or a slash; text
//! in double quotes stands for a phrase. Identifiers are looked for in code only, phrases everywhere. The
//! same word in an English sentence is no finding.

mod dictionary;

use std::fs;

use anyhow::{Context as _, Result};

use super::tracked_files;
use crate::outcome::Outcome;
use crate::workspace::Workspace;
use dictionary::Dictionary;

/// Where the dictionary is. It names every retired word, so it is not checked itself.
const DICTIONARY: &str = "CONTRIBUTING.md";

/// What is not checked.
const EXCEPTIONS: &[&str] = &[
    // Names of former releases do not change any more.
    "CHANGELOG.md",
    DICTIONARY,
    // Printed from code, which is checked; it also names deprecated flags.
    "docs/reference",
    // Its tests need retired words as examples.
    "xtask/src/house/words",
];

/// Prints every finding.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let found = findings(workspace)?;
    for finding in &found {
        workspace.screen().line(finding);
    }
    Ok(match found.len() {
        0 => Outcome::passed(),
        1 => Outcome::failed("1 retired word is used".to_owned()),
        several => Outcome::failed(format!("{several} retired words are used")),
    })
}

/// Every use of a retired word in a file that is checked.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>> {
    let page = workspace.root().join(DICTIONARY);
    let page = fs::read_to_string(page).with_context(|| format!("cannot read {DICTIONARY}"))?;
    let dictionary = Dictionary::read(&page)?;
    let mut found = Vec::new();
    for path in tracked_files(
        workspace,
        &["*.rs", "*.go", "*.py", "*.sh", "*.md", "*.toml", "*.yaml"],
    )? {
        if !is_checked(&path) {
            continue;
        }
        let text = fs::read(workspace.root().join(&path))
            .with_context(|| format!("cannot read {path}"))?;
        found.extend(dictionary.findings(&path, &String::from_utf8_lossy(&text)));
    }
    Ok(found)
}

fn is_checked(path: &str) -> bool {
    let is_below = |exception: &str| {
        path.strip_prefix(exception)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    };
    !EXCEPTIONS.iter().any(|exception| is_below(exception))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_checked_but_the_exceptions() {
        for (path, checked) in [
            ("crates/a/src/lib.rs", true),
            ("CHANGELOG.md", false),
            ("docs/CHANGELOG.md", true),
            ("xtask/src/house/words.rs", false),
            ("xtask/src/house/words/dictionary.rs", false),
            ("xtask/src/house/wordsmith.rs", true),
        ] {
            assert_eq!(is_checked(path), checked, "{path}");
        }
    }
}
