//! How the cloud refuses: codes, and the status that goes with each.

use std::fmt;

use cloudkeel_emulation::params::ParamError;
use cloudkeel_emulation::{Answer, RequestError};
use http::StatusCode;
use serde_json::{Value, json};

/// Why the cloud did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Value,
}

/// Every code that the APIs document, or a client knows, with its status; the usual code of a status comes first.
/// Robot's are in upper case.
const CODES: &[(&str, u16)] = &[
    ("json_error", 400),
    ("unauthorized", 401),
    ("token_readonly", 401),
    ("forbidden", 403),
    ("maintenance", 403),
    ("resource_limit_exceeded", 403),
    ("not_found", 404),
    ("method_not_allowed", 405),
    ("conflict", 409),
    ("uniqueness_error", 409),
    ("deprecated_api_endpoint", 410),
    ("resource_unavailable", 412),
    ("source_port_already_used", 412),
    ("locked", 423),
    ("resource_locked", 423),
    ("protected", 423),
    ("rate_limit_exceeded", 429),
    ("server_error", 500),
    ("unknown_error", 500),
    ("bad_gateway", 502),
    ("unavailable", 503),
    ("robot_unavailable", 503),
    ("timeout", 504),
    ("UNAUTHORIZED", 401),
    // Robot has its own status for this.
    ("RATE_LIMIT_EXCEEDED", 403),
    ("RESET_NOT_AVAILABLE", 404),
    ("SERVER_NOT_FOUND", 404),
];

/// The status that goes with a code. What belongs to one operation only is a 422.
fn status_of(code: &str) -> StatusCode {
    let known = CODES.iter().find(|(known, _)| *known == code);
    known
        .and_then(|(_, status)| StatusCode::from_u16(*status).ok())
        .unwrap_or(StatusCode::UNPROCESSABLE_ENTITY)
}

/// The code that usually goes with a status.
pub(crate) fn code_of(status: u16) -> &'static str {
    let known = CODES.iter().find(|(_, known)| *known == status);
    match known {
        Some((code, _)) => code,
        None if status < 500 => "invalid_input",
        None => "server_error",
    }
}

impl Refusal {
    /// A refusal with this code and the status that goes with it.
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            status: status_of(code),
            code: code.to_owned(),
            message: message.into(),
            details: Value::Null,
        }
    }

    pub(crate) fn not_found(kind: &str, id: impl fmt::Display) -> Self {
        Self::new("not_found", format!("{kind} with ID '{id}' not found"))
    }

    /// Something is wrong with one field of the input.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let details = json!({"fields": [{"name": field, "messages": [message]}]});
        Self {
            details,
            ..Self::new("invalid_input", format!("invalid input in field '{field}'"))
        }
    }

    pub(crate) fn not_unique(field: &str) -> Self {
        Self {
            details: json!({"fields": [{"name": field}]}),
            ..Self::new("uniqueness_error", format!("{field} is already used"))
        }
    }

    pub(crate) fn limit_exceeded(message: impl Into<String>) -> Self {
        Self::new("resource_limit_exceeded", message)
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// As the Cloud API sends it.
    pub(crate) fn answer(&self) -> Answer {
        let body = json!({"code": self.code, "message": self.message, "details": self.details});
        Answer::json(self.status, &json!({"error": body}))
    }

    /// As Robot sends it.
    pub(crate) fn robot_answer(&self) -> Answer {
        let mut error = self.details.as_object().cloned().unwrap_or_default();
        error.insert("status".to_owned(), json!(self.status.as_u16()));
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        Answer::json(self.status, &json!({"error": error}))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<ParamError> for Refusal {
    fn from(error: ParamError) -> Self {
        Self::invalid(&error.param, error.message)
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        Self::Rejected(refusal.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_documented_status() {
        for (code, status) in [
            ("unauthorized", 401),
            ("locked", 423),
            ("rate_limit_exceeded", 429),
            ("RATE_LIMIT_EXCEEDED", 403),
            ("targets_without_use_private_ip", 422),
            ("no_space_left_in_location", 422),
            ("service_error", 422),
        ] {
            assert_eq!(status_of(code).as_u16(), status, "{code}");
        }
    }

    #[test]
    fn the_usual_code_of_a_status_has_that_status() {
        for status in [
            400, 401, 403, 404, 405, 409, 410, 412, 422, 423, 429, 500, 502, 503, 504,
        ] {
            assert_eq!(status_of(code_of(status)).as_u16(), status);
        }
        assert_eq!((code_of(409), code_of(401)), ("conflict", "unauthorized"));
    }
}
