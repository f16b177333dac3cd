//! Error responses in the form that Kubernetes clients know.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::authorization::AccessRequest;

/// A plain-text response.
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

/// 401: the credentials are invalid.
pub(super) fn unauthorized() -> Response {
    failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

/// 403: the user is not allowed to do this.
pub(super) fn forbidden(access: &AccessRequest, reason: &str) -> Response {
    let AccessRequest { user, verb, path } = access;
    let mut message = html_escaped(&format!(
        "forbidden: User {:?} cannot {verb} path {path:?}",
        user.name
    ));
    if !reason.is_empty() {
        message.push_str(": ");
        message.push_str(&html_escaped(reason));
    }
    failure(StatusCode::FORBIDDEN, "Forbidden", &message)
}

/// 500: the access review failed. The reason is only in the log, because it may name internal addresses.
pub(super) fn review_failed(path: &str) -> Response {
    let text = format!("Internal Server Error: {path:?}: the access review failed");
    plain_text(StatusCode::INTERNAL_SERVER_ERROR, &html_escaped(&text))
}

/// 503: not available yet.
pub(super) fn unavailable(message: &str) -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    failure(status, "ServiceUnavailable", message)
}

/// 404: nothing is served at this path.
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

/// The text with HTML special characters escaped.
fn html_escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
