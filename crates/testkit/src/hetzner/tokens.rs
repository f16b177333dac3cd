//! Who calls, and for which project.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::operation::Operation;
use super::refusal::Refusal;
use crate::simulated_cloud::{Grant, Permission};

#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<String, Grant>);

impl Tokens {
    pub(super) fn set(&mut self, token: String, grant: Grant) {
        self.0.insert(token, grant);
    }

    pub(super) fn revoke(&mut self, token: &str) {
        self.0.remove(token);
    }

    /// Authenticates and authorises a call: the project that it is for.
    pub(super) fn admit(&self, token: &str, operation: Operation) -> Result<&str, Refusal> {
        let Some(grant) = self.0.get(token) else {
            let message = "unable to authenticate";
            return Err(Refusal::new("unauthorized", message));
        };
        match grant.permission {
            Permission::Nothing => Err(Refusal::new(
                "forbidden",
                "insufficient permissions for this request",
            )),
            Permission::ReadOnly if operation.is_mutating() => Err(Refusal::new(
                "token_readonly",
                "token is only allowed to perform GET requests",
            )),
            _ => Ok(&grant.project),
        }
    }
}

/// The bearer token that a request carries; empty if it carries none.
pub(super) fn token_of(headers: &HeaderMap) -> &str {
    authorization(headers, "Bearer ").unwrap_or_default()
}

/// The user and the password that a request carries.
pub(super) fn login_of(headers: &HeaderMap) -> Option<(String, String)> {
    let decoded = STANDARD.decode(authorization(headers, "Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn authorization<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix(scheme)
}
