//! The lines of code of one file.

use std::path::Path;

use crate::house::code::without_comments;

/// Lines with code on them, without what is behind `#[cfg(test)]`.
pub(super) fn lines_of_code(source: &str) -> usize {
    lines(&without_tests(&without_comments(source)))
}

/// Lines with code on them, in a file that is a test itself.
pub(super) fn lines_with_tests(source: &str) -> usize {
    lines(&without_comments(source))
}

fn lines(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The code with every item behind a `#[cfg(test)]` left out.
fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some((before, item)) = split_at_test(rest) {
        kept.push_str(before);
        rest = item.split_at(item_length(item)).1;
    }
    kept.push_str(rest);
    kept
}

/// What stands before the next `#[cfg(test)]`, and the rest from there.
fn split_at_test(code: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let found = from + code.split_at(from).1.find("#[cfg(")?;
        let (before, rest) = code.split_at(found);
        let condition = rest
            .split_once(")]")
            .map_or(rest, |(condition, _)| condition);
        let is_word = |word: &str| word == "test";
        let words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
        if words.into_iter().any(is_word) && !condition.contains("not(test") {
            return Some((before, rest));
        }
        from = found + "#[cfg(".len();
    }
}

/// The length of an item with its attributes: up to its closing brace, or its semicolon.
fn item_length(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, character) in item.char_indices() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && character == '}' {
                    // `use a::{b, c};` goes on after its brace.
                    let after = item.split_at(at + 1).1;
                    return at + 1 + usize::from(after.starts_with(';'));
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// The files of modules that a file declares behind `#[cfg(test)]`.
pub(super) fn test_files(path: &str, source: &str) -> Vec<String> {
    let code = without_comments(source);
    let mut files = Vec::new();
    let mut rest = code.as_str();
    while let Some((_, item)) = split_at_test(rest) {
        let (declaration, after) = item.split_at(item_length(item));
        let name = declaration
            .strip_suffix(';')
            .and_then(|declaration| declaration.rsplit_once("mod "))
            .map(|(_, name)| name.trim());
        files.extend(name.map(|name| format!("{}/{name}.rs", folder_of_modules(path))));
        rest = after;
    }
    files
}

/// Where the modules of a file are: beside `mod.rs`, `lib.rs` and `main.rs`, else in a folder of its name.
fn folder_of_modules(path: &str) -> String {
    let file = Path::new(path);
    let is_root = ["mod.rs", "lib.rs", "main.rs"]
        .iter()
        .any(|name| file.ends_with(name));
    if is_root {
        let folder = file.parent().unwrap_or(file);
        folder.display().to_string()
    } else {
        path.trim_end_matches(".rs").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_if_it_has_code_on_it() {
        for (case, source, lines) in [
            ("nothing", "", 0),
            ("blanks and comments", "\n// a\n/* b\n c */\n//! d\n", 0),
            ("code with a comment", "fn a() {} // b\n", 1),
            ("a literal over lines", "let a = \"b\nc\nd\";\n", 3),
            (
                "an inline test module",
                "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n",
                2,
            ),
            (
                "a test module in a file",
                "fn a() {}\n#[cfg(test)]\nmod tests;\n",
                1,
            ),
            (
                "a function for tests",
                "#[cfg(test)]\n#[must_use]\npub(crate) fn a(b: [u8; 2]) -> u8 {\n    b[0]\n}\nfn c() {}\n",
                1,
            ),
            (
                "an import for tests",
                "#[cfg(test)]\nuse a::{b, c};\nfn d() {}\n",
                1,
            ),
            (
                "with a feature",
                "#[cfg(all(test, feature = \"x\"))]\nmod a;\nfn b() {}\n",
                1,
            ),
            ("not for tests", "#[cfg(not(test))]\nfn a() {}\n", 2),
            (
                "another condition",
                "#[cfg(feature = \"testing\")]\nfn a() {}\n",
                2,
            ),
        ] {
            assert_eq!(lines_of_code(source), lines, "{case}");
        }
    }

    #[test]
    fn the_file_of_a_test_module_is_found() {
        let source = "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod support;\n#[cfg(test)]\nmod inline { fn a() {} }\n";
        assert_eq!(
            test_files("crates/a/src/lib.rs", source),
            ["crates/a/src/tests.rs", "crates/a/src/support.rs"]
        );
        assert_eq!(
            test_files("crates/a/src/node.rs", "#[cfg(test)]\nmod tests;"),
            ["crates/a/src/node/tests.rs"]
        );
    }
}
