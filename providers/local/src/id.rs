//! Provider IDs of the local cloud: `local://<project>/<machine>`.

use std::fmt;
use std::str::FromStr;

use cloudkeel_api::ProviderId;

/// The scheme of every ID, and the provider's name.
pub const SCHEME: &str = "local";

/// A machine of the local cloud.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId {
    /// The project it belongs to.
    pub project: String,
    /// Its number there.
    pub machine: u64,
}

/// Why a provider ID is not one of the local cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocalIdError {
    /// Another cloud's.
    #[error("{0:?} does not begin with `local://`")]
    OtherScheme(String),
    /// Ours, but not readable.
    #[error("{0:?}: expected `local://<project>/<machine number>`")]
    Malformed(String),
}

impl LocalId {
    /// The machine of this number in this project.
    pub fn new(project: impl Into<String>, machine: u64) -> Self {
        Self {
            project: project.into(),
            machine,
        }
    }

    /// Reads a Node's provider ID.
    pub fn read(id: &ProviderId) -> Result<Self, LocalIdError> {
        id.as_str().parse()
    }

    /// The text for a Node.
    pub fn provider_id(&self) -> ProviderId {
        ProviderId::new(SCHEME, &format!("{}/{}", self.project, self.machine))
    }
}

impl fmt::Display for LocalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.provider_id().fmt(f)
    }
}

impl FromStr for LocalId {
    type Err = LocalIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((SCHEME, rest)) = text.split_once("://") else {
            return Err(LocalIdError::OtherScheme(text.to_owned()));
        };
        let malformed = || LocalIdError::Malformed(text.to_owned());
        let (project, machine) = rest.split_once('/').ok_or_else(malformed)?;
        let machine: u64 = machine.parse().map_err(|_| malformed())?;
        let id = Self::new(project, machine);
        // Only the one spelling, so that an ID and its text are the same thing.
        if project.is_empty() || id.to_string() != text {
            return Err(malformed());
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_one_spelling_is_read() {
        for text in [
            "local://",
            "local://demo",
            "local://demo/",
            "local:///7",
            "local://demo/x",
            "local://demo/-1",
            "local://demo/+7",
            "local://demo/007",
            "local://demo/7/8",
            "local://demo/99999999999999999999",
        ] {
            let error = text.parse::<LocalId>().unwrap_err();
            assert!(matches!(error, LocalIdError::Malformed(_)), "{text}");
        }
        for text in ["", "demo/7", "locals://demo/7", "hcloud://7"] {
            let error = text.parse::<LocalId>().unwrap_err();
            assert!(matches!(error, LocalIdError::OtherScheme(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_gives_the_same_id(project in "[!-.0-~]{1,20}", machine: u64) {
            let id = LocalId::new(project, machine);
            prop_assert_eq!(id.to_string().parse::<LocalId>(), Ok(id.clone()));
            prop_assert_eq!(LocalId::read(&id.provider_id()), Ok(id));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}") {
            if let Ok(id) = text.parse::<LocalId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
