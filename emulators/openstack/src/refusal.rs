//! How each service says no.

use cloudkeel_emulation::Answer;
use http::StatusCode;
use serde_json::json;

use crate::operation::Operation;

/// A refusal, in the words of the service that refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The type of a Neutron error; the others have none.
    pub kind: &'static str,
    /// The message.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            kind,
            message,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "InvalidInput", message)
    }

    pub(crate) fn not_found(kind: &'static str, what: &str, id: &str) -> Self {
        Self::new(404, kind, format!("{what} {id} not found."))
    }

    /// The load balancer is being changed.
    pub(crate) fn immutable(id: &str) -> Self {
        Self::new(
            409,
            "",
            format!("Load Balancer {id} is immutable and cannot be updated."),
        )
    }

    /// The answer in the form of the service.
    pub(crate) fn answer(&self, operation: Operation) -> Answer {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let (code, message) = (self.status, &self.message);
        let (path, title) = (
            operation.path(),
            status.canonical_reason().unwrap_or_default(),
        );
        let body = if path.starts_with("/network") {
            let kind = if self.kind.is_empty() {
                "HTTPError"
            } else {
                self.kind
            };
            json!({"NeutronError": {"type": kind, "message": message, "detail": ""}})
        } else if path.starts_with("/load-balancer") {
            json!({"faultcode": "Client", "faultstring": message, "debuginfo": null})
        } else if path.starts_with("/identity") {
            json!({"error": {"code": code, "title": title, "message": message}})
        } else if path.starts_with("/key-manager") {
            json!({"code": code, "title": title, "description": message})
        } else {
            let name = match code {
                400 => "badRequest",
                401 => "unauthorized",
                403 => "forbidden",
                404 => "itemNotFound",
                409 => "conflictingRequest",
                413 | 429 => "overLimit",
                _ => "computeFault",
            };
            json!({name: {"code": code, "message": message}})
        };
        Answer::json(status, &body)
    }
}
