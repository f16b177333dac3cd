//! The value of a Node's `spec.providerID`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A provider ID exactly as it is on the Node: immutable there, so never rewritten here.
///
/// Each provider has its own typed ID, which parses every format ever issued and prints one. This type is common to
/// all: it keeps the text, and knows only the scheme before `://`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProviderId(String);

impl ProviderId {
    /// Joins a scheme and the part after `://`.
    pub fn new(scheme: &str, rest: &str) -> Self {
        Self(format!("{scheme}://{rest}"))
    }

    /// The part before `://`, if there is one (AWS also reads bare instance IDs).
    pub fn scheme(&self) -> Option<&str> {
        self.0.split_once("://").map(|(scheme, _)| scheme)
    }

    /// The part after `://`, or all of it if there is no scheme.
    pub fn rest(&self) -> &str {
        self.0
            .split_once("://")
            .map_or(self.0.as_str(), |(_, rest)| rest)
    }

    /// Whether a cloud could have issued it. No cloud issues IDs with white space or control characters; a Node with
    /// such an ID belongs to no cloud, and can never get another ID.
    pub fn check(&self) -> Result<(), ProviderIdError> {
        let is_bad = |c: char| c.is_whitespace() || c.is_control();
        if self.0.chars().any(is_bad) {
            return Err(ProviderIdError::BadCharacter(self.0.clone()));
        }
        Ok(())
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why no cloud could have issued a provider ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// Empty. A Node without a provider ID is `None`, not an empty one.
    #[error("the provider ID is empty: expected something like `scheme://id`")]
    Empty,
    /// White space or control characters.
    #[error("the provider ID {0:?} contains white space or control characters")]
    BadCharacter(String),
}

impl FromStr for ProviderId {
    type Err = ProviderIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ProviderIdError::Empty);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for ProviderId {
    type Error = ProviderIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ProviderId> for String {
    fn from(id: ProviderId) -> Self {
        id.0
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scheme_and_rest_of_every_known_shape() {
        for (text, scheme, rest) in [
            ("hcloud://42", Some("hcloud"), "42"),
            ("hcloud://bm-7", Some("hcloud"), "bm-7"),
            (
                "aws:///eu-west-1a/i-0abc",
                Some("aws"),
                "/eu-west-1a/i-0abc",
            ),
            (
                "openstack://RegionOne/1-2",
                Some("openstack"),
                "RegionOne/1-2",
            ),
            ("i-0abc", None, "i-0abc"),
        ] {
            let id: ProviderId = text.parse().unwrap();
            assert_eq!((id.scheme(), id.rest()), (scheme, rest), "{text}");
        }
    }

    #[test]
    fn only_nothing_is_no_id_and_nonsense_is_kept_as_what_it_is() {
        assert_eq!("".parse::<ProviderId>(), Err(ProviderIdError::Empty));
        assert!(serde_json::from_str::<ProviderId>("\"\"").is_err());
        for (text, is_good) in [
            ("hcloud://42", true),
            ("nonsense", true),
            ("hcloud://4 2", false),
            ("hcloud://4\n", false),
            (" ", false),
        ] {
            let id: ProviderId = text.parse().unwrap();
            assert_eq!(id.as_str(), text);
            assert_eq!(id.check().is_ok(), is_good, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_gives_the_same_id(text in "[a-z]{1,8}://[!-~]{0,40}") {
            let id: ProviderId = text.parse().unwrap();
            prop_assert_eq!(id.to_string().parse::<ProviderId>().unwrap(), id.clone());
            let scheme = id.scheme().unwrap().to_owned();
            prop_assert_eq!(ProviderId::new(&scheme, id.rest()), id);
        }
    }
}
