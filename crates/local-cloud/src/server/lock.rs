//! Who runs a cloud: one process per state file, and how others find it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a running cloud is reached, from its lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    /// The process.
    pub pid: u32,
    /// The address of its REST API.
    pub url: String,
    /// The file that holds the token.
    pub token_file: PathBuf,
}

/// The files that belong to a state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The state itself.
    pub state: PathBuf,
}

impl Files {
    /// Those of this state file.
    pub const fn of(state: PathBuf) -> Self {
        Self { state }
    }

    fn with(&self, suffix: &str) -> PathBuf {
        let mut path = self.state.as_os_str().to_owned();
        path.push(suffix);
        path.into()
    }

    /// Held by the process that runs the cloud, with its [`Contact`] inside.
    pub fn lock(&self) -> PathBuf {
        self.with(".lock")
    }

    /// Where the token is by default.
    pub fn token(&self) -> PathBuf {
        self.with(".token")
    }

    /// What a cloud that was started in the background has to say.
    pub fn log(&self) -> PathBuf {
        self.with(".log")
    }

    /// The process that runs the cloud, if one does. It may not have said yet where it is found.
    pub fn running(&self) -> io::Result<Running> {
        let mut file = match File::open(self.lock()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Running::No),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => return Ok(Running::No),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text).map_or(Running::Starting, Running::Yes))
    }
}

/// Whether a cloud is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Running {
    /// No process runs it.
    No,
    /// A process runs it, but has not published its address yet.
    Starting,
    /// A process runs it.
    Yes(Contact),
}

/// The right to run a cloud, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// Where the cloud was found before.
    pub(crate) before: Option<Contact>,
}

impl Lock {
    /// Takes the lock, or says that another process has it.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut text = String::new();
        // What was there before is a help, not a need.
        let _ = file.read_to_string(&mut text);
        // No client may use the address of an earlier run.
        file.set_len(0)?;
        Ok(Some(Self {
            file,
            before: serde_json::from_str(&text).ok(),
        }))
    }

    /// Publishes where the cloud is.
    pub(crate) fn publish(&mut self, contact: &Contact) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&serde_json::to_vec(contact)?)?;
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_and_others_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of(folder.path().join("deep").join("state.json"));
        assert_eq!(files.running().unwrap(), Running::No);
        let mut lock = Lock::take(&files.lock()).unwrap().unwrap();
        assert!(Lock::take(&files.lock()).unwrap().is_none());
        assert_eq!(files.running().unwrap(), Running::Starting);
        let contact = Contact {
            pid: 7,
            url: "http://127.0.0.1:1".to_owned(),
            token_file: files.token(),
        };
        lock.publish(&contact).unwrap();
        lock.publish(&contact).unwrap();
        assert_eq!(files.running().unwrap(), Running::Yes(contact.clone()));
        drop(lock);
        assert_eq!(files.running().unwrap(), Running::No);
        let next = Lock::take(&files.lock()).unwrap().unwrap();
        assert_eq!(next.before, Some(contact));
        assert_eq!(files.running().unwrap(), Running::Starting);
    }
}
