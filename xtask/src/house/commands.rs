//! Every `cargo xtask` that a page shows is a command that xtask knows.

use std::fs;

use anyhow::{Context as _, Result};

use super::{markdown, tracked_files};
use crate::cli::Cli;
use crate::workspace::Workspace;

const COMMAND: &str = "cargo xtask ";

/// The commands of all pages that xtask would refuse.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in tracked_files(workspace, &["*.md"])? {
        let page = fs::read_to_string(workspace.root().join(&path))
            .with_context(|| format!("cannot read {path}"))?;
        found.extend(
            refused(&page)
                .into_iter()
                .map(|what| format!("{path}:{what}")),
        );
    }
    Ok(found)
}

fn refused(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in commands(page) {
        if let Err(why) = Cli::accepts(&line) {
            found.push(format!("{number}: `{line}`: {why}"));
        }
    }
    found
}

/// The line number and the words of each command, in a block or within a sentence.
fn commands(page: &str) -> impl Iterator<Item = (usize, String)> {
    markdown::spans_in(page).filter_map(|(number, code)| {
        let command = code.split(" #").next()?.trim();
        let is_ours = command.starts_with(COMMAND);
        is_ours.then(|| (number, command.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Run `cargo xtask check --tier edges` or `cargo test`, then `cargo xtask chekc`.

```sh
cargo xtask test --timings    # with times
cargo xtask test --tier no-such-tier
cargo xtask bench nodes -- --nodes 100
```
Text about cargo xtask nonsense.
";

    #[test]
    fn commands_are_found_in_blocks_and_sentences() {
        let lines: Vec<_> = commands(PAGE).map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 1, 4, 5, 6]);
    }

    #[test]
    fn an_unknown_command_and_an_unknown_tier_are_refused() {
        let found = refused(PAGE);
        let [command, tier] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert!(command.starts_with("1: `cargo xtask chekc`"), "{command}");
        assert!(tier.contains("no-such-tier"), "{tier}");
    }
}
