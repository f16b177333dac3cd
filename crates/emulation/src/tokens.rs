//! Who calls, and for which project.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Everything.
    ReadWrite,
    /// Look only.
    ReadOnly,
    /// Nothing at all.
    Nothing,
}

/// What a token is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The project that it belongs to.
    pub project: String,
    /// What it may do there.
    pub permission: Permission,
}

/// Why a token does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It is missing or unknown.
    Unknown,
    /// It may do nothing at all.
    Forbidden,
    /// It may look only.
    ReadOnly,
}

/// The tokens of a cloud.
#[derive(Debug, Default)]
pub struct Tokens(BTreeMap<String, Grant>);

impl Tokens {
    /// Makes a token good for a project, and for no other.
    pub fn set(&mut self, token: &str, project: &str, permission: Permission) {
        let grant = Grant {
            project: project.to_owned(),
            permission,
        };
        self.0.insert(token.to_owned(), grant);
    }

    /// Makes a token worthless.
    pub fn revoke(&mut self, token: &str) {
        self.0.remove(token);
    }

    /// The project of a call with this token, if it may be made.
    pub fn admit(&self, token: &str, is_mutating: bool) -> Result<&str, Denied> {
        let grant = self.0.get(token).ok_or(Denied::Unknown)?;
        match grant.permission {
            Permission::Nothing => Err(Denied::Forbidden),
            Permission::ReadOnly if is_mutating => Err(Denied::ReadOnly),
            Permission::ReadOnly | Permission::ReadWrite => Ok(&grant.project),
        }
    }
}

/// The bearer token that a request carries; empty if it carries none.
pub fn bearer_of(headers: &HeaderMap) -> &str {
    let value = headers.get(AUTHORIZATION);
    let text = value.and_then(|value| value.to_str().ok());
    text.and_then(|text| text.strip_prefix("Bearer "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lets_in_as_far_as_it_goes() {
        let mut tokens = Tokens::default();
        tokens.set("writes", "p", Permission::ReadWrite);
        tokens.set("reads", "p", Permission::ReadOnly);
        tokens.set("useless", "p", Permission::Nothing);
        tokens.set("moved", "p", Permission::ReadWrite);
        tokens.set("moved", "q", Permission::ReadWrite);
        for (token, is_mutating, expected) in [
            ("writes", true, Ok("p")),
            ("reads", false, Ok("p")),
            ("reads", true, Err(Denied::ReadOnly)),
            ("useless", false, Err(Denied::Forbidden)),
            ("moved", false, Ok("q")),
            ("", false, Err(Denied::Unknown)),
        ] {
            assert_eq!(tokens.admit(token, is_mutating), expected, "{token}");
        }
        tokens.revoke("writes");
        assert_eq!(tokens.admit("writes", false), Err(Denied::Unknown));
    }
}
