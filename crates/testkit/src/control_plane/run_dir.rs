//! The directory of one run: data, keys and logs.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A fresh directory that only this user may enter, since it holds private keys.
///
/// It is not removed on drop: the supervisors of the servers do that, for they outlive this process.
#[derive(Debug)]
pub(super) struct RunDir(PathBuf);

impl RunDir {
    pub(super) fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let mut number = 0_u32;
        loop {
            // Short, because the path of a Unix socket below it may not exceed about 100 bytes.
            let path = parent.join(format!("cloudkeel-{}-{number}", std::process::id()));
            match private_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(Self(path)),
            }
        }
    }

    /// The directory of a run that another process has begun.
    pub(super) fn existing(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the directory of one server.
    pub(super) fn subdirectory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        private_dir(&path)?;
        Ok(path)
    }
}

pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn every_run_has_its_own_private_directory() {
        let (first, second) = (RunDir::create().unwrap(), RunDir::create().unwrap());
        assert_ne!(first.path(), second.path());
        for run in [first, second] {
            let mode = run.path().metadata().unwrap().permissions().mode();
            std::fs::remove_dir(run.path()).unwrap();
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
