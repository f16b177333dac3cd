//! What the API answers when it does not do what was asked.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// A failure as the API reports it: a `Status` with a code, a reason and details.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The reason for programs, such as `NotFound`.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// What it is about; null if nothing in particular.
    pub details: Value,
    /// Where a list may go on although its token is too old.
    pub(crate) go_on: Option<String>,
}

/// One field of an object that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    reason: &'static str,
    field: String,
    message: String,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            go_on: None,
        }
    }

    fn about(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: the client is unknown.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: who asks may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// 404 for a path that leads nowhere.
    pub fn no_such_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .about(json!({}))
    }

    /// 405: the resource does not know this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).about(json!({}))
    }

    /// 409: another client was faster.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// 410: what is asked for is too old to be known.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: the body is larger than this.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the body is in a language that is not spoken here.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message).about(json!({}))
    }

    /// 406: the kind is spoken in no language that the client knows.
    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message)
    }

    /// 429, with the seconds to wait.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::new(
            429,
            "TooManyRequests",
            "too many requests, please try again later",
        )
        .about(json!({"retryAfterSeconds": retry_after_seconds}))
    }

    /// 422 about a field of something that is not stored.
    pub(crate) fn invalid_request(message: String, field: &str) -> Self {
        let cause = json!({"reason": "FieldValueInvalid", "message": message, "field": field});
        Self::new(422, "Invalid", message).about(json!({"causes": [cause]}))
    }

    /// 422 for a patch after which the object cannot be read any more.
    pub(crate) fn spoiled(why: &Self) -> Self {
        let fault = Fault::invalid("patch", &json!(""), &why.message);
        let message = format!(" \"\" is invalid: {fault}");
        Self::new(422, "Invalid", message).about(json!({"causes": [fault.cause()]}))
    }

    /// 422 for a PUT that must name the version it replaces.
    pub(crate) fn unversioned(kind: &Kind, name: &str) -> Self {
        let why = "must be specified for an update";
        let fault = Fault::invalid("metadata.resourceVersion", &json!(0), why);
        let mut details = kind.details(name, kind.plural);
        crate::object::put(&mut details, &["causes"], json!([fault.cause()]));
        let message = format!("{} \"{name}\" is invalid: {fault}", kind.qualified_plural());
        Self::new(422, "Invalid", message).about(details)
    }

    /// 500 for a version where there can be none.
    pub(crate) fn versioned() -> Self {
        let message = "resourceVersion should not be set on objects to be created";
        Self::new(500, "", message)
    }

    /// 500: something broke.
    pub fn internal_error(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 408: the request took too long to arrive.
    pub fn request_timeout(message: impl Into<String>) -> Self {
        Self::new(408, "Timeout", message)
    }

    /// 504: the answer took too long.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// 504: a version that does not exist yet.
    pub fn too_large_version(asked: u64, present: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {present}");
        let cause =
            json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        Self::new(504, "Timeout", message).about(json!({"causes": [cause], "retryAfterSeconds": 1}))
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_plural());
        Self::new(404, "NotFound", message).about(kind.details(name, kind.plural))
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str, is_terminating: bool) -> Self {
        let mut message = format!("{} \"{name}\" already exists", kind.qualified_plural());
        if is_terminating {
            message = format!("object is being deleted: {message}");
        }
        Self::new(409, "AlreadyExists", message).about(kind.details(name, kind.plural))
    }

    pub(crate) fn conflict_on(kind: &Kind, name: &str, why: &str) -> Self {
        let plural = kind.qualified_plural();
        let message = format!("Operation cannot be fulfilled on {plural} \"{name}\": {why}");
        Self::conflict(message).about(kind.details(name, kind.plural))
    }

    /// A deletion whose precondition does not hold; the API names the kind here, not the resource.
    pub(crate) fn unmet(kind: &Kind, name: &str, why: &str) -> Self {
        let subject = kind.qualified_kind();
        let message = format!("Operation cannot be fulfilled on {subject} \"{name}\": {why}");
        Self::conflict(message).about(kind.details(name, kind.kind))
    }

    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict_on(kind, name, why)
    }

    pub(crate) fn forbidden_on(kind: &Kind, name: &str, why: &str) -> Self {
        let plural = kind.qualified_plural();
        let subject = match name {
            "" => plural,
            name => format!("{plural} \"{name}\""),
        };
        let message = format!("{subject} is forbidden: {why}");
        Self::forbidden(message).about(kind.details(name, kind.plural))
    }

    pub(crate) fn with_cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        let cause = json!({"reason": reason, "message": message, "field": field});
        crate::object::put(&mut self.details, &["causes"], json!([cause]));
        self
    }

    /// 422 with every field that is wrong.
    pub(crate) fn invalid(kind: &Kind, name: &str, faults: &[Fault]) -> Self {
        // What is stored is checked, in whichever group it was sent.
        let kind = Kind::stored(kind.storage).unwrap_or(kind);
        let reported: Vec<_> = faults.iter().map(Fault::to_string).collect();
        let reported = match reported.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let subject = kind.qualified_kind();
        let causes: Vec<_> = faults.iter().map(Fault::cause).collect();
        let mut details = kind.details(name, kind.kind);
        crate::object::put(&mut details, &["causes"], causes);
        let message = format!("{subject} \"{name}\" is invalid: {reported}");
        Self::new(422, "Invalid", message).about(details)
    }

    /// The `Status` object of the answer.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if self.reason.is_empty() {
            crate::object::put(&mut status, &["reason"], Value::Null);
        }
        if !self.details.is_null() {
            crate::object::put(&mut status, &["details"], self.details.clone());
        }
        if let Some(token) = &self.go_on {
            crate::object::put(&mut status, &["metadata", "continue"], token.as_str());
        }
        status
    }
}

impl Fault {
    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        let field = field.into();
        Self {
            reason,
            field,
            message,
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self::new("FieldValueInvalid", field, message)
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {why}")
        };
        Self::new("FieldValueRequired", field, message)
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &impl std::fmt::Display) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {value}"),
        )
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<_> = known.iter().map(|known| format!("\"{known}\"")).collect();
        let known = known.join(", ");
        let message = format!("Unsupported value: {value}: supported values: {known}");
        Self::new("FieldValueNotSupported", field, message)
    }

    fn cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.field, self.message)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl std::error::Error for Refusal {}
