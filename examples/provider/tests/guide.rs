//! The guide that shows the example: nothing in it that is not there, and nothing there that it leaves to guess.

#![expect(clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    let text = fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files of a folder of sources.
fn sources(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(here(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.map(|path| read(&path)).collect()
}

/// Without comments and blank lines.
#[test]
fn the_example_has_less_than_250_lines() {
    let sources = sources("src");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = sources.iter().flat_map(|text| text.lines());
    let lines = lines.filter(is_code).count();
    assert!(lines < 250, "it has {lines} lines of code");
}

/// The snippets of the guide in a language.
fn snippets<'a>(guide: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let fences = guide.split(fence.as_str()).skip(1);
    let snippet = |text: &'a str| text.split_once("```").expect("a fence that ends").0;
    fences.map(snippet).collect()
}

#[test]
fn every_line_of_the_example_stands_in_the_guide() {
    let guide = read(&here("../../docs/write-a-provider.md"));
    let shown = snippets(&guide, "rust").concat();
    let mut sources = sources("src");
    sources.push(read(&here("tests/conformance.rs")));
    for line in sources.iter().flat_map(|source| source.lines()) {
        let stands = shown.lines().any(|other| other == line);
        assert!(stands, "this is not in the guide:\n{line}");
    }
}

#[test]
fn every_snippet_of_the_guide_stands_in_the_example() {
    let guide = read(&here("../../docs/write-a-provider.md"));
    let mut snippets = snippets(&guide, "rust");
    assert!(snippets.len() >= 8, "{} snippets", snippets.len());
    snippets.extend(self::snippets(&guide, "toml"));
    let mut sources = sources("src");
    sources.push(read(&here("tests/conformance.rs")));
    sources.extend(self::sources("../sdk/src"));
    sources.push(read(&here("Cargo.toml")));
    for snippet in snippets {
        let stands = sources.iter().any(|source| source.contains(snippet));
        assert!(stands, "this is not in the example:\n{snippet}");
    }
}
