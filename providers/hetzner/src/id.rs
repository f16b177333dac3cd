//! Provider IDs of Hetzner: `hcloud://<server>` and `hrobot://<server number>`.

use std::fmt;
use std::str::FromStr;

use cloudkeel_api::ProviderId;

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

/// Why a provider ID is not one of Hetzner's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HetznerIdError {
    /// Another cloud's.
    #[error("{0:?} begins neither with `hcloud://` nor with `hrobot://`")]
    UnknownPrefix(String),
    /// Nothing behind the prefix.
    #[error("{0:?} has nothing behind its prefix: expected the number of a server")]
    MissingId(String),
    /// Something that is no number behind the prefix.
    #[error("{0:?}: expected `hcloud://<number>` or `hrobot://<number>`")]
    NotANumber(String),
}

impl HetznerId {
    /// Reads a Node's provider ID, in any form that was ever written.
    pub fn read(id: &ProviderId) -> Result<Self, HetznerIdError> {
        id.as_str().parse()
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
    type Err = HetznerIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The legacy form begins like a cloud server's, so it comes first.
        if let Some(rest) = text.strip_prefix(LEGACY_ROBOT) {
            return number(rest, text).map(Self::Robot);
        }
        match text.split_once("://") {
            Some((CLOUD_SCHEME, rest)) => number(rest, text).map(Self::Cloud),
            Some((ROBOT_SCHEME, rest)) => number(rest, text).map(Self::Robot),
            _ => Err(HetznerIdError::UnknownPrefix(text.to_owned())),
        }
    }
}

/// Hetzner's numbers are positive and fit into 63 bits; only their one spelling was ever written.
fn number(digits: &str, text: &str) -> Result<u64, HetznerIdError> {
    if digits.is_empty() {
        return Err(HetznerIdError::MissingId(text.to_owned()));
    }
    digits
        .parse()
        .ok()
        .filter(|number: &u64| i64::try_from(*number).is_ok() && number.to_string() == digits)
        .ok_or_else(|| HetznerIdError::NotANumber(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_that_was_ever_written_is_read() {
        for (text, id) in [
            ("hcloud://42", HetznerId::Cloud(42)),
            ("hrobot://321", HetznerId::Robot(321)),
            ("hcloud://bm-321", HetznerId::Robot(321)),
        ] {
            assert_eq!(text.parse(), Ok(id), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        type Why = fn(String) -> HetznerIdError;
        for (text, why) in [
            ("", HetznerIdError::UnknownPrefix as Why),
            ("42", HetznerIdError::UnknownPrefix),
            ("aws:///eu-west-1a/i-0abc", HetznerIdError::UnknownPrefix),
            ("hclouds://42", HetznerIdError::UnknownPrefix),
            ("hcloud:/42", HetznerIdError::UnknownPrefix),
            ("hcloud://", HetznerIdError::MissingId),
            ("hrobot://", HetznerIdError::MissingId),
            ("hcloud://bm-", HetznerIdError::MissingId),
            ("hcloud://my-server", HetznerIdError::NotANumber),
            ("hcloud://42/1", HetznerIdError::NotANumber),
            ("hcloud://-42", HetznerIdError::NotANumber),
            ("hcloud://+42", HetznerIdError::NotANumber),
            ("hcloud://042", HetznerIdError::NotANumber),
            ("hcloud://9223372036854775808", HetznerIdError::NotANumber),
            ("hrobot://bm-42", HetznerIdError::NotANumber),
            ("hcloud://bm-x", HetznerIdError::NotANumber),
        ] {
            let expected = why(text.to_owned());
            assert_eq!(text.parse::<HetznerId>(), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_gives_the_same_id(number in 0..i64::MAX as u64, robot: bool) {
            let id = if robot { HetznerId::Robot(number) } else { HetznerId::Cloud(number) };
            prop_assert_eq!(id.to_string().parse::<HetznerId>(), Ok(id));
            prop_assert_eq!(HetznerId::read(&id.provider_id()), Ok(id));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(hcloud://|hrobot://|hcloud://bm-)?.{0,30}") {
            let _ = text.parse::<HetznerId>();
        }
    }
}
