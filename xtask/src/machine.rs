//! What this machine has: its environment and its programs. A parameter, so that tests can make one up.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The environment variables of a machine.
pub(crate) struct Machine {
    variables: BTreeMap<OsString, OsString>,
}

impl Machine {
    /// The machine this process runs on.
    pub(crate) fn this() -> Self {
        Self {
            variables: env::vars_os().collect(),
        }
    }

    /// A machine with just these variables.
    #[cfg(test)]
    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        Self {
            variables: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    /// The value of a variable; set but empty counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables
            .get(OsStr::new(name))
            .filter(|value| !value.is_empty())
    }

    /// Whether this is a run on a CI machine, where whatever cannot run is a failure.
    pub(crate) fn is_ci(&self) -> bool {
        self.variable("CI").is_some_and(|value| value == "true")
    }

    /// The names of all variables that begin with one of these.
    pub(crate) fn variables_like(&self, prefixes: &[&str]) -> Vec<OsString> {
        let is_like = |name: &&OsString| {
            let name = name.as_encoded_bytes();
            prefixes
                .iter()
                .any(|prefix| name.starts_with(prefix.as_bytes()))
        };
        self.variables.keys().filter(is_like).cloned().collect()
    }

    /// Whether a program of this name stands in one of the folders of `PATH`.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.variable("PATH").is_some_and(|folders| {
            env::split_paths(&folders).any(|folder| folder.join(name).is_file())
        })
    }
}

/// Something a tier cannot run without.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requirement {
    /// A program on `PATH`.
    Program(&'static str),
    /// A variable that names a folder with these files in it.
    FolderWith {
        variable: &'static str,
        files: &'static [&'static str],
    },
    /// Any one of these.
    AnyOf(&'static [Self]),
}

impl Requirement {
    /// What is missing for this requirement, in words; `None` when it is met.
    pub(crate) fn missing(&self, machine: &Machine) -> Option<String> {
        if self.is_met(machine) {
            None
        } else {
            Some(self.in_words())
        }
    }

    fn is_met(&self, machine: &Machine) -> bool {
        match *self {
            Self::Program(name) => machine.has_program(name),
            Self::FolderWith { variable, files } => {
                machine.variable(variable).is_some_and(|folder| {
                    files
                        .iter()
                        .all(|file| Path::new(&folder).join(file).is_file())
                })
            }
            Self::AnyOf(choices) => choices.iter().any(|choice| choice.is_met(machine)),
        }
    }

    fn in_words(&self) -> String {
        match *self {
            Self::Program(name) => format!("`{name}` on PATH"),
            Self::FolderWith { variable, files } => {
                format!("{variable} naming a folder with {}", files.join(" and "))
            }
            Self::AnyOf(choices) => choices
                .iter()
                .map(Self::in_words)
                .collect::<Vec<_>>()
                .join(", or "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::here;

    // Any file serves as a "program": this crate's own manifest is surely there.
    const PROGRAM: Requirement = Requirement::Program("Cargo.toml");
    const FOLDER: Requirement = Requirement::FolderWith {
        variable: "ASSETS",
        files: &["Cargo.toml", "src/main.rs"],
    };
    const EITHER: Requirement = Requirement::AnyOf(&[PROGRAM, FOLDER]);

    #[test]
    fn a_requirement_is_met_by_what_is_there_and_by_nothing_else() {
        let here = here().into_os_string().into_string().unwrap();
        let path = format!("/nowhere:{here}");
        let sources = format!("{here}/src");
        for (case, requirement, variables, met) in [
            (
                "program in the second folder",
                PROGRAM,
                vec![("PATH", path.as_str())],
                true,
            ),
            (
                "program nowhere",
                PROGRAM,
                vec![("PATH", "/nowhere")],
                false,
            ),
            ("no PATH at all", PROGRAM, vec![], false),
            (
                "folder with all files",
                FOLDER,
                vec![("ASSETS", here.as_str())],
                true,
            ),
            (
                "folder without them",
                FOLDER,
                vec![("ASSETS", sources.as_str())],
                false,
            ),
            (
                "variable set but empty",
                FOLDER,
                vec![("ASSETS", "")],
                false,
            ),
            (
                "one of two",
                EITHER,
                vec![("ASSETS", here.as_str()), ("PATH", "/nowhere")],
                true,
            ),
            ("none of two", EITHER, vec![("PATH", "/nowhere")], false),
        ] {
            let missing = requirement.missing(&Machine::with(&variables));
            assert_eq!(missing.is_none(), met, "{case}: {missing:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said_in_words() {
        assert_eq!(
            EITHER.missing(&Machine::with(&[])).as_deref(),
            Some("`Cargo.toml` on PATH, or ASSETS naming a folder with Cargo.toml and src/main.rs"),
        );
    }
}
