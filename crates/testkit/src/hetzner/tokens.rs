//! Who calls.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudkeel_emulation::Denied;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::refusal::Refusal;

/// How the Cloud API turns somebody away.
pub(super) fn denial(denied: Denied) -> Refusal {
    let (code, message) = match denied {
        Denied::Unknown => ("unauthorized", "unable to authenticate"),
        Denied::Forbidden => ("forbidden", "insufficient permissions for this request"),
        Denied::ReadOnly => (
            "token_readonly",
            "token is only allowed to perform GET requests",
        ),
    };
    Refusal::new(code, message)
}

/// The user and the password that a request carries.
pub(super) fn login_of(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let decoded = STANDARD.decode(value.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
