//! From a cloud's refusal to an error that says what to do.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{CloudError, ErrorKind};
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

/// What a cloud's refusal means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiProblem {
    /// By meaning. The wait of [`ErrorKind::Throttled`] is filled in from `Retry-After`.
    pub kind: ErrorKind,
    /// The vendor's own code, such as `resource_locked`.
    pub code: Option<String>,
    /// The vendor's sentence for people.
    pub message: Option<String>,
    /// Whether the engine itself should try again.
    pub again: Again,
}

/// Whether the engine repeats a refused request on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Again {
    /// As the kind of error and the method imply.
    #[default]
    ByKind,
    /// Yes, for every method: the cloud did nothing and said so.
    Safe,
    /// No.
    Never,
}

impl ApiProblem {
    /// A refusal of this kind, without code and text.
    pub const fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            code: None,
            message: None,
            again: Again::ByKind,
        }
    }
}

/// One cloud's table from refusals to meanings: the vendor's code first, then the status, never the
/// text.
pub trait ErrorMap: Send + Sync {
    /// What an answer that was not accepted means.
    fn classify(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ApiProblem;
}

/// The meaning of a status alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusMap;

impl StatusMap {
    /// What this status means where the vendor's code says nothing more.
    pub const fn kind_of(status: StatusCode) -> ErrorKind {
        match status.as_u16() {
            // A moved endpoint (3xx) is a setting that a person has to mend.
            300..=400 | 405 | 406 | 411 | 413..=415 | 422 => ErrorKind::Invalid,
            401 => ErrorKind::Unauthenticated,
            402 => ErrorKind::LimitExceeded,
            403 => ErrorKind::Denied,
            // Not 410: clouds answer it for a retired endpoint, which proves nothing about a resource.
            404 => ErrorKind::NotFound,
            408 | 504 => ErrorKind::Timeout,
            409 | 412 => ErrorKind::Conflict,
            423 => ErrorKind::Busy,
            429 => ErrorKind::Throttled { retry_after: None },
            501 => ErrorKind::Unsupported,
            500..=599 => ErrorKind::Unavailable,
            _ => ErrorKind::Other,
        }
    }
}

impl ErrorMap for StatusMap {
    fn classify(&self, status: StatusCode, _headers: &HeaderMap, _body: &[u8]) -> ApiProblem {
        ApiProblem::new(Self::kind_of(status))
    }
}

/// A table for clouds whose refusals are JSON with a code and a text at fixed places.
///
/// A code that is not in the table goes by its status, but for 404: only a listed code says that a thing
/// does not exist. Any other 404 may come from a proxy, or be about a wrong base URL, path or project. It
/// is [`ErrorKind::Malformed`], so that it can never pass for "there is no such machine".
///
/// ```
/// # use cloudkeel_http::{CodeTable, ErrorMap};
/// # use cloudkeel_api::ErrorKind;
/// let hetzner = CodeTable::new("/error/code", "/error/message")
///     .on("not_found", ErrorKind::NotFound)
///     .on("locked", ErrorKind::Busy)
///     .on("uniqueness_error", ErrorKind::AlreadyExists);
/// let body = br#"{"error":{"code":"locked","message":"server is locked"}}"#;
/// let problem = hetzner.classify(http::StatusCode::CONFLICT, &http::HeaderMap::new(), body);
/// assert_eq!(problem.kind, ErrorKind::Busy);
/// ```
#[derive(Debug, Clone)]
pub struct CodeTable {
    code: &'static str,
    message: &'static str,
    rows: Vec<(&'static str, ErrorKind, Again)>,
}

impl CodeTable {
    /// Finds code and text by these JSON pointers.
    pub const fn new(code: &'static str, message: &'static str) -> Self {
        Self {
            code,
            message,
            rows: Vec::new(),
        }
    }

    /// A code and what it means.
    #[must_use]
    pub fn on(self, code: &'static str, kind: ErrorKind) -> Self {
        self.row(code, kind, Again::ByKind)
    }

    /// A code, what it means and whether the engine tries again.
    #[must_use]
    pub fn row(mut self, code: &'static str, kind: ErrorKind, again: Again) -> Self {
        self.rows.push((code, kind, again));
        self
    }
}

impl ErrorMap for CodeTable {
    fn classify(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> ApiProblem {
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        let mut problem = ApiProblem::new(StatusMap::kind_of(status));
        problem.code = body.pointer(self.code).and_then(plain);
        problem.message = body.pointer(self.message).and_then(plain);
        let code = problem.code.as_deref();
        if let Some((_, kind, again)) = self.rows.iter().find(|(row, ..)| Some(*row) == code) {
            problem.kind = *kind;
            problem.again = *again;
        } else if status == StatusCode::NOT_FOUND {
            problem.kind = ErrorKind::Malformed;
            problem.message = Some(match code {
                None => "this 404 does not come from the cloud's API".to_owned(),
                Some(code) => format!("a 404 with the code {code:?} can mean anything"),
            });
        }
        problem
    }
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What is known about a call that failed. It is in the source chain of the [`CloudError`].
pub struct CallFailure {
    /// The method of the request.
    pub method: Method,
    /// Its URL, without secrets.
    pub url: String,
    /// The status of the last answer, if there was one.
    pub status: Option<StatusCode>,
    /// The vendor's code in it.
    pub code: Option<String>,
    /// The body of the last answer, for a provider that needs more than the code; empty if it is absurdly
    /// long. Never printed.
    pub body: Bytes,
    /// The headers of the last answer, such as what is left of a rate limit. Never printed.
    pub headers: HeaderMap,
    /// How often it was sent.
    pub attempts: u32,
    /// From the first attempt to giving up.
    pub elapsed: Duration,
    pub(crate) cause: Option<TransportError>,
}

impl CallFailure {
    /// What the cloud answered, such as `HTTP 403 forbidden`, if it did.
    pub(crate) fn answer(&self) -> Option<String> {
        let status = self.status?.as_u16();
        Some(match &self.code {
            Some(code) => format!("HTTP {status} {code}"),
            None => format!("HTTP {status}"),
        })
    }

    /// The failed call behind an error of the engine.
    pub fn of(error: &CloudError) -> Option<&Self> {
        let mut source = error.source();
        while let Some(error) = source {
            if let Some(failure) = error.downcast_ref() {
                return Some(failure);
            }
            source = error.source();
        }
        None
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url)?;
        let times = if self.attempts == 1 { "" } else { "s" };
        write!(f, ", {} attempt{times}", self.attempts)?;
        write!(f, " in {:.1}s", self.elapsed.as_secs_f64())
    }
}

impl fmt::Debug for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallFailure({self})")
    }
}

impl StdError for CallFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause
            .as_ref()
            .map(|cause| cause as &(dyn StdError + 'static))
    }
}

/// Why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection: nothing was sent, so every request may be repeated.
    Unsent,
    /// The other side's certificate, or ours, was not accepted. A person has to mend it.
    Untrusted,
    /// The connection broke with the request under way: nobody knows what became of it.
    Broken,
    /// No complete answer in time.
    TimedOut,
    /// The answer is bigger than the client is ready to read.
    TooLarge,
}

/// A failure below HTTP.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    kind: TransportErrorKind,
    message: String,
    #[source]
    source: Option<cloudkeel_api::Source>,
}

impl TransportError {
    /// A failure with a sentence for people.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<cloudkeel_api::Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why there was no answer.
    pub const fn kind(&self) -> TransportErrorKind {
        self.kind
    }

    pub(crate) const fn meaning(&self) -> ErrorKind {
        match self.kind {
            TransportErrorKind::Unsent | TransportErrorKind::Broken => ErrorKind::Unavailable,
            TransportErrorKind::Untrusted => ErrorKind::Invalid,
            TransportErrorKind::TimedOut => ErrorKind::Timeout,
            TransportErrorKind::TooLarge => ErrorKind::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_meaning() {
        for (status, kind) in [
            (301, ErrorKind::Invalid),
            (400, ErrorKind::Invalid),
            (401, ErrorKind::Unauthenticated),
            (403, ErrorKind::Denied),
            (404, ErrorKind::NotFound),
            (408, ErrorKind::Timeout),
            (409, ErrorKind::Conflict),
            (410, ErrorKind::Other),
            (412, ErrorKind::Conflict),
            (418, ErrorKind::Other),
            (422, ErrorKind::Invalid),
            (423, ErrorKind::Busy),
            (429, ErrorKind::Throttled { retry_after: None }),
            (500, ErrorKind::Unavailable),
            (501, ErrorKind::Unsupported),
            (502, ErrorKind::Unavailable),
            (503, ErrorKind::Unavailable),
            (504, ErrorKind::Timeout),
            (599, ErrorKind::Unavailable),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(StatusMap::kind_of(status), kind, "{status}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn the_vendors_code_comes_before_the_status() {
        let table = CodeTable::new("/error/code", "/error/message")
            .on("not_found", ErrorKind::NotFound)
            .on("locked", ErrorKind::Busy)
            .row("conflict", ErrorKind::Conflict, Again::Safe);
        for (case, status, body, kind, code, again) in [
            (
                "known code",
                422,
                r#"{"error":{"code":"locked","message":"m"}}"#,
                ErrorKind::Busy,
                Some("locked"),
                Again::ByKind,
            ),
            (
                "code with advice",
                409,
                r#"{"error":{"code":"conflict"}}"#,
                ErrorKind::Conflict,
                Some("conflict"),
                Again::Safe,
            ),
            (
                "no such thing",
                404,
                r#"{"error":{"code":"not_found"}}"#,
                ErrorKind::NotFound,
                Some("not_found"),
                Again::ByKind,
            ),
            (
                "no such path",
                404,
                r#"{"error":{"code":"unknown_path"}}"#,
                ErrorKind::Malformed,
                Some("unknown_path"),
                Again::ByKind,
            ),
            (
                "unknown code",
                409,
                r#"{"error":{"code":"odd"}}"#,
                ErrorKind::Conflict,
                Some("odd"),
                Again::ByKind,
            ),
            (
                "number as code",
                403,
                r#"{"error":{"code":12}}"#,
                ErrorKind::Denied,
                Some("12"),
                Again::ByKind,
            ),
            (
                "no JSON",
                503,
                "<html>locked</html>",
                ErrorKind::Unavailable,
                None,
                Again::ByKind,
            ),
            (
                "a proxy's 404",
                404,
                "<html>not_found</html>",
                ErrorKind::Malformed,
                None,
                Again::ByKind,
            ),
            (
                "other shape",
                503,
                r#"["locked"]"#,
                ErrorKind::Unavailable,
                None,
                Again::ByKind,
            ),
            (
                "code only in the text",
                400,
                r#"{"error":{"message":"locked"}}"#,
                ErrorKind::Invalid,
                None,
                Again::ByKind,
            ),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let problem = table.classify(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!(problem.kind, kind, "{case}");
            assert_eq!(problem.code.as_deref(), code, "{case}");
            assert_eq!(problem.again, again, "{case}");
        }
    }
}
