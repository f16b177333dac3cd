//! How the cloud refuses: its codes and its words.

use std::fmt;

use cloudkeel_emulation::params::ParamError;
use cloudkeel_emulation::{Answer, RequestError};
use http::StatusCode;
use serde_json::json;

/// Why the cloud did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    status: StatusCode,
    id: &'static str,
    message: String,
}

/// Each status with its code and its words.
const WORDS: &[(u16, &str, &str)] = &[
    (400, "bad_request", "invalid request"),
    (401, "unauthorized", "Unable to authenticate you"),
    (
        403,
        "forbidden",
        "You are not authorized to perform this operation",
    ),
    (
        404,
        "not_found",
        "The resource you were accessing could not be found.",
    ),
    (405, "method_not_allowed", "the method is not allowed here"),
    (409, "conflict", "duplicate name"),
    (422, "unprocessable_entity", "the request is not valid"),
    (429, "too_many_requests", "API Rate limit exceeded."),
    (500, "server_error", "Unexpected server-side error"),
    (503, "service_unavailable", "Server is unavailable"),
];

impl Refusal {
    /// A refusal with this status, in the words that go with it.
    pub(crate) fn status(status: u16) -> Self {
        let known = WORDS.iter().find(|(known, ..)| *known == status);
        let (_, id, message) = known.unwrap_or(&(500, "server_error", "Server Error"));
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            id,
            message: (*message).to_owned(),
        }
    }

    /// The same in other words.
    pub(crate) fn saying(status: u16, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::status(status)
        }
    }

    pub(crate) fn not_found() -> Self {
        Self::status(404)
    }

    /// Something about the body makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::saying(422, message)
    }

    /// The load balancer is at work.
    pub(crate) fn busy() -> Self {
        let message = "Load Balancer can't be updated while it processes previous actions";
        Self::saying(403, message)
    }

    /// The stable code.
    pub const fn id(&self) -> &str {
        self.id
    }

    /// As the API sends it.
    pub(crate) fn answer(&self, request_id: &str) -> Answer {
        let body = json!({"id": self.id, "message": self.message, "request_id": request_id});
        Answer::json(self.status, &body)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<ParamError> for Refusal {
    fn from(error: ParamError) -> Self {
        Self::saying(400, error.to_string())
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        Self::Rejected(refusal.answer(""))
    }
}
