//! Error responses of the cloud.

use std::fmt;
use std::time::Duration;

use cloudkeel_provider_local::wire::{ErrorBody, ErrorCode, ErrorInfo};
use http::StatusCode;

/// Why the cloud did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub(super) status: StatusCode,
    pub(super) info: ErrorInfo,
    pub(super) retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status,
            info: ErrorInfo {
                code,
                message: message.into(),
                field: None,
            },
            retry_after: None,
        }
    }

    pub(crate) fn not_found(what: impl fmt::Display) -> Self {
        let message = format!("there is no {what} in this project");
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }

    pub(super) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let mut refusal = Self::new(status, ErrorCode::Invalid, message);
        refusal.info.field = Some(field.into());
        refusal
    }

    pub(super) fn unreadable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::Invalid, message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Forbidden, message)
    }

    pub(super) fn already_exists(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorCode::AlreadyExists, message)
    }

    pub(super) fn locked(message: impl Into<String>) -> Self {
        Self::new(StatusCode::LOCKED, ErrorCode::Locked, message)
    }

    pub(super) fn changed_meanwhile(message: impl Into<String>) -> Self {
        let status = StatusCode::PRECONDITION_FAILED;
        Self::new(status, ErrorCode::Conflict, message)
    }

    pub(super) fn limit_exceeded(message: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, ErrorCode::LimitExceeded, message)
    }

    pub(super) fn protected(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Protected, message)
    }

    pub(super) fn rate_limited(retry_after: Duration) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let message = "too many calls with this token";
        Self {
            retry_after: Some(retry_after),
            ..Self::new(status, ErrorCode::RateLimited, message)
        }
    }

    /// The stable word for it.
    pub const fn code(&self) -> ErrorCode {
        self.info.code
    }

    pub(super) fn body(&self) -> ErrorBody {
        ErrorBody {
            error: self.info.clone(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.info.code.as_str(), self.info.message)
    }
}

impl std::error::Error for Refusal {}
