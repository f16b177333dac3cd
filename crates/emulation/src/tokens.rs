//! Who calls, and for which project: tokens, logins, and the sessions that a login begins.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Everything.
    ReadWrite,
    /// Read only.
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
    /// It may read only.
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

/// Users with passwords, and the sessions that they began.
#[derive(Debug, Default)]
pub struct Logins {
    passwords: BTreeMap<String, String>,
    sessions: BTreeMap<String, (String, Option<Instant>)>,
    begun: u64,
}

impl Logins {
    /// Sets the password of a user.
    pub fn set(&mut self, user: &str, password: &str) {
        self.passwords.insert(user.to_owned(), password.to_owned());
    }

    /// Whether this is the password of the user.
    pub fn accepts(&self, user: &str, password: &str) -> bool {
        self.passwords
            .get(user)
            .is_some_and(|known| known == password)
    }

    /// Begins a session of a user, until this moment or for ever. The token follows from a counter.
    pub fn begin_session(&mut self, user: &str, until: Option<Instant>) -> String {
        self.begun += 1;
        let token = format!("session-{:06}", self.begun);
        self.sessions
            .insert(token.clone(), (user.to_owned(), until));
        token
    }

    /// Ends a session, as a logout or an outage of the login service does.
    pub fn end_session(&mut self, token: &str) {
        self.sessions.remove(token);
    }

    /// The user of a session that has not ended.
    pub fn user_of(&self, token: &str, now: Instant) -> Option<&str> {
        let (user, until) = self.sessions.get(token)?;
        until.is_none_or(|until| now < until).then_some(user)
    }
}

/// The user and the password of HTTP basic authentication.
pub fn basic_of(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let decoded = STANDARD.decode(value.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
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

    #[test]
    fn a_login_begins_a_session_that_ends() {
        let now = Instant::now();
        let mut logins = Logins::default();
        logins.set("user", "secret");
        assert!(logins.accepts("user", "secret"));
        assert!(!logins.accepts("user", "wrong") && !logins.accepts("other", "secret"));
        let later = now + std::time::Duration::from_secs(9);
        let short = logins.begin_session("user", Some(later));
        let long = logins.begin_session("user", None);
        assert_eq!(logins.user_of(&short, now), Some("user"));
        assert_eq!(logins.user_of(&short, later), None);
        assert_eq!(logins.user_of(&long, later), Some("user"));
        logins.end_session(&long);
        assert_eq!(logins.user_of(&long, now), None);
    }

    #[test]
    fn basic_authentication_is_decoded() {
        let mut headers = HeaderMap::new();
        for (value, login) in [
            ("Basic dXNlcjpzZWNyZXQ=", Some(("user", "secret"))),
            ("Basic dXNlcg==", None),
            ("Bearer dXNlcjpzZWNyZXQ=", None),
        ] {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
            assert_eq!(basic_of(&headers), login, "{value}");
        }
    }
}
