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
    /// The vendor's ID of the request, if it stands in the body. One in a header comes first.
    pub request_id: Option<String>,
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
            request_id: None,
            again: Again::ByKind,
        }
    }

    /// An answer that does not hold the cloud's own error goes by its status, but for 404: that may come
    /// from a proxy, or be about a wrong base URL. It must never pass for "there is no such instance".
    pub fn foreign(status: StatusCode) -> Self {
        if status != StatusCode::NOT_FOUND {
            return Self::new(StatusMap::kind_of(status));
        }
        Self {
            message: Some("this 404 does not come from the cloud's API".to_owned()),
            ..Self::new(ErrorKind::Malformed)
        }
    }
}

/// One cloud's table from refusals to meanings: the vendor's code first, then the status, never the
/// text.
pub trait ErrorMap: Send + Sync {
    /// What an answer that was not accepted means.
    fn classify(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ApiProblem;

    /// The error in an answer whose status is 2xx; `None`, as from most clouds, if it is a good one.
    ///
    /// It sees every good answer, so it should know a good one at a glance.
    fn classify_success(&self, _headers: &HeaderMap, _body: &[u8]) -> Option<ApiProblem> {
        None
    }
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

/// A cloud's own error as it stands in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The vendor's code.
    pub code: Option<String>,
    /// The vendor's sentence for people.
    pub message: Option<String>,
    /// The vendor's ID of the request.
    pub request_id: Option<String>,
}

/// A table from a cloud's codes to meanings. A code counts only as a whole.
///
/// A code that is not in the table goes by its status, but for 404: only a listed code says that a thing
/// does not exist. Any other 404 may come from a proxy, or be about a wrong base URL, path or project. It
/// is [`ErrorKind::Malformed`], so that it can never pass for "there is no such machine".
///
/// Codes in JSON are found by their place:
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
///
/// Elsewhere, such as in XML, a function of the provider finds them. Where a login has ended, the kind is
/// [`ErrorKind::Unauthenticated`], whatever the status: it leads to a new one.
///
/// ```
/// # use cloudkeel_http::{CodeTable, ErrorMap, Refusal};
/// # use cloudkeel_api::ErrorKind;
/// fn read(body: &[u8]) -> Option<Refusal> {
///     let text = std::str::from_utf8(body).ok()?; // a real one uses a library
///     let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
///     Some(Refusal { code: Some(code.to_owned()), ..Refusal::default() })
/// }
/// let ec2 = CodeTable::read_by(read)
///     .on("InvalidInstanceID.NotFound", ErrorKind::NotFound)
///     .on("InvalidInstanceID.Malformed", ErrorKind::Invalid)
///     .on("ExpiredToken", ErrorKind::Unauthenticated);
/// let body = b"<Response><Errors><Error><Code>ExpiredToken</Code></Error></Errors></Response>";
/// let problem = ec2.classify(http::StatusCode::BAD_REQUEST, &http::HeaderMap::new(), body);
/// assert_eq!(problem.kind, ErrorKind::Unauthenticated);
/// ```
#[derive(Debug, Clone)]
pub struct CodeTable {
    place: Place,
    in_success: Option<ReadRefusal>,
    rows: Vec<(&'static str, ErrorKind, Again)>,
}

type ReadRefusal = fn(&[u8]) -> Option<Refusal>;

/// Where a refusal stands in a body.
#[derive(Debug, Clone, Copy)]
enum Place {
    Json {
        code: &'static str,
        message: &'static str,
    },
    FoundBy(ReadRefusal),
}

impl Place {
    fn read(self, body: &[u8]) -> Option<Refusal> {
        match self {
            Self::Json { code, message } => {
                let body: Value = serde_json::from_slice(body).ok()?;
                Some(Refusal {
                    code: body.pointer(code).and_then(plain),
                    message: body.pointer(message).and_then(plain),
                    request_id: None,
                })
            }
            Self::FoundBy(read) => read(body),
        }
    }
}

impl CodeTable {
    /// Finds code and text by these JSON pointers.
    pub const fn new(code: &'static str, message: &'static str) -> Self {
        Self::at(Place::Json { code, message })
    }

    /// Finds them with this function; `None` is a body that is not the cloud's.
    pub const fn read_by(read: fn(&[u8]) -> Option<Refusal>) -> Self {
        Self::at(Place::FoundBy(read))
    }

    const fn at(place: Place) -> Self {
        Self {
            place,
            in_success: None,
            rows: Vec::new(),
        }
    }

    /// Looks for an error in good answers too, with this function; `None` is an answer without one.
    #[must_use]
    pub const fn in_success(mut self, read: fn(&[u8]) -> Option<Refusal>) -> Self {
        self.in_success = Some(read);
        self
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

    fn problem(&self, status: StatusCode, refusal: Refusal) -> ApiProblem {
        let Some(code) = refusal.code else {
            let problem = ApiProblem::foreign(status);
            return ApiProblem {
                message: problem.message.or(refusal.message),
                request_id: refusal.request_id,
                ..problem
            };
        };
        let listed = self.rows.iter().find(|(row, ..)| *row == code);
        let (kind, again, message) = match listed {
            Some((_, kind, again)) => (*kind, *again, refusal.message),
            None if status == StatusCode::NOT_FOUND => {
                let message = format!("a 404 with the code {code:?} can mean anything");
                (ErrorKind::Malformed, Again::ByKind, Some(message))
            }
            None => (StatusMap::kind_of(status), Again::ByKind, refusal.message),
        };
        ApiProblem {
            kind,
            code: Some(code),
            message,
            request_id: refusal.request_id,
            again,
        }
    }
}

impl ErrorMap for CodeTable {
    fn classify(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> ApiProblem {
        match self.place.read(body) {
            Some(refusal) => self.problem(status, refusal),
            None => ApiProblem::foreign(status),
        }
    }

    fn classify_success(&self, _headers: &HeaderMap, body: &[u8]) -> Option<ApiProblem> {
        let refusal = self.in_success?(body)?;
        Some(self.problem(StatusCode::OK, refusal))
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
mod tests;
