//! What one run of xtask remembers from tier to tier.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::build::{Artifact, Built};
use crate::changed::Changed;
use crate::machine::Machine;

/// What one run of xtask remembers from tier to tier.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// How many test programs run at once.
    pub(crate) jobs: usize,
    /// A test or tier that cannot run is a failure.
    pub(crate) ci: bool,
    /// What a change can reach, if only that is to run.
    pub(crate) changed: Option<Changed>,
    /// The tests, once they are built.
    pub(crate) built: OnceCell<Built>,
    /// How long each test program ran.
    timings: RefCell<Vec<Timing>>,
    /// Files in the target folder that this run has used.
    used: RefCell<BTreeSet<PathBuf>>,
}

/// How long a test program ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) program: String,
    pub(crate) tests: u64,
    pub(crate) time: Duration,
}

impl Session {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self {
            jobs: thread::available_parallelism().map_or(1, NonZero::get),
            ci: machine.is_ci(),
            ..Self::default()
        }
    }

    pub(crate) fn add_timing(&self, timing: Timing) {
        self.timings.borrow_mut().push(timing);
    }

    /// Every test program that ran, the longest first.
    pub(crate) fn timings(&self) -> Vec<Timing> {
        let mut all = self.timings.borrow().clone();
        all.sort_by_key(|timing| std::cmp::Reverse(timing.time));
        all
    }

    /// Files that this run has used, as cargo reported them.
    pub(crate) fn used(&self) -> BTreeSet<PathBuf> {
        self.used.borrow().clone()
    }

    /// Reads cargo's messages: returns the artifacts, and remembers every file they name.
    pub(crate) fn take_note_of(&self, messages: &[String]) -> Result<Vec<Artifact>> {
        let mut used = self.used.borrow_mut();
        let mut artifacts = Vec::new();
        for message in messages {
            let Reason { reason, out_dir } =
                serde_json::from_str(message).context("a message of cargo has no reason")?;
            used.extend(out_dir);
            if reason == "compiler-artifact" {
                let artifact: Artifact = serde_json::from_str(message)
                    .context("cannot read a message of cargo about an artifact")?;
                used.extend(artifact.filenames.iter().cloned());
                artifacts.push(artifact);
            }
        }
        Ok(artifacts)
    }
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
    /// Where a build script wrote.
    out_dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_that_cargo_names_is_remembered() {
        let messages = [
            r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"kind":["lib"],"name":"a"},"profile":{"test":false},"filenames":["/t/liba-1.rlib"],"executable":null}"#,
            r#"{"reason":"build-script-executed","package_id":"a","out_dir":"/t/build/a-2/out"}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        let session = Session::default();
        let artifacts = session.take_note_of(&messages.map(str::to_owned)).unwrap();
        assert_eq!(artifacts.len(), 1);
        let used = session.used();
        for file in ["/t/liba-1.rlib", "/t/build/a-2/out"] {
            assert!(used.contains(Path::new(file)), "{file} in {used:?}");
        }
        assert!(session.take_note_of(&["{}".to_owned()]).is_err());
    }

    #[test]
    fn the_longest_test_program_comes_first() {
        let session = Session::default();
        for (program, seconds) in [("short", 1), ("long", 9)] {
            session.add_timing(Timing {
                program: program.to_owned(),
                tests: 1,
                time: Duration::from_secs(seconds),
            });
        }
        let names: Vec<_> = session.timings().into_iter().map(|t| t.program).collect();
        assert_eq!(names, ["long", "short"]);
    }
}
