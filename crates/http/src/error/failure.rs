//! What is known of a call that failed.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{CloudError, ErrorKind};
use http::{HeaderMap, Method, StatusCode};

/// Details about a failed call. It is in the source chain of the [`CloudError`].
pub struct CallFailure {
    /// The method of the request.
    pub method: Method,
    /// Its URL, without secrets.
    pub url: String,
    /// The status of the last answer, if there was one.
    pub status: Option<StatusCode>,
    /// The vendor's code in it.
    pub code: Option<String>,
    /// The body of the last response, for a provider that needs more than the code; empty if it is too long. Never
    /// printed.
    pub body: Bytes,
    /// The headers of the last response, such as the remaining rate limit. Never printed.
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

/// Why there was no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection: nothing was sent, so every request may be retried.
    Unsent,
    /// The other side's certificate, or ours, was not accepted. An operator has to correct it.
    Untrusted,
    /// The connection broke with the request under way: whether it took effect is unknown.
    Broken,
    /// No complete response in time.
    TimedOut,
    /// The response is larger than the client accepts.
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
    /// A failure with a message for people.
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

    /// Why there was no response.
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
