//! Provider IDs that cannot be read, and those that are a number.

use std::fmt;

use cloudkeel_api::{ProviderId, Recognition};

/// Why a provider ID names no instance of a scope. The text says what was given and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdError {
    /// Another kind of cloud.
    Foreign(String),
    /// This kind of cloud, but not an ID that can be read.
    Malformed(String),
    /// Another account, project or region of this kind of cloud.
    OtherAccount(String),
}

impl IdError {
    /// Reads an ID that is the scheme and the number of something, such as `digitalocean://7` and a droplet. Only its one
    /// spelling counts, so that an ID and its text are the same thing.
    pub fn number(id: &ProviderId, scheme: &str, noun: &str) -> Result<u64, Self> {
        let text = id.as_str();
        if id.scheme() != Some(scheme) {
            let why = format!("{text:?} does not begin with `{scheme}://`");
            return Err(Self::Foreign(why));
        }
        let digits = id.rest();
        let is_one = |number: &u64| *number > 0 && number.to_string() == digits;
        digits.parse().ok().filter(is_one).ok_or_else(|| {
            let why = format!("{text:?}: expected `{scheme}://` and the number of {noun}");
            Self::Malformed(why)
        })
    }

    /// What an ID that was read like this is to a provider.
    pub fn recognition<T>(read: Result<T, Self>) -> Recognition {
        match read {
            Ok(_) => Recognition::Ours,
            Err(Self::Foreign(_)) => Recognition::Foreign,
            Err(Self::Malformed(why)) => Recognition::Malformed { why },
            Err(Self::OtherAccount(why)) => Recognition::OtherAccount { why },
        }
    }
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Foreign(why) | Self::Malformed(why) | Self::OtherAccount(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for IdError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_of_a_number_is_an_id() {
        let read = |text: &str| IdError::number(&text.parse().unwrap(), "x", "a machine");
        assert_eq!(read("x://7"), Ok(7));
        assert!(matches!(read("y://7"), Err(IdError::Foreign(_))));
        for text in ["x://", "x://07", "x://0", "x://+7", "x://seven", "x://7/8"] {
            assert!(matches!(read(text), Err(IdError::Malformed(_))), "{text}");
        }
    }
}
