//! Refusals, in the words that clients of Kubernetes know.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::authorization::Question;

/// A line of text.
pub(super) fn plain_text(status: StatusCode, text: &str) -> Response {
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, format!("{text}\n")).into_response()
}

/// 401: what was shown is not believed.
pub(super) fn unauthorized() -> Response {
    failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

/// 403: this user may not do this.
pub(super) fn forbidden(question: &Question, reason: &str) -> Response {
    let Question { user, verb, path } = question;
    let mut message = harmless(&format!(
        "forbidden: User {:?} cannot {verb} path {path:?}",
        user.name
    ));
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(&harmless(reason));
    }
    failure(StatusCode::FORBIDDEN, "Forbidden", &message)
}

/// 500: nobody could be asked. Why is in the log; a stranger need not know where the API server is.
pub(super) fn undecided(path: &str) -> Response {
    let text = format!("Internal Server Error: {path:?}: the access review failed");
    plain_text(StatusCode::INTERNAL_SERVER_ERROR, &harmless(&text))
}

/// 503: it cannot be answered yet.
pub(super) fn unavailable(message: &str) -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    failure(status, "ServiceUnavailable", message)
}

/// 404: there is nothing at this path.
pub(super) fn not_found() -> Response {
    plain_text(StatusCode::NOT_FOUND, "404 page not found")
}

fn failure(status: StatusCode, reason: &str, message: &str) -> Response {
    let body = Json(json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": {},
        "code": status.as_u16(),
    }));
    let headers = [(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
    (status, headers, body).into_response()
}

/// What a browser cannot take for HTML.
fn harmless(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
