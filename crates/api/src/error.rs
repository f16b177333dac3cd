//! One error type for every cloud. It says what the caller should do next.

mod clone;
mod combine;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Any error that a cloud's client can produce.
pub type Source = Box<dyn StdError + Send + Sync>;

/// The kind of an error. A provider maps its vendor's codes to these in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The cloud answered that the resource does not exist.
    ///
    /// Only this kind may become a [`GoneProof`](crate::GoneProof), and only for an instance that was looked up by
    /// its ID.
    NotFound,
    /// A resource of that name or address exists already.
    AlreadyExists,
    /// Another client changed it meanwhile (an `ETag` mismatch, a 409): observe and plan again.
    Conflict,
    /// It is locked or still being worked on; the same request will be accepted later.
    Busy,
    /// The cloud, or our own budget for it, asks for fewer requests.
    Throttled {
        /// The wait that the cloud asked for.
        retry_after: Option<Duration>,
    },
    /// The credential is wrong or has expired (401).
    Unauthenticated,
    /// The credential is valid but may not do this (403).
    Denied,
    /// The request, an annotation or a setting is wrong; repeating it unchanged cannot help.
    Invalid,
    /// A quota or a limit of the cloud is reached.
    LimitExceeded,
    /// The cloud is unavailable (5xx, a broken connection).
    Unavailable,
    /// No response in time. A mutating request may or may not have taken effect.
    Timeout,
    /// The response could not be parsed.
    Malformed,
    /// The response is incomplete: fewer items than reported, an unreachable endpoint.
    Incomplete,
    /// The resource belongs to another owner, so it is not changed.
    NotOurs,
    /// This provider does not support the request.
    Unsupported,
    /// Another component handles this object; nothing to do and nothing to report.
    ImplementedElsewhere,
    /// The work was stopped, because the process ends or the lease was lost.
    Cancelled,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// The stable name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::Throttled { .. } => "throttled",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::LimitExceeded => "limit_exceeded",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::Incomplete => "incomplete",
            Self::NotOurs => "not_ours",
            Self::Unsupported => "unsupported",
            Self::ImplementedElsewhere => "implemented_elsewhere",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }

    /// What an operator has to do about it. `None` where it may pass by itself.
    pub const fn advice(self) -> Option<&'static str> {
        match self {
            Self::Unauthenticated => Some("check the cloud's credential"),
            Self::Denied => Some("give the cloud's credential this permission"),
            Self::LimitExceeded => Some("raise the limit in the cloud, or delete unused resources"),
            Self::Invalid | Self::NotOurs | Self::Unsupported => {
                Some("needs a change of the Service or the configuration")
            }
            _ => None,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the caller should do about an error. Only the work queue turns this into time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Try again after exactly this long; it does not count as a failure.
    After(Duration),
    /// Retry with backoff.
    Backoff,
    /// A user has to change something first: retry with the longest backoff, and report it.
    UserAction,
    /// Do not retry: there is nothing left to do.
    Never,
}

/// An error from a cloud: which operation, what kind, the cloud's own request ID, and the cause.
///
/// One pointer wide, so that `Result`s stay small on the happy path.
pub struct CloudError(Box<Inner>);

struct Inner {
    operation: Cow<'static, str>,
    kind: ErrorKind,
    message: String,
    details: Option<String>,
    request_id: Option<String>,
    source: Option<Source>,
    /// Whether it is certain that nothing was changed.
    had_no_effect: bool,
}

impl CloudError {
    /// An error of `kind` in `operation`, with a message for people.
    pub fn new(
        operation: impl Into<Cow<'static, str>>,
        kind: ErrorKind,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            operation: operation.into(),
            kind,
            message: message.into(),
            details: None,
            request_id: None,
            source: None,
            had_no_effect: false,
        }))
    }

    /// Shorthand for an error that a user must correct, such as an invalid annotation.
    pub fn invalid(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(operation, ErrorKind::Invalid, message)
    }

    /// Shorthand for a capability that this provider lacks.
    pub fn unsupported(
        operation: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(operation, ErrorKind::Unsupported, message)
    }

    /// Adds what differs from one failure to the next although the cause is the same, such as the number of
    /// attempts. It appears in logs and in `/status`, not in Events.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<String>) -> Self {
        self.0.details = Some(details.into());
        self
    }

    /// Adds the ID under which the cloud's support can find the request.
    #[must_use]
    pub fn with_request_id(mut self, request_id: impl Into<String>) -> Self {
        self.0.request_id = Some(request_id.into());
        self
    }

    /// Adds the underlying cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Marks that the cloud was certainly not changed: it rejected the request, or never got it. An error without
    /// the mark may stand for a lost response.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.0.had_no_effect = true;
        self
    }

    /// Removes that mark: something else was changed before this error.
    #[must_use]
    pub(crate) fn after_a_change(mut self) -> Self {
        self.0.had_no_effect = false;
        self
    }

    /// Whether it is certain that the cloud was not changed.
    pub fn had_no_effect(&self) -> bool {
        self.0.had_no_effect
    }

    /// The operation that failed, such as `create load balancer`.
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message for people, without operation, details, request ID and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Operation and message: the same for the same cause, so that one outage is one Event.
    pub fn cause(&self) -> String {
        format!("{}: {}", self.0.operation, self.0.message)
    }

    /// The cloud's own ID of the failed request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Whether the cloud answered that the thing does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.0.kind, ErrorKind::NotFound)
    }

    /// What the caller should do next.
    pub fn retry(&self) -> Retry {
        match self.0.kind {
            // A wait of zero would be retried and throttled without end.
            ErrorKind::Throttled {
                retry_after: Some(after),
            } if !after.is_zero() => Retry::After(after),
            ErrorKind::Unauthenticated
            | ErrorKind::Denied
            | ErrorKind::Invalid
            | ErrorKind::LimitExceeded
            | ErrorKind::NotOurs
            | ErrorKind::Unsupported => Retry::UserAction,
            ErrorKind::ImplementedElsewhere | ErrorKind::Cancelled => Retry::Never,
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Conflict
            | ErrorKind::Busy
            | ErrorKind::Throttled { .. }
            | ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::Malformed
            | ErrorKind::Incomplete
            | ErrorKind::Other => Retry::Backoff,
        }
    }
}

impl fmt::Display for CloudError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.operation, self.0.message)?;
        if let Some(details) = &self.0.details {
            write!(f, " ({details})")?;
        }
        if let ErrorKind::Throttled {
            retry_after: Some(after),
        } = self.0.kind
        {
            write!(f, " (retry after {}s)", after.as_secs_f64().ceil())?;
        }
        if let Some(request_id) = &self.0.request_id {
            write!(f, " (request {request_id})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CloudError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudError")
            .field("operation", &self.0.operation)
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .field("request_id", &self.0.request_id)
            .field("source", &self.0.source.as_ref().map(ToString::to_string))
            .finish()
    }
}

impl StdError for CloudError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_says_what_to_do() {
        let five = Duration::from_secs(5);
        for (kind, expected) in [
            (ErrorKind::NotFound, Retry::Backoff),
            (ErrorKind::AlreadyExists, Retry::Backoff),
            (ErrorKind::Conflict, Retry::Backoff),
            (ErrorKind::Busy, Retry::Backoff),
            (
                ErrorKind::Throttled {
                    retry_after: Some(five),
                },
                Retry::After(five),
            ),
            (ErrorKind::Throttled { retry_after: None }, Retry::Backoff),
            (
                ErrorKind::Throttled {
                    retry_after: Some(Duration::ZERO),
                },
                Retry::Backoff,
            ),
            (ErrorKind::Unauthenticated, Retry::UserAction),
            (ErrorKind::Denied, Retry::UserAction),
            (ErrorKind::Invalid, Retry::UserAction),
            (ErrorKind::LimitExceeded, Retry::UserAction),
            (ErrorKind::NotOurs, Retry::UserAction),
            (ErrorKind::Unsupported, Retry::UserAction),
            (ErrorKind::Unavailable, Retry::Backoff),
            (ErrorKind::Timeout, Retry::Backoff),
            (ErrorKind::Malformed, Retry::Backoff),
            (ErrorKind::Incomplete, Retry::Backoff),
            (ErrorKind::Other, Retry::Backoff),
            (ErrorKind::ImplementedElsewhere, Retry::Never),
            (ErrorKind::Cancelled, Retry::Never),
        ] {
            assert_eq!(CloudError::new("op", kind, "m").retry(), expected, "{kind}");
        }
    }

    #[test]
    fn the_text_names_operation_cause_details_wait_and_request() {
        let error = CloudError::new(
            "list servers",
            ErrorKind::Throttled {
                retry_after: Some(Duration::from_millis(2500)),
            },
            "rate limit exceeded",
        )
        .with_details("GET /servers: HTTP 429, 4 attempts in 2.0s")
        .with_request_id("abc-1");
        assert_eq!(
            error.to_string(),
            "list servers: rate limit exceeded (GET /servers: HTTP 429, 4 attempts in 2.0s) \
             (retry after 3s) (request abc-1)"
        );
        assert_eq!(error.cause(), "list servers: rate limit exceeded");
    }

    #[test]
    fn the_cause_stays_reachable() {
        let cause = std::io::Error::other("reset by peer");
        let error = CloudError::new("get", ErrorKind::Unavailable, "no answer").with_source(cause);
        let source = error.source().map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("reset by peer"));
    }
}
