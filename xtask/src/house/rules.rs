//! The house rules themselves, as functions over the text of a Rust file.

use std::path::Path;

use super::code::code_only;

/// A file longer than this holds more than one idea.
const MOST_LINES: usize = 500;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// Everything in a Rust file that breaks a house rule.
pub(crate) fn findings(path: &str, source: &str) -> Vec<Finding> {
    let code = code_only(source);
    let mut found = Vec::new();
    found.extend(too_long(path, source));
    for (index, line) in code.lines().enumerate() {
        let complaints = [unexplained_ignore(line), left_to_do(line)];
        let finding = |what: &str| Finding {
            line: index + 1,
            what: what.to_owned(),
        };
        found.extend(complaints.into_iter().flatten().map(finding));
    }
    found
}

fn too_long(path: &str, source: &str) -> Option<Finding> {
    let lines = source.lines().count();
    (lines > MOST_LINES && !is_test(path)).then(|| Finding {
        line: MOST_LINES + 1,
        what: format!("the file has {lines} lines, at most {MOST_LINES} are allowed: split it"),
    })
}

/// Tests may be long: a table of cases is not harder to read for being longer.
pub(super) fn is_test(path: &str) -> bool {
    let path = Path::new(path);
    path.ends_with("tests.rs")
        || path
            .parent()
            .is_some_and(|folders| folders.iter().any(|folder| folder == "tests"))
}

fn unexplained_ignore(code: &str) -> Option<&'static str> {
    let ignored = code.contains("#[ignore]") || code.contains(", ignore)]");
    ignored.then_some("a test is ignored without a reason: write #[ignore = \"needs …\"]")
}

fn left_to_do(code: &str) -> Option<&'static str> {
    let is_macro = |(at, _): (usize, &str)| {
        !code
            .split_at(at)
            .0
            .ends_with(|before: char| before.is_alphanumeric() || before == '_')
    };
    let left = code.match_indices("todo!").any(is_macro);
    left.then_some("todo! is left in the code: finish it or leave it out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(source: &str) -> Vec<usize> {
        findings("crates/api/src/lib.rs", source)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_production_file_has_at_most_500_lines() {
        let long = "\n".repeat(501);
        for (path, lines, allowed) in [
            ("crates/api/src/lib.rs", 500, true),
            ("crates/api/src/lib.rs", 501, false),
            ("crates/api/src/tests.rs", 501, true),
            ("crates/api/src/node/tests.rs", 501, true),
            ("crates/api/tests/nodes.rs", 501, true),
            ("crates/api/src/tests/nodes.rs", 501, true),
            ("crates/testkit/src/lib.rs", 501, false),
            ("crates/api/src/contests.rs", 501, false),
        ] {
            let found = findings(path, long.split_at(lines).0);
            assert_eq!(
                found.is_empty(),
                allowed,
                "{path} with {lines} lines: {found:?}"
            );
        }
    }

    #[test]
    fn a_file_that_is_too_long_points_at_the_first_line_too_many() {
        let found = findings("src/lib.rs", &"\n".repeat(612));
        let what = "the file has 612 lines, at most 500 are allowed: split it".to_owned();
        assert_eq!(found, [Finding { line: 501, what }]);
    }

    #[test]
    fn an_ignored_test_says_why() {
        for (case, source, lines) in [
            ("no reason", "#[test]\n#[ignore]\nfn a() {}", vec![2]),
            ("on one line", "#[test] #[ignore] fn a() {}", vec![1]),
            ("conditional", "#[cfg_attr(windows, ignore)]", vec![1]),
            ("a reason", "#[ignore = \"needs a token\"]", vec![]),
            (
                "conditional reason",
                "#[cfg_attr(windows, ignore = \"no unix socket\")]",
                vec![],
            ),
            ("in a comment", "// #[ignore]", vec![]),
            ("in a string", "let a = \"#[ignore]\";", vec![]),
        ] {
            assert_eq!(lines_found(source), lines, "{case}");
        }
    }

    #[test]
    fn nothing_is_left_to_do() {
        for (case, source, lines) in [
            ("bare", "fn a() {\n    todo!()\n}", vec![2]),
            ("with a message", "todo!(\"later\")", vec![1]),
            ("by path", "std::todo!()", vec![1]),
            ("another macro", "my_todo!()", vec![]),
            ("in a comment", "/* todo!() */ fn a() {}", vec![]),
            ("after a long string", "let a = \"\n\n\";\ntodo!()", vec![4]),
        ] {
            assert_eq!(lines_found(source), lines, "{case}");
        }
    }
}
