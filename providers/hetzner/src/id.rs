//! Provider IDs of Hetzner: `hcloud://<server>` and `hrobot://<server number>`.

use std::fmt;
use std::str::FromStr;

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;

/// The scheme of cloud servers, and the provider's name.
pub const CLOUD_SCHEME: &str = "hcloud";

/// The scheme of dedicated servers.
pub const ROBOT_SCHEME: &str = "hrobot";

/// How an old fork wrote dedicated servers: `hcloud://bm-<server number>`.
const LEGACY_ROBOT: &str = "hcloud://bm-";

/// A machine at Hetzner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HetznerId {
    /// A cloud server, by its ID.
    Cloud(u64),
    /// A dedicated server, by its number.
    Robot(u64),
}

impl HetznerId {
    /// Reads a Node's provider ID, in any form that was ever written.
    pub fn read(id: &ProviderId) -> Result<Self, IdError> {
        id.as_str().parse()
    }

    /// The ID of a cloud server.
    pub(crate) fn read_cloud(id: &ProviderId) -> Option<u64> {
        match Self::read(id) {
            Ok(Self::Cloud(id)) => Some(id),
            Ok(Self::Robot(_)) | Err(_) => None,
        }
    }

    /// The number of a dedicated server.
    pub(crate) fn read_robot(id: &ProviderId) -> Option<u64> {
        match Self::read(id) {
            Ok(Self::Robot(number)) => Some(number),
            Ok(Self::Cloud(_)) | Err(_) => None,
        }
    }

    /// The text for a Node.
    pub fn provider_id(self) -> ProviderId {
        let (scheme, number) = match self {
            Self::Cloud(number) => (CLOUD_SCHEME, number),
            Self::Robot(number) => (ROBOT_SCHEME, number),
        };
        ProviderId::new(scheme, &number.to_string())
    }
}

impl fmt::Display for HetznerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.provider_id().fmt(f)
    }
}

impl FromStr for HetznerId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The legacy form begins like a cloud server's, so it comes first.
        if let Some(rest) = text.strip_prefix(LEGACY_ROBOT) {
            return number(rest, text).map(Self::Robot);
        }
        match text.split_once("://") {
            Some((CLOUD_SCHEME, rest)) => number(rest, text).map(Self::Cloud),
            Some((ROBOT_SCHEME, rest)) => number(rest, text).map(Self::Robot),
            _ => Err(IdError::Foreign(format!(
                "{text:?} begins neither with `hcloud://` nor with `hrobot://`"
            ))),
        }
    }
}

/// Hetzner's numbers are positive and fit into 63 bits; only their one spelling was ever written.
fn number(digits: &str, text: &str) -> Result<u64, IdError> {
    let is_one = |number: &u64| i64::try_from(*number).is_ok() && number.to_string() == digits;
    digits.parse().ok().filter(is_one).ok_or_else(|| {
        IdError::Malformed(match digits {
            "" => {
                format!("{text:?} has nothing behind its prefix: expected the number of a server")
            }
            _ => format!("{text:?}: expected `hcloud://<number>` or `hrobot://<number>`"),
        })
    })
}

#[cfg(test)]
mod tests;
