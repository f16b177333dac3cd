//! House rules that are cheap to check by reading the files of the repository.

mod code;
mod rules;

use std::fs;

use anyhow::{Context as _, Result};

use crate::bench;
use crate::workspace::{Outcome, Workspace, output_of};

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let paths = rust_files(workspace)?;
    let mut broken = 0;
    for path in &paths {
        let bytes =
            fs::read(workspace.root().join(path)).with_context(|| format!("cannot read {path}"))?;
        for finding in rules::findings(path, &String::from_utf8_lossy(&bytes)) {
            workspace
                .screen()
                .line(&format!("{path}:{}: {}", finding.line, finding.what));
            broken += 1;
        }
    }
    if let Some(finding) = bench::check_page(workspace)? {
        workspace.screen().line(&finding);
        broken += 1;
    }
    workspace
        .screen()
        .line(&format!("{} Rust files read", paths.len()));
    Ok(match (paths.len(), broken) {
        (0, _) => Outcome::failed("git lists no Rust file".to_owned()),
        (_, 0) => Outcome::passed(),
        (_, 1) => Outcome::failed("1 house rule is broken".to_owned()),
        _ => Outcome::failed(format!("{broken} house rules are broken")),
    })
}

/// What git tracks, or would track: new files count before they are added.
fn rust_files(workspace: &Workspace) -> Result<Vec<String>> {
    let mut list = workspace.command("git");
    list.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        "*.rs",
    ]);
    let output = output_of(list)?;
    let mut paths: Vec<String> = output
        .split(|&byte| byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| String::from_utf8_lossy(path).into_owned())
        // A file that was deleted but not yet committed is still in the index.
        .filter(|path| workspace.root().join(path).is_file())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}
