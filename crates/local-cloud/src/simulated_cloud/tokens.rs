//! Who calls, and for which project.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

use super::operation::Operation;
use super::refusal::Refusal;

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

/// Somebody who showed a good token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) token: String,
    pub(super) project: String,
}

#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<String, Grant>);

impl Tokens {
    pub(super) fn set(&mut self, token: String, grant: Grant) {
        self.0.insert(token, grant);
    }

    pub(super) fn revoke(&mut self, token: &str) {
        self.0.remove(token);
    }

    /// Authenticates and authorises a call.
    pub(super) fn admit(&self, token: &str, operation: Operation) -> Result<Caller, Refusal> {
        let Some(grant) = self.0.get(token) else {
            return Err(Refusal::unauthorized("the token is missing or unknown"));
        };
        let allowed = match grant.permission {
            Permission::ReadWrite => true,
            Permission::ReadOnly => !operation.is_mutating(),
            Permission::Nothing => false,
        };
        if !allowed {
            let message = format!("this token may not {operation}");
            return Err(Refusal::forbidden(message));
        }
        Ok(Caller {
            token: token.to_owned(),
            project: grant.project.clone(),
        })
    }
}

/// The token that a request carries; empty if it carries none.
pub(super) fn token_of(headers: &HeaderMap) -> &str {
    headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.strip_prefix("Bearer "))
        .unwrap_or_default()
}
