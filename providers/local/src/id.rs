//! Provider IDs of the local cloud: `local://<project>/<machine>`.

use std::fmt;
use std::str::FromStr;

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;

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

impl LocalId {
    /// The machine of this number in this project.
    pub fn new(project: impl Into<String>, machine: u64) -> Self {
        Self {
            project: project.into(),
            machine,
        }
    }

    /// Reads a Node's provider ID.
    pub fn read(id: &ProviderId) -> Result<Self, IdError> {
        id.as_str().parse()
    }

    /// Reads the number of a machine of this project.
    pub(crate) fn read_in(project: &str, id: &ProviderId) -> Result<u64, IdError> {
        let id = Self::read(id)?;
        if id.project != project {
            let why = format!("{id} belongs to another project: ours is {project:?}");
            return Err(IdError::OtherAccount(why));
        }
        Ok(id.machine)
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
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((SCHEME, rest)) = text.split_once("://") else {
            let why = format!("{text:?} does not begin with `local://`");
            return Err(IdError::Foreign(why));
        };
        // Only the one spelling, so that an ID and its text are the same thing.
        let id = rest.split_once('/').and_then(|(project, machine)| {
            let id = Self::new(project, machine.parse().ok()?);
            (!project.is_empty() && id.to_string() == text).then_some(id)
        });
        id.ok_or_else(|| {
            let why = format!("{text:?}: expected `local://<project>/<machine number>`");
            IdError::Malformed(why)
        })
    }
}

#[cfg(test)]
mod tests;
