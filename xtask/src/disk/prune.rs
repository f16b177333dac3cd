//! Removes from a target folder what a run has not used.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::size_of;

/// The folders of a profile in which each name ends in the hash of what it belongs to.
const HASHED: &[&str] = &[".fingerprint", "build", "deps"];

/// Removes everything of a hash that is not among those of the `used` files. Returns the bytes.
pub(crate) fn remove_unused(target: &Path, used: &BTreeSet<PathBuf>) -> Result<u64> {
    let hashes: BTreeSet<&str> = used.iter().flat_map(|path| hashes_of(path)).collect();
    // A program has another name beside its hashed one.
    let inodes: BTreeSet<u64> = used.iter().filter_map(|path| inode(path)).collect();
    let (mut freed, mut kept) = (0, BTreeSet::new());
    let mut unused = Vec::new();
    for path in hashed_entries(target) {
        let is_used = inode(&path).is_some_and(|inode| inodes.contains(&inode));
        match hash_of(&path) {
            Some(hash) if is_used || hashes.contains(hash) => {
                kept.insert(hash.to_owned());
            }
            Some(hash) => unused.push((hash.to_owned(), path)),
            None => {}
        }
    }
    for (hash, path) in unused {
        if kept.contains(&hash) {
            continue;
        }
        freed += size_of(&path);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(freed)
}

/// What is in the hashed folders of every profile, for this target or another one.
fn hashed_entries(target: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let profiles = entries(target);
    let nested = profiles.iter().flat_map(|folder| entries(folder));
    let profiles: Vec<PathBuf> = profiles.iter().cloned().chain(nested).collect();
    profiles
        .iter()
        .flat_map(|profile| HASHED.iter().map(|name| profile.join(name)))
        .flat_map(|folder| entries(&folder))
        .collect()
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

/// The hash at the end of a name: `libserde-0123456789abcdef.rlib`.
fn hash_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let (_, hash) = stem.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(hash)
}

/// The hashes of a file and of the folders that it is in.
fn hashes_of(path: &Path) -> impl Iterator<Item = &str> {
    path.ancestors().filter_map(hash_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_goes_and_everything_of_what_was_stays() {
        let target = std::env::temp_dir().join(format!("xtask-prune-{}", std::process::id()));
        let file = |path: &str| {
            let path = target.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "123").unwrap();
            path
        };
        let library = file("debug/deps/libserde-aaaaaaaaaaaaaaaa.rlib");
        let program = file("debug/cloudkeel");
        let hashed_program = target.join("debug/deps/cloudkeel-bbbbbbbbbbbbbbbb");
        fs::hard_link(&program, &hashed_program).unwrap();
        let used_beside = [
            file("debug/deps/serde-aaaaaaaaaaaaaaaa.d"),
            file("debug/.fingerprint/serde-aaaaaaaaaaaaaaaa/lib"),
            file("debug/deps/cloudkeel-bbbbbbbbbbbbbbbb.d"),
            file("debug/build/ring-cccccccccccccccc/out/a.o"),
            file("debug/deps/no-hash"),
        ];
        let stale = [
            file("debug/deps/libserde-dddddddddddddddd.rlib"),
            file("debug/.fingerprint/serde-dddddddddddddddd/lib"),
            file("x86_64-unknown-linux-musl/release/deps/a-eeeeeeeeeeeeeeee"),
        ];
        let used = [
            library.clone(),
            program,
            target.join("debug/build/ring-cccccccccccccccc/out"),
        ];

        let freed = remove_unused(&target, &used.into()).unwrap();

        assert_eq!(freed, 9);
        for path in [&library, &hashed_program].into_iter().chain(&used_beside) {
            assert!(path.exists(), "{}", path.display());
        }
        for path in &stale {
            assert!(!path.exists(), "{}", path.display());
        }
        fs::remove_dir_all(&target).unwrap();
    }
}
