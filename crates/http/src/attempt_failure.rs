//! Why one attempt failed.

use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::ErrorKind;
use http::{HeaderMap, StatusCode};

use crate::error::{ApiProblem, RetryHint, TransportError, TransportErrorKind};
use crate::redact::{Redactor, excerpt};
use crate::response::Response;
use crate::sent_secrets::SentSecrets;

/// How much of a vendor's message an error quotes.
pub(crate) const MESSAGE_CHARS: usize = 500;

/// Shorter waits are ignored: servers send 0, or a date that has passed by our clock, and would be called without
/// any pause.
const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Why an attempt failed.
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) retry_hint: RetryHint,
    pub(crate) unsent: bool,
    pub(crate) message: String,
    pub(crate) status: Option<StatusCode>,
    pub(crate) code: Option<String>,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) url: String,
    pub(crate) cause: Option<TransportError>,
}

impl Failure {
    /// The response is an error, or contains one.
    pub(crate) fn answered(
        problem: &ApiProblem,
        response: &Response,
        body: Bytes,
        url: &str,
    ) -> Self {
        let (status, redactor) = (response.status, &response.redactor);
        let retry_after = response.retry_after();
        let retry_after = retry_after.filter(|wait| *wait >= MIN_RETRY_AFTER);
        let kind = match problem.kind {
            ErrorKind::Throttled { retry_after: None } => ErrorKind::Throttled { retry_after },
            kind => kind,
        };
        let show = |text: &str| redactor.foreign(text, &response.sent_secrets, MESSAGE_CHARS);
        let message = match (&problem.message, response.header("location")) {
            (Some(message), _) => show(message),
            (None, Some(place)) if status.is_redirection() => {
                let place = response.sent_secrets.without(redactor.url(place));
                let place = excerpt(&place, MESSAGE_CHARS);
                format!("the API has moved to {place}; set its address to that")
            }
            (None, _) if status.is_success() => "the answer holds an error".to_owned(),
            (None, _) => status.canonical_reason().unwrap_or("refused").to_owned(),
        };
        let request_id = response.request_id.clone();
        Self {
            kind,
            retry_hint: problem.retry_hint,
            unsent: false,
            message,
            status: Some(status),
            code: problem.code.as_deref().map(show),
            body,
            headers: response.headers.clone(),
            request_id: request_id.or_else(|| problem.request_id.as_deref().map(show)),
            retry_after,
            url: url.to_owned(),
            cause: None,
        }
    }

    /// There was no response.
    pub(crate) fn unanswered(
        error: TransportError,
        url: &str,
        sent_secrets: &SentSecrets,
        redactor: &Redactor,
    ) -> Self {
        Self {
            kind: error.meaning(),
            retry_hint: RetryHint::ByKind,
            unsent: error.kind() == TransportErrorKind::Unsent,
            message: sent_secrets.without(redactor.text(&error.to_string())),
            status: None,
            code: None,
            body: Bytes::new(),
            headers: HeaderMap::new(),
            request_id: None,
            retry_after: None,
            url: url.to_owned(),
            cause: Some(error),
        }
    }

    /// Whether the cloud certainly did nothing: it said so, or never got the request.
    pub(crate) fn is_refusal(&self) -> bool {
        let is_said = |status: StatusCode| {
            (status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT)
                // A SOAP fault always has status 500, and so have others: their code counts.
                || (status.is_server_error() && self.code.is_some() && says_no(self.kind))
        };
        self.unsent || self.retry_hint == RetryHint::Safe || self.status.is_some_and(is_said)
    }
}

/// Whether an error of this kind means that the cloud has not started the operation.
const fn says_no(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::Busy
            | ErrorKind::Throttled { .. }
            | ErrorKind::Unauthenticated
            | ErrorKind::Denied
            | ErrorKind::Invalid
            | ErrorKind::LimitExceeded
    )
}
