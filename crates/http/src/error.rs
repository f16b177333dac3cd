//! Maps a cloud's errors to kinds that say what to do.

mod failure;

use cloudkeel_api::ErrorKind;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

pub use self::failure::{CallFailure, TransportError, TransportErrorKind};

/// The meaning of a cloud's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiProblem {
    /// By meaning. The wait of [`ErrorKind::Throttled`] is filled in from `Retry-After`.
    pub kind: ErrorKind,
    /// The vendor's own code, such as `resource_locked`.
    pub code: Option<String>,
    /// The vendor's message.
    pub message: Option<String>,
    /// The vendor's ID of the request, if it is in the body. One in a header takes precedence.
    pub request_id: Option<String>,
    /// Whether the client itself should retry.
    pub retry_hint: RetryHint,
}

/// Whether the client retries a failed request on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RetryHint {
    /// As the kind of error and the method imply.
    #[default]
    ByKind,
    /// Yes, for every method: the cloud did nothing and said so.
    Safe,
    /// No.
    Never,
}

impl ApiProblem {
    /// An error of this kind, without code and message.
    pub const fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            code: None,
            message: None,
            request_id: None,
            retry_hint: RetryHint::ByKind,
        }
    }

    /// A response without the cloud's own error is classified by its status, except for 404: that may come from a
    /// proxy, or from a wrong base URL. It must never be taken for "there is no such instance".
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

/// One cloud's table from errors to meanings: the vendor's code first, then the status, never the message.
pub trait ErrorMap: Send + Sync {
    /// The meaning of a response that was not accepted.
    fn classify(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ApiProblem;

    /// The error in a response whose status is 2xx; `None`, as from most clouds, if it is a success.
    ///
    /// It is called for every successful response, so it should be fast.
    fn classify_success(&self, _headers: &HeaderMap, _body: &[u8]) -> Option<ApiProblem> {
        None
    }
}

/// The meaning of a status alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusMap;

impl StatusMap {
    /// The meaning of a status without a vendor code.
    pub const fn kind_of(status: StatusCode) -> ErrorKind {
        match status.as_u16() {
            // A moved endpoint (3xx) is a setting that an operator has to correct.
            300..=400 | 405 | 406 | 411 | 413..=415 | 422 => ErrorKind::Invalid,
            401 => ErrorKind::Unauthenticated,
            402 => ErrorKind::LimitExceeded,
            403 => ErrorKind::Denied,
            // Not 410: clouds return it for a retired endpoint, which proves nothing about a resource.
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

/// A cloud's own error in a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The vendor's code.
    pub code: Option<String>,
    /// The vendor's message.
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
///     .on("resource_locked locked", ErrorKind::Busy)
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
///
/// Where one code means several things, words of the message tell them apart:
///
/// ```
/// # use cloudkeel_api::ErrorKind;
/// # use cloudkeel_http::{CodeTable, ErrorMap as _};
/// let table = CodeTable::new("/id", "/message")
///     .request_id("/request_id")
///     .worded("forbidden", &["exceed", "limit"], ErrorKind::LimitExceeded)
///     .on("forbidden", ErrorKind::Denied);
/// let exceeded = br#"{"id": "forbidden", "message": "this would exceed your limit", "request_id": "7"}"#;
/// let problem = table.classify(http::StatusCode::FORBIDDEN, &http::HeaderMap::new(), exceeded);
/// assert_eq!((problem.kind, problem.request_id.as_deref()), (ErrorKind::LimitExceeded, Some("7")));
/// ```
#[derive(Debug, Clone)]
pub struct CodeTable {
    place: Place,
    in_success: Option<ReadRefusal>,
    rows: Vec<(&'static str, ErrorKind, RetryHint)>,
    /// Codes that mean something else with all of these words in the message.
    worded: Vec<(&'static str, &'static [&'static str], ErrorKind)>,
    /// Codes that say that a thing does not exist only together with a 404.
    with_404: Vec<&'static str>,
}

type ReadRefusal = fn(&[u8]) -> Option<Refusal>;

/// Where the error is in a body.
#[derive(Debug, Clone, Copy)]
enum Place {
    Json {
        code: &'static str,
        message: &'static str,
        request_id: Option<&'static str>,
    },
    FoundBy(ReadRefusal),
}

impl Place {
    fn read(self, body: &[u8]) -> Option<Refusal> {
        match self {
            Self::Json {
                code,
                message,
                request_id,
            } => {
                let body: Value = serde_json::from_slice(body).ok()?;
                Some(Refusal {
                    code: body.pointer(code).and_then(plain),
                    message: body.pointer(message).and_then(plain),
                    request_id: request_id.and_then(|it| body.pointer(it)).and_then(plain),
                })
            }
            Self::FoundBy(read) => read(body),
        }
    }
}

impl CodeTable {
    /// Finds code and message by these JSON pointers.
    pub const fn new(code: &'static str, message: &'static str) -> Self {
        Self::at(Place::Json {
            code,
            message,
            request_id: None,
        })
    }

    /// Finds the ID of the request by this JSON pointer, where a refusal has it in its body.
    #[must_use]
    pub const fn request_id(mut self, pointer: &'static str) -> Self {
        if let Place::Json { request_id, .. } = &mut self.place {
            *request_id = Some(pointer);
        }
        self
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
            worded: Vec::new(),
            with_404: Vec::new(),
        }
    }

    /// Looks for an error in successful responses too, with this function; `None` is a response without one.
    #[must_use]
    pub const fn in_success(mut self, read: fn(&[u8]) -> Option<Refusal>) -> Self {
        self.in_success = Some(read);
        self
    }

    /// A code and what it means, or several with spaces between them.
    #[must_use]
    pub fn on(self, codes: &'static str, kind: ErrorKind) -> Self {
        let codes = codes.split_whitespace();
        codes.fold(self, |it, code| it.row(code, kind, RetryHint::ByKind))
    }

    /// Codes that mean the same.
    #[must_use]
    pub fn all(self, codes: &[&'static str], kind: ErrorKind) -> Self {
        codes.iter().fold(self, |table, code| table.on(code, kind))
    }

    /// A code that means this if its message has all of these words, for clouds that have one code for several things. With
    /// other words the code counts by itself.
    #[must_use]
    pub fn worded(
        mut self,
        code: &'static str,
        words: &'static [&'static str],
        kind: ErrorKind,
    ) -> Self {
        self.worded.push((code, words, kind));
        self
    }

    /// A code that says that a thing does not exist, but only with a 404: any other status decides by itself.
    #[must_use]
    pub fn not_found(mut self, code: &'static str) -> Self {
        self.with_404.push(code);
        // Not split at spaces: Barbican's has one.
        self.row(code, ErrorKind::NotFound, RetryHint::ByKind)
    }

    /// What a code means by itself, such as that of a job that failed.
    pub fn kind(&self, code: &str) -> Option<ErrorKind> {
        let row = self.rows.iter().find(|(row, ..)| *row == code);
        row.map(|(_, kind, _)| *kind)
    }

    /// A code, what it means and whether the client retries.
    #[must_use]
    pub fn row(mut self, code: &'static str, kind: ErrorKind, retry_hint: RetryHint) -> Self {
        self.rows.push((code, kind, retry_hint));
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
        let message = refusal.message.as_deref().unwrap_or_default();
        let has = |words: &[&str]| words.iter().all(|word| message.contains(word));
        let mut worded = self.worded.iter();
        if let Some((.., kind)) = worded.find(|(row, words, _)| *row == code && has(words)) {
            return ApiProblem {
                kind: *kind,
                code: Some(code),
                message: refusal.message,
                request_id: refusal.request_id,
                retry_hint: RetryHint::ByKind,
            };
        }
        let counts = |row: &str| status == StatusCode::NOT_FOUND || !self.with_404.contains(&row);
        let mut rows = self.rows.iter();
        let listed = rows.find(|(row, ..)| *row == code && counts(row));
        let (kind, retry_hint, message) = match listed {
            Some((_, kind, retry_hint)) => (*kind, *retry_hint, refusal.message),
            None if status == StatusCode::NOT_FOUND => {
                let message = format!(
                    "a 404 with the unknown code {code:?} does not prove that the resource is gone"
                );
                (ErrorKind::Malformed, RetryHint::ByKind, Some(message))
            }
            None => (
                StatusMap::kind_of(status),
                RetryHint::ByKind,
                refusal.message,
            ),
        };
        ApiProblem {
            kind,
            code: Some(code),
            message,
            request_id: refusal.request_id,
            retry_hint,
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

#[cfg(test)]
mod tests;
