//! The state file: written whole or not at all, read whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::simulated_cloud::Snapshot;

const KIND: &str = "LocalCloudState";
const VERSION: &str = "cloudkeel.dev/v1";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    world: Snapshot,
}

/// Why the state could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file is there but cannot be opened.
    #[error("the state file {path:?} cannot be read: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no state.
    #[error(
        "the state file {path:?} is broken: {why}: repair it, or move it away to begin with nothing"
    )]
    Broken {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// A state file.
#[derive(Debug, Clone)]
pub(crate) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    pub(crate) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn broken(&self, why: impl Into<String>) -> StateError {
        StateError::Broken {
            path: self.path.clone(),
            why: why.into(),
        }
    }

    /// What was written last; `None` if there is no file yet.
    pub(crate) fn read(&self) -> Result<Option<Snapshot>, StateError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                let path = self.path.clone();
                return Err(StateError::Unreadable { path, source });
            }
        };
        let document: Document =
            serde_json::from_slice(&text).map_err(|error| self.broken(error.to_string()))?;
        if document.kind != KIND || document.api_version != VERSION {
            let (kind, version) = (document.kind, document.api_version);
            let why = format!("it is a {kind} of {version}, expected a {KIND} of {VERSION}");
            return Err(self.broken(why));
        }
        Ok(Some(document.world))
    }

    /// Replaces the file. A reader finds the old state or the new one, also after a crash.
    pub(crate) fn write(&self, world: Snapshot) -> io::Result<()> {
        let document = Document {
            api_version: VERSION.to_owned(),
            kind: KIND.to_owned(),
            world,
        };
        replace(&self.path, &serde_json::to_vec_pretty(&document)?)
    }
}

/// Replaces a file that only its owner may read.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&beside, path)?;
    // The name itself is safe only when its folder is.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_cloud::{MachineSpec, Settings, SimulatedCloud};

    #[tokio::test]
    async fn what_was_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at(folder.path().join("state.json"));
        assert_eq!(file.read().unwrap(), None);
        let cloud = SimulatedCloud::new(Settings::default());
        cloud.add_machine(MachineSpec::named("one")).unwrap();
        for _ in 0..2 {
            file.write(cloud.snapshot()).unwrap();
            assert_eq!(file.read().unwrap(), Some(cloud.snapshot()));
        }
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing lies beside it: {left:?}");
    }

    #[test]
    fn a_broken_file_is_reported_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at(folder.path().join("state.json"));
        for (case, text, expected) in [
            ("empty", "", "EOF while parsing"),
            ("half", "{\"apiVersion\": \"cloud", "EOF while parsing"),
            ("another file", "{\"hello\": 1}", "unknown field `hello`"),
            (
                "another version",
                r#"{"apiVersion":"cloudkeel.dev/v9","kind":"LocalCloudState","world":{"lastId":0,"projects":{}}}"#,
                "expected a LocalCloudState of cloudkeel.dev/v1",
            ),
        ] {
            fs::write(file.path(), text).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert!(error.contains(expected), "{case}: {error}");
            assert!(error.contains("move it away"), "{case}: {error}");
            assert_eq!(fs::read_to_string(file.path()).unwrap(), text, "{case}");
        }
    }
}
