//! Lets cargo see that a file is the same as in the clone before.
//!
//! Cargo compares the time of a file with the time of what was built from it. In a fresh clone all files are
//! new, so cargo would build the whole workspace again. A file with the same content as in the run before
//! gets the time that it had then; every other file gets the present time, since what is in the target folder
//! was built from something else. That is only sound if one run at a time uses the target folder.
//!
//! A file that compiles the path of its clone in is new in every other clone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::workspace::{Workspace, output_of};

/// A file as it was in the last run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    /// Git's hash of its content.
    content: String,
    /// When it was last written, in nanoseconds since 1970.
    modified: u128,
}

type Sources = BTreeMap<String, Source>;

/// What a run leaves for the next one.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// Where the clone was.
    root: PathBuf,
    sources: Sources,
}

/// How a file compiles the path of its clone in.
const COMPILED_PATH: &[u8] = b"env!(\"CARGO_MANIFEST_DIR\")";

/// Restores the times of files that are as `record` has them, and writes the record of this run. Returns how
/// many are.
pub(crate) fn restore(workspace: &Workspace, record: &Path) -> Result<usize> {
    let mut before = read(record);
    if before.root != workspace.root() {
        let is_fixed = |path: &str| !has_compiled_path(&workspace.root().join(path));
        before.sources.retain(|path, _| is_fixed(path));
    }
    let now = present(record)?;
    let after = Record {
        root: workspace.root().to_owned(),
        sources: renew(&tracked(workspace)?, &before.sources, now),
    };
    for (path, source) in &after.sources {
        let path = workspace.root().join(path);
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(time(source.modified)))
            .with_context(|| format!("cannot set the time of {}", path.display()))?;
    }
    // Before anything is built: a run that ends early has built from these files too.
    let text = serde_json::to_string(&after).context("sources as JSON")?;
    fs::write(record, text).with_context(|| format!("cannot write {}", record.display()))?;
    Ok(after
        .sources
        .values()
        .filter(|source| source.modified != now)
        .count())
}

/// Whether the last run was in this checkout.
pub(crate) fn is_record_of(workspace: &Workspace, record: &Path) -> bool {
    read(record).root == workspace.root()
}

/// Without a record, or with one that cannot be read, everything is new.
fn read(record: &Path) -> Record {
    let text = fs::read_to_string(record).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn has_compiled_path(path: &Path) -> bool {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    is_rust
        && fs::read(path).is_ok_and(|source| {
            let mut windows = source.windows(COMPILED_PATH.len());
            windows.any(|window| window == COMPILED_PATH)
        })
}

/// The time at which each file of this run counts as written.
fn renew(tracked: &BTreeMap<String, String>, before: &Sources, now: u128) -> Sources {
    let one = |(path, content): (&String, &String)| {
        let same = before.get(path).filter(|source| source.content == *content);
        let modified = same.map_or(now, |source| source.modified);
        let content = content.clone();
        (path.clone(), Source { content, modified })
    };
    tracked.iter().map(one).collect()
}

/// Files that are as git's index has them, with the hash of their content.
fn tracked(workspace: &Workspace) -> Result<BTreeMap<String, String>> {
    let git = |arguments: &[&str]| {
        let mut git = workspace.command("git");
        git.args(arguments);
        output_of(git)
    };
    let modified = git(&["diff", "--name-only", "-z"])?;
    let modified: BTreeSet<&[u8]> = modified.split(|&byte| byte == 0).collect();
    let listed = git(&["ls-files", "--stage", "-z"])?;
    let listed = listed.split(|&byte| byte == 0);
    Ok(listed
        .filter_map(|line| {
            // `100644 HASH 0<TAB>PATH`
            let (fields, path) = str::from_utf8(line).ok()?.split_once('\t')?;
            let is_file = fields.starts_with("100");
            let content = fields.split(' ').nth(1)?;
            let is_same = !modified.contains(path.as_bytes());
            (is_file && is_same).then(|| (path.to_owned(), content.to_owned()))
        })
        .collect())
}

/// The present time, by the clock of the file system: it is compared with times of files.
fn present(record: &Path) -> Result<u128> {
    let probe = record.with_extension("now");
    fs::write(&probe, "")
        .and_then(|()| fs::metadata(&probe)?.modified())
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map(|since| since.as_nanos())
        .with_context(|| format!("cannot read the time of {}", probe.display()))
}

fn time(nanos: u128) -> SystemTime {
    let second = 1_000_000_000;
    let seconds = u64::try_from(nanos / second).unwrap_or(0);
    let rest = u32::try_from(nanos % second).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_content_as_in_the_last_run_keeps_its_time() {
        let source = |content: &str, modified| Source {
            content: content.to_owned(),
            modified,
        };
        let before: Sources = [
            ("same", source("a", 1)),
            ("other", source("b", 2)),
            ("gone", source("c", 3)),
        ]
        .map(|(path, source)| (path.to_owned(), source))
        .into();
        let tracked = [("same", "a"), ("other", "x"), ("new", "d")]
            .map(|(path, content)| (path.to_owned(), content.to_owned()))
            .into();
        let renewed = renew(&tracked, &before, 9);
        let times: Vec<_> = renewed
            .iter()
            .map(|(path, it)| (&**path, it.modified))
            .collect();
        assert_eq!(times, [("new", 9), ("other", 9), ("same", 1)]);
    }

    #[test]
    fn content_that_comes_back_is_new_again() {
        let tracked = |content: &str| [("file".to_owned(), content.to_owned())].into();
        let first = renew(&tracked("a"), &Sources::new(), 1);
        let second = renew(&tracked("b"), &first, 2);
        let third = renew(&tracked("a"), &second, 3);
        assert_eq!(third["file"].modified, 3, "what is built by now is from b");
    }

    #[test]
    fn a_file_that_compiles_its_path_in_is_known() {
        let here = crate::workspace::here().join("src");
        assert!(has_compiled_path(&here.join("disk/freshness.rs")));
        assert!(!has_compiled_path(&here.join("main.rs")));
        // What this file looks for, as a file has it.
        let _ = env!("CARGO_MANIFEST_DIR");
    }

    #[test]
    fn a_time_survives_the_record() {
        let nanos = 1_700_000_000_123_456_789;
        let since = time(nanos).duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(since.as_nanos(), nanos);
    }
}
