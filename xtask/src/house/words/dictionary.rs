//! The table of retired words, and where a text uses one.

use std::path::Path;

use anyhow::{Result, bail};

use crate::house::code::code_only;
use crate::house::markdown;

/// The head of the table.
const HEAD: &str = "| retired | instead |";

/// What is retired, and what to write instead.
struct Entry {
    retired: Retired,
    instead: String,
}

enum Retired {
    /// An identifier, with `*` for any part of one.
    Identifier(String),
    /// The name of a file or folder.
    FileName(String),
    /// Words that follow each other, in lower case.
    Phrase(String),
}

pub(super) struct Dictionary(Vec<Entry>);

impl Dictionary {
    /// Reads the table of a page.
    pub(super) fn read(page: &str) -> Result<Self> {
        let mut lines = page.lines().skip_while(|line| *line != HEAD).skip(2);
        let rows = lines.by_ref().take_while(|line| line.starts_with('|'));
        let mut entries = Vec::new();
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [retired, instead] = cells[..] else {
                bail!("a row of the dictionary has two columns: {row}");
            };
            let words = retired_words(retired);
            if words.is_empty() {
                bail!("a row of the dictionary retires nothing that can be found: {row}");
            }
            let instead = || instead.to_owned();
            entries.extend(words.into_iter().map(|retired| Entry {
                retired,
                instead: instead(),
            }));
        }
        if entries.is_empty() {
            bail!("there is no table with the head `{HEAD}`");
        }
        Ok(Self(entries))
    }

    /// Every use of a retired word in a file.
    pub(super) fn findings(&self, path: &str, text: &str) -> Vec<String> {
        let extension = Path::new(path).extension().and_then(|it| it.to_str());
        let code = match extension {
            Some("md") => markdown::code_in(text),
            Some("rs" | "go") => code_only(text),
            _ => text.to_owned(),
        };
        let mut found = self.in_path(path);
        // A file that ends in a comment has fewer lines of code than of text.
        let code = code.lines().chain(std::iter::repeat(""));
        for (index, (code, line)) in code.zip(text.lines()).enumerate() {
            let lower = line.to_lowercase();
            let names: Vec<&str> = identifiers(code).collect();
            for entry in &self.0 {
                let used = match &entry.retired {
                    Retired::Identifier(pattern) => {
                        names.iter().copied().find(|name| is_like(pattern, name))
                    }
                    Retired::Phrase(phrase) => contains_words(&lower, phrase).then_some(&**phrase),
                    Retired::FileName(_) => None,
                };
                let Some(used) = used else { continue };
                let (number, instead) = (index + 1, &entry.instead);
                found.push(format!("{path}:{number}: `{used}` is retired: {instead}"));
            }
        }
        found
    }

    fn in_path(&self, path: &str) -> Vec<String> {
        let is_used = |entry: &&Entry| match &entry.retired {
            Retired::FileName(name) => path.split('/').any(|part| part == name),
            _ => false,
        };
        self.0
            .iter()
            .filter(is_used)
            .map(|entry| format!("{path}: this name is retired: {}", entry.instead))
            .collect()
    }
}

/// The code spans and the quoted phrases of a cell.
fn retired_words(cell: &str) -> Vec<Retired> {
    let code = cell.split('`').skip(1).step_by(2).map(|code| {
        if code.ends_with('/') || code.contains('.') {
            Retired::FileName(code.trim_end_matches('/').to_owned())
        } else {
            Retired::Identifier(code.to_owned())
        }
    });
    let quoted = cell.split('"').skip(1).step_by(2);
    code.chain(quoted.map(|phrase| Retired::Phrase(phrase.to_lowercase())))
        .collect()
}

fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|name| !name.is_empty())
}

/// Whether an identifier fits a pattern with a `*` at its start, its end, or both.
fn is_like(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

/// Whether the words of a phrase stand in a line, not as parts of longer words.
fn contains_words(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.split_at(phrase.len()).1;
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Words\n\n| retired | instead |\n|---|---|\n\
        | `Sweep`, `sweep_*`, `*nobody*` | `InstanceList` |\n\
        | \"it is told\" | say who reports what |\n\
        | `night/`, `look.rs` | `failures` |\n\nMore.\n| no | row |\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        Dictionary::read(PAGE).unwrap().findings(path, text)
    }

    #[test]
    fn identifiers_are_found_in_code_and_phrases_everywhere() {
        for (case, path, text, count) in [
            ("a type", "a.rs", "let a: Sweep = b;", 1),
            ("a function", "a.rs", "fn sweep_ahead() {}", 1),
            (
                "a test name",
                "a.rs",
                "fn a_token_that_nobody_issued() {}",
                1,
            ),
            ("another identifier", "a.rs", "fn sweeper() { Sweeps }", 0),
            ("a comment", "a.rs", "// Sweep the floor; nobody looks.", 0),
            ("a string", "a.rs", "let a = \"Sweep\";", 0),
            ("a phrase in a comment", "a.rs", "// It is told twice.", 1),
            ("a phrase in a string", "a.rs", "let a = \"it is told\";", 1),
            ("a phrase inside another", "a.rs", "// it is toldness", 0),
            ("prose", "a.md", "Sweep the floor.", 0),
            ("code in prose", "a.md", "A `Sweep` of code.", 1),
            ("a code block", "a.md", "```rust\nlet a: Sweep;\n```", 1),
            ("a folder", "tests/night/a.rs", "", 1),
            ("a file", "src/look.rs", "", 1),
            ("part of a name", "tests/nightly/a.rs", "", 0),
        ] {
            let found = found(path, text);
            assert_eq!(found.len(), count, "{case}: {found:?}");
        }
    }

    #[test]
    fn a_finding_names_the_place_and_the_right_word() {
        assert_eq!(
            found("a.rs", "\nlet a: Sweep;"),
            ["a.rs:2: `Sweep` is retired: `InstanceList`"]
        );
    }

    #[test]
    fn a_table_that_is_missing_or_retires_nothing_is_an_error() {
        for page in [
            "# Words\n",
            "| retired | instead |\n|---|---|\n| plain words | b |\n",
        ] {
            assert!(Dictionary::read(page).is_err(), "{page}");
        }
    }
}
