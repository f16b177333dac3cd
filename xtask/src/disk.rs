//! The target folder that CI keeps in the cache: used by one run at a time, warm in every clone, and bounded.

mod freshness;
mod prune;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::machine::Machine;
use crate::metadata::Metadata;
use crate::workspace::Workspace;

/// What the sources were when they were built, in the target folder.
const SOURCES: &str = "xtask-sources.json";

/// What the runs since the last whole one have used of it.
const USED: &str = "xtask-used.json";

/// Above this, what the run has not used is removed from the target folder of the cache.
const LIMIT: u64 = 20 << 30;

/// On CI: takes the target folder of the cache for this run, and lets cargo see which files are the same as
/// in the run before. The folder is free again when the result is dropped.
pub(crate) fn prepare_target(workspace: &mut Workspace, machine: &Machine) -> Result<Option<File>> {
    if !machine.is_ci() {
        return Ok(None);
    }
    take_target(workspace, machine)
}

/// The same for a command beside the tests: also without CI, if the last run with CI was in this checkout. Otherwise
/// the same program would be built once more in another folder.
pub(crate) fn prepare_target_of_last_run(
    workspace: &mut Workspace,
    machine: &Machine,
) -> Result<Option<File>> {
    let sources = workspace.cache().join("target").join(SOURCES);
    if !machine.is_ci() && !freshness::is_record_of(workspace, &sources) {
        return Ok(None);
    }
    take_target(workspace, machine)
}

fn take_target(workspace: &mut Workspace, machine: &Machine) -> Result<Option<File>> {
    if machine.variable("CARGO_TARGET_DIR").is_some() {
        return Ok(None);
    }
    let target = workspace.cache().join("target");
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let lock = File::create(target.join("xtask.lock")).context("cannot lock the target folder")?;
    if lock.try_lock().is_err() {
        // Two runs would take each other's programs for their own.
        let own = workspace.root().join("target");
        workspace.screen().line(&format!(
            "another run uses {}: building in {}",
            target.display(),
            own.display()
        ));
        workspace.set("CARGO_TARGET_DIR", own.into_os_string());
        return Ok(None);
    }
    prune_before(workspace, &target)?;
    let kept = freshness::restore(workspace, &target.join(SOURCES))?;
    workspace.set("CARGO_TARGET_DIR", target.into_os_string());
    if machine.variable("CARGO_INCREMENTAL").is_none() {
        workspace.set("CARGO_INCREMENTAL", "0".into());
    }
    workspace
        .screen()
        .line(&format!("{kept} files are as the last run built them"));
    Ok(Some(lock))
}

/// Runs that fail, and parts of runs, add to the target folder too. If it is above the limit when a run begins, what the
/// runs before it have not used is removed.
fn prune_before(workspace: &Workspace, target: &Path) -> Result<()> {
    let used = read_used(&target.join(USED));
    if used.is_empty() || size_of(target) <= LIMIT {
        return Ok(());
    }
    prune(workspace, target, &used, "the last runs have not used")
}

fn prune(workspace: &Workspace, target: &Path, used: &BTreeSet<PathBuf>, why: &str) -> Result<()> {
    let freed = in_words(prune::remove_unused(target, used)?);
    let line = format!("removed {freed} that {why} from {}", target.display());
    workspace.screen().line(&line);
    Ok(())
}

/// On CI: remembers what a run has used of the target folder, whether it passed or not. A whole run has used all that
/// is needed; any other adds to that.
pub(crate) fn remember_used(workspace: &Workspace, is_whole: bool) -> Result<()> {
    let target = workspace.cache().join("target");
    let mut used = workspace.session().used();
    used.retain(|path| path.starts_with(&target));
    if !workspace.session().ci || used.is_empty() {
        return Ok(());
    }
    write_used(&target.join(USED), used, is_whole)
}

fn write_used(record: &Path, mut used: BTreeSet<PathBuf>, is_whole: bool) -> Result<()> {
    if !is_whole {
        used.extend(read_used(record));
    }
    let text = serde_json::to_string(&used).context("used files as JSON")?;
    fs::write(record, text).with_context(|| format!("cannot write {}", record.display()))
}

/// Without a record nothing is known to be unused.
fn read_used(record: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read_to_string(record).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Prints what the caches weigh, and removes from CI's target folder what this run has not used if that
/// is above the limit.
pub(crate) fn tidy_up(workspace: &Workspace) -> Result<()> {
    let screen = workspace.screen();
    let cached = workspace.cache().join("target");
    let target = Metadata::read(workspace)?.target_directory;
    let mut sizes = vec![(target.clone(), size_of(&target))];
    for entry in fs::read_dir(workspace.cache())
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.path() != target {
            sizes.push((entry.path(), size_of(&entry.path())));
        }
    }
    for (path, size) in &sizes {
        screen.line(&format!("{:>9}  {}", in_words(*size), path.display()));
    }
    if target == cached && size_of(&target) > LIMIT {
        let used = workspace.session().used();
        prune(workspace, &target, &used, "this run has not used")?;
    }
    Ok(())
}

/// The bytes of all files below a path; a file with several names counts once for each.
fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}

/// `512 MiB` or `7.5 GiB`.
fn in_words(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib < 1024 {
        format!("{mib} MiB")
    } else {
        format!("{}.{} GiB", mib / 1024, mib % 1024 * 10 / 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_run_replaces_what_is_remembered_and_any_other_adds_to_it() {
        let record = std::env::temp_dir().join(format!("xtask-used-{}", std::process::id()));
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        assert_eq!(read_used(&record), paths(&[]), "there is no record");
        for (used, is_whole, expected) in [
            (["a", "b"], true, &["a", "b"][..]),
            (["b", "c"], false, &["a", "b", "c"]),
            (["c", "d"], true, &["c", "d"]),
        ] {
            write_used(&record, paths(&used), is_whole).unwrap();
            assert_eq!(read_used(&record), paths(expected));
        }
        fs::remove_file(&record).unwrap();
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 MiB"),
            (5 << 20, "5 MiB"),
            (1 << 30, "1.0 GiB"),
            ((7 << 30) + (512 << 20), "7.5 GiB"),
        ] {
            assert_eq!(in_words(bytes), text);
        }
    }
}
