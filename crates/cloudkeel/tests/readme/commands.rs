//! Finds the commands in a page of Markdown.

use std::collections::BTreeSet;

/// What a command begins with.
const PROGRAMS: [&str; 5] = ["cargo ", "cloudkeel ", "docker ", "helm ", "kubectl "];

/// Every line of the blocks for a shell, and every command within a sentence.
pub(crate) fn commands(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut block: Option<&str> = None;
    let mut prose = String::new();
    for line in page.lines() {
        match (block, line.trim().strip_prefix("```")) {
            (None, Some(language)) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (Some("sh"), None) => found.extend(command(line)),
            (Some(_), None) => {}
            (None, None) => {
                prose.push_str(line);
                prose.push(' ');
            }
        }
    }
    found.extend(within(&prose));
    found
}

/// The command of a line, without what is said about it.
fn command(line: &str) -> Option<String> {
    let line = line.split(" #").next().unwrap_or_default().trim();
    let is_command = !line.is_empty() && !line.starts_with('#');
    is_command.then(|| line.to_owned())
}

/// The commands in backquotes.
fn within(prose: &str) -> impl Iterator<Item = String> {
    let quoted = prose.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| PROGRAMS.iter().any(|program| text.starts_with(program)))
        .map(str::to_owned)
}

#[test]
fn commands_are_found_in_blocks_and_sentences_and_nothing_else_is() {
    let page = "\
Run `cargo xtask check`, or `make`,
which is `cloudkeel
demo` of `crates/page`.

```sh
# a remark
kind create cluster   # with a remark
  cloudkeel providers

```
```yaml
cargo: none
```
```
cargo none either
```
Then `cargo xtask check` again.
";
    let expected = [
        "cargo xtask check",
        "cloudkeel demo",
        "cloudkeel providers",
        "kind create cluster",
    ];
    assert_eq!(commands(page).into_iter().collect::<Vec<_>>(), expected);
}
